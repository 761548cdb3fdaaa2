// PMIS on a GPU; pmis.py one folder up says what it is. Integers and bytes alone: the same in any order, so the same as on a CPU.
//
// Lanes share the rows, whose mean length says how many a row has.
#include "rows.cuh"
#include "waiting.cuh"

// counts[j] += how many rows depend strongly on row j.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void influences(Context* ctx, const I* indices, const unsigned char* strong, int* counts, long long n) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k < n && strong[k]) atomicAdd(counts + indices[k], 1);
}

// 32 bits that follow from a row's number, different for different rows: MurmurHash3's last step.
DEVICE unsigned scattered(long long row) {
  unsigned h = (unsigned)row;
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ (h >> 16);
}

// Each row's key (its count, then its number's hash; the greatest of all for a row that must be coarse) and its first state. first:
// the number of row 0 in the whole matrix.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void begin(Context* ctx, const I* indptr, const unsigned char* strong, const int* counts, const unsigned char* forced,
                      long long first, long long* keys, unsigned char* state, long long n, long long strong_size,
                      long long forced_size) {
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

// By a warp: which of its rows are left, and what of them. A warp owns `share` neighbouring rows.
template <class I> struct Waiting {
  I *rivals, *lengths, *rows;                                  // a warp's entries of `rows` begin at its first row
};

// Decide a row if its rivals allow it; the warp looks at 32 / lanes rows together. A lane reads every `lanes`-th of the links
// from[begin..end); where `strong` is given, strong links alone count. Undecided rivals are stored from `begin` on. True if the row
// stays undecided.
template <class I>
DEVICE bool stays(const I* from, const unsigned char* strong, const long long* keys, unsigned char* state, const Waiting<I>& to,
                  long long row, bool there, long long begin, long long end, int lanes) {
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
    covered |= any_lane(coarse, lanes);                        // by all lanes, whatever they know
    const unsigned found = lane_votes(open, lanes);            // all lanes have read what is written now
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

// Until every row is decided. A rival of a row is one on which it depends strongly, and whose key is greater. An undecided row
// becomes fine as soon as a rival is coarse, and coarse as soon as all are something else: the rounds of a CPU, without rounds.
// (In those a row waits for all neighbours with greater keys. Those that it does not depend on change nothing for it, and one
// with a lesser key is decided after it.) A warp looks at its undecided rows in turn until none is left; a row's list of rivals
// shrinks each time. Blocks run all at once, and the undecided row with the greatest key of all never waits: nobody waits forever.
//
// rivals, lengths, rows: room for the lists, of any content.
// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename I>
__global__ void __launch_bounds__(512, 2) decide(Context* ctx, const I* indptr, const I* indices, const unsigned char* strong,
    const long long* keys, unsigned char* state, I* rivals, I* lengths, I* rows, long long indices_size, long long state_size) {
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
      const long long row = there ? (long long)rows[first + base + lane / lanes] : 0, begin = there ? (long long)indptr[row] : 0;
      const long long end = there ? begin + lengths[row] : 0;
      __syncwarp();                                            // all have read what is written now
      keep(stays<I>(rivals, nullptr, keys, state, lists, row, there, begin, end, lanes), row);
    }
  }
}

// marked[i] = 1 for a coarse row.
// launch: elements of state, 256 threads
template <typename T> __global__ void mark_coarse(Context* ctx, const unsigned char* state, unsigned char* marked, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) marked[i] = state[i] == COARSE;
}

// kept[numbers[i]] = marked[i] of each coarse row i.
// launch: elements of state, 256 threads
template <typename I>
__global__ void carry(Context* ctx, const unsigned char* state, const I* numbers, const unsigned char* marked, unsigned char* kept,
                      long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n && state[i] == COARSE) kept[numbers[i]] = marked[i];
}
