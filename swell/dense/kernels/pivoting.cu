// The choice of a pivot and the swaps of rows, on a GPU; pivoting.py is the CPU's version.
#include "context.cuh"
#include "pivot.cuh"

// pivots[j] = the row of the largest element in column j from row j on; -1 if |lu[j, j]| is above `tolerance`.
// launch: one block of 1024 threads
template <typename T> __global__ void __launch_bounds__(1024) pick_pivot(Context* ctx, const T* lu, long long row,
    long long column, int j, double tolerance, int n, int* pivots) {
  if (stopped(ctx)) return;
  const bool wanted = !(double(modulus(lu[j * (row + column)])) > tolerance);
  double size = -1;
  int where = n;
  for (int i = j + threadIdx.x; wanted && i < n; i += blockDim.x)
    take_larger(size, where, size_of(lu[i * row + j * column]), i);
  largest_of_block(size, where);
  if (threadIdx.x == 0) pivots[j] = wanted ? where : -1;
}

// Swap row j with its pivot's row, a thread an element; the array of pivots has the length of a row.
// launch: elements of pivots, 256 threads
template <typename T> __global__ void swap_rows(Context* ctx, T* lu, long long row, long long column, int j, int n,
                                                const int* pivots) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  const int p = pivots[j];
  if (k >= n || p <= j) return;
  const T a = lu[j * row + k * column], b = lu[p * row + k * column];
  lu[j * row + k * column] = b, lu[p * row + k * column] = a;
}

// Do the swaps of rows first to first + size with their pivots' rows, in all columns but those from `left` to `right`. A block
// has 32 columns; its 8 warps share the rows. All rows are read before one is written.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(256) swap_all(Context* ctx, T* lu, long long row,
    long long column, int first, int size, int left, int right, int x, int threads, int n, const int* pivots,
    const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ int chosen[X], from[2 * X], to[2 * X];
  const int across = (n + 31) / 32, matrix = blockIdx.x / across, m = threadIdx.x;
  lu += (long long)matrix * n * n, pivots += (long long)matrix * n + first;
  if (m < X) chosen[m] = m < size && pivots[m] > first + m ? pivots[m] : first + m;
  __syncthreads();
  if (m < 2 * X) {
    const int place = m < X ? first + m : chosen[m - X];
    int source = place;
    for (int s = size - 1; s >= 0; --s) source = source == first + s ? chosen[s] : source == chosen[s] ? first + s : source;
    to[m] = m < size || place >= first + size ? place : source;  // a row within the front moves once only
    from[m] = source;
  }
  __syncthreads();
  const int k = blockIdx.x % across * 32 + m % 32, group = m / 32;
  const bool inside = k < n && (k < left || k >= right);
  T values[X / 4];
#pragma unroll
  for (int q = 0; q < X / 4; ++q)
    if (inside && from[group + 8 * q] != to[group + 8 * q]) values[q] = lu[from[group + 8 * q] * row + k * column];
  __syncthreads();
#pragma unroll
  for (int q = 0; q < X / 4; ++q) {
    const int e = group + 8 * q;
    if (inside && from[e] != to[e]) lu[to[e] * row + k * column] = values[q];
  }
}
