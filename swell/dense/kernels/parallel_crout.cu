// A column and a row of Crout's method on a GPU, a block of X by X threads for X elements, which share out their sums' terms.
#include "context.cuh"

// l[i, j]: X lanes a row, each with every X-th term.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(X * X) column_step(Context* ctx, T* lu, long long row,
    long long column, int j, int first, int x, int threads, int n, const int* tiles) {
  if (stopped(ctx)) return;
  const int lane = threadIdx.x % X, i = j + blockIdx.x * X + threadIdx.x / X;
  T sum = T(0);
  if (i < n)
#pragma unroll 4
    for (int k = first + lane; k < j; k += X) sum = fused(lu[i * row + k * column], lu[k * row + j * column], sum);
#pragma unroll
  for (int o = X / 2; o; o >>= 1) sum += shuffle_xor(sum, o);
  if (i < n && lane == 0) lu[i * row + j * column] -= sum;       // (1.11)
}

// u[j, i]: neighbours in a row by neighbouring threads, X slices of the sum's terms.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(X * X) row_step(Context* ctx, T* lu, long long row,
    long long column, int j, int first, int left, int x, int threads, int n, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T sums[X][X + 1];
  const int slice = threadIdx.x / X, across = threadIdx.x % X, i = left + blockIdx.x * X + across;
  T sum = T(0);
  if (i < n)
#pragma unroll 4
    for (int k = first + slice; k < j; k += X) sum = fused(lu[j * row + k * column], lu[k * row + i * column], sum);
  sums[slice][across] = sum;
  __syncthreads();
#pragma unroll
  for (int o = X / 2; o; o >>= 1) {
    if (slice < o) sums[slice][across] += sums[slice + o][across];
    __syncthreads();
  }
  if (slice || i >= n) return;
  const T diagonal = lu[j * (row + column)];
  T value = lu[j * row + i * column] - sums[0][across];
  if (diagonal != T(0)) value = value / diagonal;                // (1.12)
  lu[j * row + i * column] = value;
}
