// The independent set of PMIS on a CPU, in rounds that threads share; see pmis.py one folder up. A GPU's rows wait for
// one another instead.
//
// Each round shortens the list of undecided rows. A processor cannot predict the outcome of a comparison of keys: so
// each link makes one write without a branch, to an unused byte if it decides nothing. Several threads may write one
// byte; all write 1, so their order does not matter.
#include <vector>

#include "slots/swell/preconditioners/amg/independent_set.hpp"

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

constexpr int64_t LINE = 64;           // bytes of a cache line

// Add to counts[j] the number of rows that depend strongly on row j. strong[k] is 1 if entry k is a strong link, else
// 0.
template <class I> void influences(Array<const I> indices, Array<const uint8_t> strong, Array<int32_t> counts) {
  for (int64_t k = 0; k < indices.size; ++k) counts[indices[k]] += strong[k];
}

template <class I> struct Links {
  Array<const I> indptr, indices;
  Array<const uint8_t> strong;
};

// Compare the undecided rows with their strong neighbours: beaten[i] = 1 for the row with the smaller key of each pair.
// A decided row has the key −1, and may be marked too. `beaten` has unused bytes behind the rows' flags.
template <class I>
void contest(Array<const I> rows, Links<I> A, Array<const int64_t> keys, uint8_t* beaten) {
  const int64_t chunks = chunks_of(rows.size);
  const auto part = [=](int64_t begin, int64_t end, int64_t unused) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t i = rows[r], key = keys[i];
      bool lost = false;
      for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
        const int64_t j = A.indices[k], its = keys[j];
        const bool linked = A.strong[k] != 0;
        lost |= linked & (key < its);
        beaten[unused ^ ((unused ^ j) & -int64_t(linked & (its < key)))] = 1;  // j or unused; of ?: GCC makes a branch
      }
      if (lost) beaten[i] = 1;
    }
  };
  parallel_for(rows.size, chunks, [&part, &rows, &keys, chunks](int64_t chunk) {
    const auto own = part;                       // its pointers stay in registers: a byte may be part of the original
    own(chunk_begin(rows.size, chunk, chunks), chunk_begin(rows.size, chunk + 1, chunks), keys.size + chunk * LINE);
  });
}

// Make each of the undecided rows coarse that is not beaten. Resets `beaten` to 0.
template <class I>
void promote(Array<const I> rows, Array<uint8_t> state, Array<int64_t> keys, uint8_t* beaten) {
  each(rows.size, [=](int64_t r) {
    const int64_t i = rows[r];
    if (!beaten[i]) state[i] = COARSE, keys[i] = -1;
    beaten[i] = 0;
  });
}

// Make each of the undecided rows fine that depends strongly on a coarse row.
template <class I> void cover(Array<const I> rows, Links<I> A, Array<uint8_t> state, Array<int64_t> keys) {
  each(rows.size, [=](int64_t r) {
    const int64_t i = rows[r];
    bool covered = false;
    for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
      covered |= (A.strong[k] != 0) & (state[A.indices[k]] == COARSE);
    if (covered & (state[i] == UNDECIDED)) state[i] = FINE, keys[i] = -1;
  });
}

// Run rounds of `cover`, `contest` and `promote` until every row is coarse, fine or isolated. Overwrites `keys`. `rows`
// is work space; `rivals` and `lengths` are a GPU's.
template <class I>
void decide(Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong, Array<int64_t> keys,
            Array<uint8_t> state, Array<const I> rivals, Array<const I> lengths, Array<I> rows) {
  const Links<I> A{indptr, indices, strong};
  std::vector<uint8_t> beaten(size_t(state.size + CHUNKS * LINE), 0);         // a cache line of idle writes a chunk
  int64_t count = 0;
  for (int64_t i = 0; i < state.size; ++i) {
    rows[count] = I(i);
    count += state[i] == UNDECIDED;
    if (state[i] != UNDECIDED) keys[i] = -1;
  }
  while (true) {
    const int64_t before = count;
    cover<I>({rows.data, before}, A, state, keys);                             // first: forced rows are coarse already
    count = 0;
    for (int64_t r = 0; r < before; ++r) {
      rows[count] = rows[r];
      count += state[rows[r]] == UNDECIDED;
    }
    if (!count) return;
    contest<I>({rows.data, count}, A, keys, beaten.data());
    promote<I>({rows.data, count}, state, keys, beaten.data());
  }
}

}  // namespace

KERNELS("swell.preconditioners.amg.independent_set", INDICES(influences), INDICES(decide))
