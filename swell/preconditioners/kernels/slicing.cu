// Sort the rows of a triangle for its solves, and store them in slices of 32 rows (preconditioners/level_schedule.py).
#include "context.cuh"

constexpr int SLICE = 32;

// keys = sort keys of the places of `order`: by descending row length inside windows. The windows divide the rows of a
// level, which begins at bounds[depth - 1]; without depth they divide all rows.
// launch: elements of order, 256 threads
template <typename I, bool DEPTH> __global__ void sort_keys(Context* ctx, const long long* order, const int* depth,
    const I* bounds, const I* indptr, int window, long long* keys, long long n) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n) return;
  const long long row = order[p], first = DEPTH ? bounds[depth[row] - 1] : 0;
  keys[p] = (first + (p - first) / window * window) * (n + 1) + n - (indptr[row + 1] - indptr[row]);
}

// sequence = order[sorted]; place = the place of each row in sequence.
// launch: elements of order, 256 threads
template <typename I>
__global__ void take_order(Context* ctx, const long long* order, const long long* sorted, I* sequence, I* place,
    long long n) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n) return;
  const long long row = order[sorted[p]];
  sequence[p] = I(row), place[row] = I(p);
}

// sizes = the places of each slice: 32 times the strictly triangular entries of its longest row.
// launch: elements of sizes, 256 threads, a warp each
template <typename I> __global__ void measure_slices(Context* ctx, const I* indptr, const I* indices, const I* sequence,
    bool lower, long long* sizes, long long n, long long sequence_size) {
  if (stopped(ctx)) return;
  const long long slice = thread_id() / 32, p = thread_id();
  if (slice >= n) return;
  int length = 0;
  if (p < sequence_size) {
    const I row = sequence[p];
    for (I k = indptr[row]; k < indptr[row + 1]; ++k) length += lower ? indices[k] < row : indices[k] > row;
  }
  for (int o = 16; o; o >>= 1) length = max(length, __shfl_xor_sync(~0u, length, o));
  if (threadIdx.x % 32 == 0) sizes[slice] = SLICE * length;
}

// Fill the slices with the entries of the strict triangle, columns multiplied by `scale` if given; column -1 marks
// padding.
// launch: elements of ptr, 256 threads, a warp each
template <typename T, typename V, typename I, typename P, bool SCALE> __global__ void fill_slices(Context* ctx,
    const I* indptr, const I* indices, const T* data, const T* scale, const I* sequence, const I* place_of, bool lower,
    const P* ptr, P* columns, V* values, V* inverse, long long n, long long sequence_size) {
  if (stopped(ctx)) return;
  const long long slice = thread_id() / 32, p = thread_id();
  if (slice >= n - 1) return;
  P at = ptr[slice] + threadIdx.x % 32;
  if (p < sequence_size) {
    const I row = sequence[p];
    for (I k = indptr[row]; k < indptr[row + 1]; ++k) {
      const I j = indices[k];
      if (!(lower ? j < row : j > row)) continue;
      columns[at] = P(place_of[j]), values[at] = V(SCALE ? data[k] * scale[j] : data[k]);
      at += SLICE;
    }
    inverse[p] = SCALE ? V(scale[row]) : V(1);
  }
  for (; at < ptr[slice + 1]; at += SLICE) columns[at] = P(-1), values[at] = V(0);
}
