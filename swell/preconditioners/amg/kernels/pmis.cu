// PMIS on a GPU; pmis.py one folder up describes it. All numbers are integers, so the result is equal in any order, and
// to a CPU's.
//
// Several lanes share a row; their number depends on the mean row length.
#include "rows.cuh"
#include "hashing.hpp"
#include "waiting.cuh"

// counts[j] += the number of rows that depend strongly on row j.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void influences(Context* ctx, const I* indices, const unsigned char* strong, int* counts, long long n) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k < n && strong[k]) atomicAdd(counts + indices[k], 1);
}

// Write each row's key and first state. Key: its count, then the hash of its number; the greatest of all for a row that
// must be coarse. first: the number of row 0 in the whole matrix.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void begin(Context* ctx, const I* indptr, const unsigned char* strong, const int* counts,
    const unsigned char* forced, long long first, long long* keys, unsigned char* state, long long n,
    long long strong_size, long long forced_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, strong_size), [&](const Portion& p) {
    bool linked = false;
    for (long long k = p.begin + p.part; !linked && k < p.end; k += p.lanes) linked = strong[k];
    linked = any_lane(linked, p.lanes);
    if (!p.there || p.part) return;
    const int count = counts[p.row];
    const bool chosen = forced_size && forced[p.row];
    keys[p.row] = chosen ? 0x7FFFFFFFFFFFFFFFll : (long long)count << 32 | scattered(first + p.row);
    state[p.row] = chosen ? COARSE : !linked ? ISOLATED : count == 0 ? FINE : UNDECIDED;
  });
}

// The undecided rows of the warps (`rows`), and their rivals with list lengths. A warp owns `share` neighbouring rows.
template <class I> struct Waiting {
  I *rivals, *lengths, *rows;                                  // a warp's entries of `rows` begin at its first row
};

// Decide a row if its rivals allow it; a warp handles 32 / lanes rows together. A lane reads every `lanes`-th of the
// links from[begin..end); if `strong` is given, only strong links count. Undecided rivals are stored from `begin` on.
// Returns true if the row stays undecided.
template <class I>
DEVICE bool stays(const I* from, const unsigned char* strong, const long long* keys, unsigned char* state,
    const Waiting<I>& to, long long row, bool there, long long begin, long long end, int lanes) {
  const int part = threadIdx.x % 32 % lanes;
  const long long key = there && strong ? keys[row] : 0;
  long long at = begin;
  bool covered = false;
  for (long long k = begin + part; __any_sync(~0u, k - part < end); k += lanes) {
    I j = 0;
    bool open = false, coarse = false;
    if (k < end && (!strong || strong[k])) {
      j = from[k];
      const unsigned char its = peek(state + j);
      const bool rival = !strong || keys[j] > key;
      open = rival && its == UNDECIDED;
      coarse = rival && its == COARSE;
    }
    covered |= any_lane(coarse, lanes);                        // all lanes must call it
    const unsigned found = lane_votes(open, lanes);            // all lanes have read before the list is overwritten
    if (open) to.rivals[at + __popc(found & ((1u << part) - 1))] = j;
    at += __popc(found);
    if (covered) end = begin;
  }
  const bool left = there && !covered && at > begin;
  if (there && part == 0) {
    if (left) to.lengths[row] = I(at - begin);
    else post(state + row, (unsigned char)(covered ? FINE : COARSE));
  }
  return left;
}

