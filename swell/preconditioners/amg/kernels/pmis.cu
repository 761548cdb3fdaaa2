// PMIS on a GPU; pmis.py one folder up says what it is. Integers and bytes alone: the same in any order, so the same as on a CPU.
//
// Decided rows end at the byte that tells: a warp reads the states of its rows at once, 32 or fewer. Lanes share the rows that are
// left.
#include "rows.cuh"

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

// Each row's key (its count, then its number's hash) and its first state. first: the number of row 0 in the whole
// matrix.
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
    keys[p.row] = (long long)count << 32 | scattered(first + p.row);
    state[p.row] = forced_size && forced[p.row] ? COARSE : !linked ? ISOLATED : count == 0 ? FINE : UNDECIDED;
  });
}

// States that other blocks write in the same launch are read past the cache of the multiprocessor.
DEVICE unsigned char state_of(const unsigned char* state, long long row) { return __ldcg(state + row); }

// By a warp: the undecided ones of up to 32 rows, as bits.
DEVICE unsigned undecided(const unsigned char* state, long long first, int count, long long rows) {
  const int lane = threadIdx.x % 32;
  return __ballot_sync(~0u, lane < count && first + lane < rows && state_of(state, first + lane) == UNDECIDED);
}

// Rounds until every row is decided. beaten is 0 before and after. record: the barrier's count, then by turns how many rows a
// round has left undecided; 0 before the launch.
// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename I>
__global__ void __launch_bounds__(512, 2) rounds(Context* ctx, const I* indptr, const I* indices, const unsigned char* strong,
    const long long* keys, unsigned char* state, unsigned char* beaten, long long* record, long long indices_size,
    long long state_size) {
  if (stopped(ctx)) return;
  unsigned long long* arrived = reinterpret_cast<unsigned long long*>(record);
  const long long n = state_size;
  const int lanes = lanes_for(n, indices_size), count = rows_a_warp(n, lanes);
  const long long own = thread_id() / 32 * count, step = threads() / 32 * count;
  for (int round = 0;; ++round) {
    unsigned long long* left = reinterpret_cast<unsigned long long*>(record) + 1 + round % 3;
    // Undecided rows that depend strongly on a coarse row become fine. A row that becomes fine here was not coarse before, so
    // it does not matter who reads it when.
    unsigned remaining = 0;
    for (long long first = own; first < n; first += step) {
      const unsigned open = undecided(state, first, count, n);
      if (!open) continue;
      visit_rows(indptr, first, n, lanes, [&](const Portion& p) {
        const bool mine = open >> (p.row - first) & 1;
        bool covered = false;
        if (mine)
          for (long long k = p.begin + p.part; !covered && k < p.end; k += p.lanes)
            covered = strong[k] && state_of(state, indices[k]) == COARSE;
        covered = any_lane(covered, p.lanes);
        if (!mine || p.part) return;
        if (covered) state[p.row] = FINE;
        else ++remaining;
      }, count);
    }
    remaining = __reduce_add_sync(~0u, remaining);
    if (threadIdx.x % 32 == 0 && remaining) atomicAdd(left, (unsigned long long)remaining);
    grid_wait(arrived);
    if (!__ldcg(left)) return;
    if (thread_id() == 0) record[1 + (round + 1) % 3] = 0;       // last read two barriers ago, next added to after two more
    // beaten = 1 for the lesser key of every strong link between two undecided rows. All who write a byte write 1.
    for (long long first = own; first < n; first += step) {
      const unsigned open = undecided(state, first, count, n);
      if (!open) continue;
      visit_rows(indptr, first, n, lanes, [&](const Portion& p) {
        if (!(open >> (p.row - first) & 1)) return;
        const long long key = keys[p.row];
        for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
          if (!strong[k]) continue;
          const I j = indices[k];
          if (state_of(state, j) == UNDECIDED) beaten[key < keys[j] ? p.row : (long long)j] = 1;
        }
      }, count);
    }
    grid_wait(arrived);
    // Undecided rows that nobody has beaten become coarse.
    for (long long i = thread_id(); i < n; i += threads()) {
      if (state_of(state, i) == UNDECIDED && !__ldcg(beaten + i)) state[i] = COARSE;
      beaten[i] = 0;
    }
    grid_wait(arrived);
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
