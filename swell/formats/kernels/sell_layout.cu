// Kernels that build the layout of SELL on a GPU, whose blocks sort and reduce in shared memory. formats/sell.py
// describes the layout; sell_layout.cpp is for CPUs.
#include "scan.cuh"

// high_ptr = where each slice's upper halves of columns begin, -1 if it has none; halves[0] = their number.
// launch: one block of 1024 threads
template <typename P>
__global__ void __launch_bounds__(1024) find_upper(Context* ctx, const P* ptr, const unsigned char* wide, P* high_ptr,
                                                   long long* halves, long long wide_size) {
  if (stopped(ctx)) return;
  const long long all = scan(wide_size, [&](long long s) { return wide[s] ? (long long)(ptr[s + 1] - ptr[s]) : 0; },
                             [&](long long s, long long sum) { high_ptr[s] = wide[s] ? P(sum) : P(-1); });
  if (threadIdx.x == 0) halves[0] = all;
}

template <class I> DEVICE I length_of(const I* indptr, long long row, long long rows) {
  return row < rows ? indptr[row + 1] - indptr[row] : I(0);
}

// The rank of a row in its window: the number of rows that are longer, or equally long and before it.
template <class I> DEVICE int rank_of(const I* indptr, long long row, long long first, long long last, long long rows) {
  const I mine = length_of(indptr, row, rows);
  int rank = 0;
  for (long long other = first; other < last; ++other) {
    const I length = length_of(indptr, other, rows);
    rank += length > mine || (length == mine && other < row);
  }
  return rank;
}

constexpr int SORTED = 256;                                    // rows that a block sorts, in whole windows

// An element of the sort: a row's length, and the thread that had the row before the sort.
struct Sortable {
  unsigned length;
  int thread;
};

// By a block of SORTED threads: sort the rows of each window by descending length. This is a stable radix sort, from
// the lowest bit up, of the bits in which the lengths differ. Returns the row at this thread's place.
DEVICE Sortable sorted(unsigned length, int window) {
  __shared__ Sortable rows[SORTED];
  __shared__ unsigned of_warps[SORTED / 32];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, first = t / window * window;
  if (t == 0) rows[0].length = length;
  __syncthreads();
  unsigned bits = __reduce_or_sync(~0u, length ^ rows[0].length);
  if (lane == 0) of_warps[warp] = bits;
  __syncthreads();
  for (int w = 0; w < SORTED / 32; ++w) bits |= of_warps[w];
  const unsigned mine = window < 32 ? ~0u >> (32 - window) << first % 32 : ~0u;   // the lanes of the warp in the window
  Sortable row{length, t};
  for (; bits; bits &= bits - 1) {
    const bool one = row.length & bits & -bits;
    const unsigned ones = __ballot_sync(~0u, one) & mine;
    int before = __popc(ones & ((1u << lane) - 1)), all = __popc(ones);
    __syncthreads();                                         // all threads have read the arrays, which are written next
    if (window > 32) {
      if (lane == 0) of_warps[warp] = all;
      __syncthreads();
      all = 0;
      for (int w = first / 32; w < (first + window) / 32; ++w) {
        before += w < warp ? int(of_warps[w]) : 0;
        all += int(of_warps[w]);
      }
    }
    rows[first + (one ? before : all + t - first - before)] = row;
    __syncthreads();
    row = rows[t];
  }
  return row;
}

// The length of the longest row of each slice: in the given order, and sorted by length inside windows. Both arrays
// start as zeros.
// launch: elements of indptr, 256 threads
template <typename I>
__global__ void measure_windows(Context* ctx, const I* indptr, int height, int window, int* plain, int* ordered,
    long long n, long long plain_size) {
  if (stopped(ctx)) return;
  const long long row = thread_id(), rows = n - 1, places = plain_size * height;
  const unsigned length = unsigned(length_of(indptr, row, rows));
  if (height >= 32) {
    const unsigned longest = __reduce_max_sync(~0u, length);
    if (threadIdx.x % 32 == 0 && longest) atomicMax(plain + row / height, int(longest));
  } else if (length) {
    atomicMax(plain + row / height, int(length));
  }
  if (window <= SORTED) {
    const unsigned here = sorted(length, window).length;
    if (row % height == 0 && row < places) ordered[row / height] = int(here);
    return;
  }
  if (row >= rows) return;
  const long long first = row / window * window;
  const int rank = rank_of(indptr, row, first, min(first + window, places), rows);
  if (rank % height == 0) ordered[(first + rank) / height] = int(length);
}

