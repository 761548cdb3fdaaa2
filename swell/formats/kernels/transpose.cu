// The transpose of a CSR matrix M on a GPU; formats/transpose.py describes the steps. A row of the transpose is a
// column of M.
//
// Atomics place the entries in their rows, in any order. A sort by the row in M follows; all entries of a row have
// different keys. A row that is not much longer than the mean is sorted by a group of lanes, a row of up to LONG
// entries by a warp: the place of an entry is the number of smaller keys. A longer row has a block for each RANGE of
// M's rows. The block sets a bit in shared memory for each entry, and prefix sums of the bits give the places.
#include "rows.cuh"
#include "scan.cuh"

constexpr int EACH = 4, LONG = 512, RANGE = 1 << 16, WORDS = RANGE / 32;      // LONG: as in formats/transpose.py

template <class I> struct alignas(2 * sizeof(I)) Entry {
  I row, entry;                                                               // of M
};

DEVICE int atomic_add(int* at, int value) { return atomicAdd(at, value); }
DEVICE long long atomic_add(long long* at, long long value) {
  return (long long)atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)value);
}

// The row of entry k, which is `low` or a later row; the search begins `step` rows on.
template <class I>
DEVICE long long row_of(const I* indptr, long long rows, long long k, long long low, long long step) {
  for (; low + step < rows && indptr[low + step] <= k; step *= 2) low += step;
  long long high = min(low + step, rows);
  while (high - low > 1) {
    const long long middle = (low + high) / 2;
    if (indptr[middle] <= k) low = middle;
    else high = middle;
  }
  return low;
}

// counts[j] += the number of entries in column j.
// launch: elements of indices, 256 threads
template <typename I> __global__ void count_columns(Context* ctx, const I* indices, I* counts, long long n) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k < n) atomic_add(counts + indices[k], I(1));
}

// placed = (row, index) in M of each entry, in any order inside each row of the transpose. counts holds the length of
// each such row, and is counted down to 0. Its last element, 0 at first, counts the long rows. Warps have equal shares
// of consecutive entries, so many warps share a long row of M.
// launch: elements of indices, 256 threads, at most 8 blocks per multiprocessor
template <typename I>
__global__ void __launch_bounds__(256) place(Context* ctx, const I* indptr, const I* indices, const I* new_indptr,
    I* counts, I* placed, I* long_rows, long long n, long long indptr_size, long long new_indptr_size) {
  if (stopped(ctx)) return;
  Entry<I>* const entries = reinterpret_cast<Entry<I>*>(placed);
  const long long rows = indptr_size - 1, warps = threads() / 32, part = (n + warps * 32 - 1) / (warps * 32) * 32;
  const long long begin = thread_id() / 32 * part, end = min(n, begin + part);
  long long row = 0, step = rows;
  for (long long first = begin; first < end; first += 32, step = 1) {
    const long long k = first + threadIdx.x % 32;
    if (k < end) {
      row = row_of(indptr, rows, k, row, step);
      const I column = indices[k], from = new_indptr[column], left = atomic_add(counts + column, I(-1));
      entries[from + left - 1] = {I(row), I(k)};
      if (left == 1 && new_indptr[column + 1] - from > LONG)                  // one entry of each column is the last
        long_rows[atomic_add(counts + new_indptr_size - 1, I(1))] = column;
    }
    row = __shfl_sync(~0u, row, 31);  // wrong only after a last, incomplete 32: not read then
  }
}

// By `lanes` lanes of one row with entries begin to end - 1: put(place, entry) for every `lanes`-th entry, from begin +
// part on.
template <class I, class Put>
DEVICE void rank(const Entry<I>* entries, long long begin, long long end, int part, int lanes, Put put) {
  for (long long first = begin + part; first < end; first += EACH * lanes) {
    Entry<I> mine[EACH];
    int smaller[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) mine[e] = entries[min(first + e * lanes, end - 1)], smaller[e] = 0;
#pragma unroll 4
    for (long long other = begin; other < end; ++other) {
      const I row = entries[other].row;
#pragma unroll
      for (int e = 0; e < EACH; ++e) smaller[e] += row < mine[e].row;
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e)
      if (first + e * lanes < end) put(begin + smaller[e], mine[e]);
  }
}