// Decide all rows. A rival of a row is a row with a greater key on which it depends strongly. An undecided row becomes
// fine as soon as a rival is coarse, and coarse as soon as all rivals are decided otherwise. The result equals a CPU's,
// which works in rounds. (There a row waits for all neighbours with greater keys. Neighbours that it does not depend on
// change nothing for it, and one with a smaller key is decided after it.) A warp visits its undecided rows in turn
// until none is left; the lists of rivals shrink each time. All blocks run at once, and the undecided row with the
// greatest key never waits: so no row waits forever.
//
// rivals, lengths, rows: memory for the lists, of any content.
// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename I>
__global__ void __launch_bounds__(512, 2) decide(Context* ctx, const I* indptr, const I* indices,
    const unsigned char* strong, const long long* keys, unsigned char* state, I* rivals, I* lengths, I* rows,
    long long indices_size, long long state_size) {
  if (stopped(ctx)) return;
  const long long n = state_size, warps = threads() / 32;
  const int lanes = lanes_for(n, indices_size), each = 32 / lanes, lane = threadIdx.x % 32, part = lane % lanes;
  const long long share = ((n + warps - 1) / warps + each - 1) / each * each;
  const long long first = min(thread_id() / 32 * share, n), last = min(first + share, n);
  const Waiting<I> lists{rivals, lengths, rows};
  long long left = 0;
  const auto keep = [&](bool stuck, long long row) {           // on the warp's list of undecided rows, in their order
    const unsigned kept = __ballot_sync(~0u, stuck && part == 0);
    if (stuck && part == 0) rows[first + left + __popc(kept & ((1u << lane) - 1))] = I(row);
    left += __popc(kept);
    __syncwarp();                                              // other lanes read the lists
  };
  for (long long base = first; base < last; base += each) {
    const long long row = base + lane / lanes;
    const bool there = row < last && peek(state + row) == UNDECIDED;
    const long long begin = there ? (long long)indptr[row] : 0, end = there ? (long long)indptr[row + 1] : 0;
    keep(stays(indices, strong, keys, state, lists, row, there, begin, end, lanes), row);
  }
  while (left) {
    const long long count = left;
    left = 0;
    for (long long base = 0; base < count; base += each) {
      const bool there = base + lane / lanes < count;
      const long long row = there ? (long long)rows[first + base + lane / lanes] : 0,
          begin = there ? (long long)indptr[row] : 0;
      const long long end = there ? begin + lengths[row] : 0;
      __syncwarp();                                            // all lanes have read before the lists are overwritten
      keep(stays<I>(rivals, nullptr, keys, state, lists, row, there, begin, end, lanes), row);
    }
  }
}

// One step of PMIS across ranks: decide the undecided rows whose rivals are decided. Row r of `indptr` and `left` is
// row first + r of `keys` and `state`. left[r] = 1 for a row that stays undecided. Each row is decided once, by facts
// that do not change any more: so the result is the same in any order, also if a row reads another one that this launch
// decides.
// launch: elements of left, 256 threads
template <typename I>
__global__ void advance(Context* ctx, const I* indptr, const I* indices, const unsigned char* strong,
    const long long* keys, unsigned char* state, long long first, unsigned char* left, long long n) {
  const long long r = thread_id();
  if (stopped(ctx) || r >= n) return;
  const long long i = first + r;
  unsigned char own = peek(state + i);
  if (own == UNDECIDED) {
    bool covered = false, open = false;
    for (long long k = indptr[r]; !covered && k < indptr[r + 1]; ++k) {
      if (!strong[k] || keys[indices[k]] <= keys[i]) continue;
      const unsigned char its = peek(state + indices[k]);
      covered = its == COARSE;
      open |= its == UNDECIDED;
    }
    if (covered || !open) post(state + i, own = covered ? (unsigned char)FINE : (unsigned char)COARSE);
  }
  left[r] = own == UNDECIDED;
}

// marked[i] = 1 for a coarse row, else 0.
// launch: elements of state, 256 threads
template <typename T>
__global__ void mark_coarse(Context* ctx, const unsigned char* state, unsigned char* marked, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) marked[i] = state[i] == COARSE;
}

// kept[numbers[i]] = marked[i] of each coarse row i.
// launch: elements of state, 256 threads
template <typename I>
__global__ void carry(Context* ctx, const unsigned char* state, const I* numbers, const unsigned char* marked,
    unsigned char* kept, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n && state[i] == COARSE) kept[numbers[i]] = marked[i];
}
