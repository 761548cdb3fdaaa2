// The independent set of PMIS on a GPU; pmis.py one folder up describes it. All numbers are integers, so the result is
// equal in any order, and to a CPU's. A CPU has rounds instead of rows that wait.
//
// Several lanes share a row; their number depends on the mean row length.
#include "rows.cuh"
#include "waiting.cuh"

// counts[j] += the number of rows that depend strongly on row j.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void influences(Context* ctx, const I* indices, const unsigned char* strong, int* counts, long long n) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k < n && strong[k]) atomicAdd(counts + indices[k], 1);
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