// order = the rows of each window sorted by descending length, a stable sort; place = its inverse.
// launch: elements of order, 256 threads
template <typename I>
__global__ void sort_windows(Context* ctx, const I* indptr, int window, I* order, I* place, long long n,
    long long indptr_size) {
  if (stopped(ctx)) return;
  const long long row = thread_id();
  if (window <= SORTED) {
    const int thread = sorted(unsigned(length_of(indptr, row, indptr_size - 1)), window).thread;
    if (row >= n) return;
    const long long its = row - threadIdx.x + thread;
    order[row] = I(its);
    place[its] = I(row);
    return;
  }
  if (row >= n) return;
  const long long first = row / window * window;
  const long long at = first + rank_of(indptr, row, first, min(first + window, n), indptr_size - 1);
  order[at] = I(row);
  place[row] = I(at);
}

// The row at a place of the sorted order, its first entry and its number of entries.
template <class I> struct Entries {
  I begin, length;
  long long row;
};
template <class I> DEVICE Entries<I> entries_at(const I* indptr, const I* order, long long place, long long rows) {
  const long long row = order ? (long long)order[place] : place;
  return row < rows ? Entries<I>{indptr[row], indptr[row + 1] - indptr[row], row} : Entries<I>{0, 0, row};
}

// base = the smallest matrix column in each slice column; slice s has slice columns starts[s] / each to
// starts[s + 1] / each - 1. wide[s] = 1 if an offset from the base exceeds `largest`; the bases of this slice are then
// 0.
// launch: a block of height threads for each slice of starts
template <typename I, typename P>
__global__ void find_bases(Context* ctx, const I* indptr, const I* indices, const I* order, const P* starts, int each,
    int height, int largest, P* base, unsigned char* wide, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long s = blockIdx.x, rows = indptr_size - 1;
  const P first = starts[s] / each;
  const int width = int(starts[s + 1] / each - first);
  bool far = false;
  if (height == 32 && sizeof(I) == 4) {                        // a thread a row; the warp reduces to the minimum
    const int lane = threadIdx.x;
    const Entries<I> row = entries_at(indptr, order, s * 32 + lane, rows);
    P own = 0;                                                // base of slice column `lane`, then of each 32nd after it
#pragma unroll 4
    for (int k = 0; k < width; ++k) {
      const bool there = k < row.length;
      const unsigned column = there ? unsigned(indices[row.begin + k]) : 0u;
      const unsigned least = __reduce_min_sync(~0u, there ? column : ~0u), most = __reduce_max_sync(~0u, column);
      far |= most - least > unsigned(largest);
      if (k % 32 == lane) own = P(least);
      if ((k % 32 == 31 || k == width - 1) && lane <= k % 32) base[first + k - k % 32 + lane] = own;
    }
  } else for (int k = threadIdx.x; k < width; k += height) {
    long long least = 0x7FFFFFFFFFFFFFFFll, most = -1;
    for (int lane = 0; lane < height; ++lane) {
      const Entries<I> row = entries_at(indptr, order, s * height + lane, rows);
      if (k >= row.length) continue;
      const long long column = indices[row.begin + k];
      least = min(least, column);
      most = max(most, column);
    }
    base[first + k] = P(least);
    far |= most - least > largest;
  }
  far = __syncthreads_or(far);
  if (threadIdx.x == 0) wide[s] = far;
  if (far)
    for (int k = threadIdx.x; k < width; k += height) base[first + k] = 0;
}