// Like `rank`, by a whole warp: each lane reads another entry, and a shuffle shows it to all lanes.
template <class I, class Put>
DEVICE void rank_by_warp(const Entry<I>* entries, long long begin, long long end, Put put) {
  const int lane = threadIdx.x % 32;
  for (long long first = begin; first < end; first += EACH * 32) {
    Entry<I> mine[EACH];
    int smaller[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) mine[e] = entries[min(first + lane + e * 32, end - 1)], smaller[e] = 0;
    for (long long base = begin; base < end; base += 32) {
      const I row = entries[min(base + lane, end - 1)].row;
      const int others = int(min(32ll, end - base));
      for (int from = 0; from < others; ++from) {
        const I other = __shfl_sync(~0u, row, from);
#pragma unroll
        for (int e = 0; e < EACH; ++e) smaller[e] += other < mine[e].row;
      }
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e)
      if (first + lane + e * 32 < end) put(begin + smaller[e], mine[e]);
  }
}

// Like `rank`, by a block, for those entries of a long row whose row in M is first to first + RANGE - 1. M has `rows`
// rows.
template <class I, class Put>
DEVICE void rank_by_bits(const Entry<I>* entries, long long begin, long long end, long long first, long long rows,
    Put put) {
  __shared__ unsigned bits[WORDS];
  __shared__ int before[WORDS];
  const int words = int(min((rows - first + 31) / 32, (long long)WORDS));
  for (int w = threadIdx.x; w < words; w += blockDim.x) bits[w] = 0;
  __syncthreads();
  long long below = 0;
  for (long long p = begin + threadIdx.x; p < end; p += blockDim.x) {
    const long long row = entries[p].row - first;
    if (row < 0) ++below;
    else if (row < RANGE) atomicOr(bits + row / 32, 1u << row % 32);
  }
  below = block_total(below);
  scan(words, [&](long long w) { return (long long)__popc(bits[w]); },
      [&](long long w, long long sum) { before[w] = int(sum); });
  __syncthreads();
  for (long long p = begin + threadIdx.x; p < end; p += blockDim.x) {
    const Entry<I> mine = entries[p];
    const long long row = mine.row - first;
    if (row >= 0 && row < RANGE)
      put(begin + below + before[row / 32] + __popc(bits[row / 32] & ((1u << row % 32) - 1)), mine);
  }
  __syncthreads();
}

// The transpose's columns and values; order, unless empty, = the index in M of each value. M has `rows` rows.
// launch: 5 blocks per multiprocessor of 256 threads
template <typename T, typename I>
__global__ void __launch_bounds__(256, 5) sort(Context* ctx, const I* indptr, const I* placed, const I* counts,
    const I* long_rows, long long rows, const T* data, I* indices, T* new_data, I* order, long long indptr_size,
    long long indices_size, long long order_size) {
  if (stopped(ctx)) return;
  const Entry<I>* const entries = reinterpret_cast<const Entry<I>*>(placed);
  const auto put = [&](long long place, const Entry<I>& from) {
    indices[place] = from.row;
    new_data[place] = data[from.entry];
    if (order_size) order[place] = from.entry;
  };
  const long long n = indptr_size - 1, ranges = (rows + RANGE - 1) / RANGE, tasks = counts[n] * ranges;
  for (long long task = blockIdx.x; task < tasks; task += gridDim.x) {
    const long long row = long_rows[task / ranges];
    rank_by_bits(entries, indptr[row], indptr[row + 1], task % ranges * RANGE, rows, put);
  }
  const int lanes = lanes_for(n, indices_size);
  visit_all(indptr, n, lanes, [&](const Portion& p) {
    const long long length = p.end - p.begin;
    const bool few = p.lanes < 32 && length <= EACH * p.lanes;
    if (few) rank(entries, p.begin, p.end, p.part, p.lanes, put);
    for (unsigned more = __ballot_sync(~0u, !few && length <= LONG && p.part == 0); more; more &= more - 1) {
      const int lane = __ffs(more) - 1;
      rank_by_warp(entries, __shfl_sync(~0u, p.begin, lane), __shfl_sync(~0u, p.end, lane), put);
    }
  });
}
