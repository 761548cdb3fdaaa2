// The states of rows before and after PMIS, for both devices; see pmis.py one folder up. independent_set.cu and
// independent_set.cpp decide the rows.
#include "entries.hpp"
#include "hashing.hpp"

namespace {

constexpr int64_t GREATEST = 0x7FFFFFFFFFFFFFFF;

// Each row's key, (counts[i], then a hash of its row number), and its first state. counts[i]: the number of rows that
// depend strongly on row i. forced[i]: 1 for a row that must be coarse, whose key is the greatest; may be empty. first:
// the number of row 0 in the whole matrix, if these are local rows.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL begin(Device device, Array<const I> indptr, Array<const uint8_t> strong, Array<const int32_t> counts,
                 Array<const uint8_t> forced, int64_t first, Array<int64_t> keys, Array<uint8_t> state) {
  entries(device, indptr, strong.size, [=](auto row) {
    const int64_t i = row.i, count = counts[i];
    const bool chosen = forced.size && forced[i];
    bool linked = false;
    row.each([&](int64_t k) { linked |= strong[k] != 0; });
    linked = row.any(linked);
    keys[i] = chosen ? GREATEST : count << 32 | int64_t(scattered(first + i));
    state[i] = chosen ? COARSE : !linked ? ISOLATED : count == 0 ? FINE : UNDECIDED;
  });
}

// Decide the undecided rows whose rivals are decided: one step of PMIS across ranks. left[r] = 1 for a row that stays
// undecided, else 0. Row r of `indptr` and `left` is row first + r of `keys` and `state`. A rival of a row is a row
// with a greater key on which it depends strongly. A row is fine if a rival is coarse, and coarse if all rivals are
// decided otherwise; so a step may use rows that it has just decided, and the result is the same for any order.
// launch: elements of left, 256 threads
template <class I>
ROW_KERNEL advance(Device device, Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong,
                   Array<const int64_t> keys, Array<uint8_t> state, int64_t first, Array<uint8_t> left) {
  rows(device, left.size, [=](int64_t r) {
    const int64_t i = first + r;
    uint8_t own = state[i];
    if (own == UNDECIDED) {
      bool covered = false, open = false;
      for (int64_t k = indptr[r]; k < indptr[r + 1]; ++k) {
        const int64_t j = indices[k];
        const bool rival = (strong[k] != 0) & (keys[j] > keys[i]);
        const uint8_t its = peek(&state[j]);
        covered |= rival & (its == COARSE);
        open |= rival & (its == UNDECIDED);
      }
      own = covered ? FINE : open ? UNDECIDED : COARSE;
      post(&state[i], own);
    }
    left[r] = own == UNDECIDED;
  });
}

// marked[i] = 1 for a coarse row, else 0.
// launch: elements of state, 256 threads
template <class T> ROW_KERNEL mark_coarse(Device device, Array<const uint8_t> state, Array<uint8_t> marked) {
  rows(device, state.size, [=](int64_t i) { marked[i] = state[i] == COARSE; });
}

// kept[numbers[i]] = marked[i] for each coarse row i: flags of rows, renumbered as on the next level.
// launch: elements of state, 256 threads
template <class I>
ROW_KERNEL carry(Device device, Array<const uint8_t> state, Array<const I> numbers, Array<const uint8_t> marked,
                 Array<uint8_t> kept) {
  rows(device, state.size, [=](int64_t i) {
    if (state[i] == COARSE) kept[numbers[i]] = marked[i];
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.pmis", INDICES(begin), INDICES(advance), INSTANCE(mark_coarse, double),
        INDICES(carry))
