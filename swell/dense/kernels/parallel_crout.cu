// Crout's method on a GPU. A column and a row: a block of X by X threads for X elements; its threads share the terms of
// the sums. A front: the blocks of a cluster for X columns, so that no launch is needed between two columns; and a
// block for every X columns to its right. Of many matrices, which are n * n elements apart, each has its own blocks.
#include "context.cuh"
#include "bulk.cuh"
#include "front.cuh"

// l[i, j] for i >= j (1.11): X lanes a row, each with every X-th term.
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

// u[j, i] for left <= i < n (1.12): neighbouring threads have neighbours in the row; the terms of a sum are in X
// slices.
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

// The sum of own[k * step] D[k][c] over k < s: two sums, which halve the chain of dependent operations.
template <typename T, int X> DEVICE T sum_of_terms(const T* own, long long step, const T (&D)[X][X + 1], int s, int c) {
  T even(0), odd(0);
#pragma unroll 4
  for (int k = 0; k + 1 < s; k += 2) {
    even = fused(own[k * step], D[k][c], even);
    odd = fused(own[(k + 1) * step], D[k + 1][c], odd);
  }
  if (s & 1) even = fused(own[(s - 1) * step], D[s - 1][c], even);
  return even + odd;
}

// Complete `size` columns of L from `first` on, and the front's diagonal block of U, with pivots. A cluster a matrix; a
// thread computes an element of a column.
// launch: a block of threads threads for each slice of blocks, shared bytes shared, in clusters of cluster
template <typename T, int X>
__global__ void __launch_bounds__(512) front(Context* ctx, T* lu, long long row, long long column, int first, int size,
    bool pivot, int x, int threads, int shared, int cluster, double tolerance, int n, int* pivots, const int* blocks) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ T D[X][X + 1];
  __shared__ int chosen[X];
  if (stopped(ctx)) return;
  const int matrix = blockIdx.x / cluster, c = threadIdx.x;
  lu += (long long)matrix * n * n + first * (row + column), pivots += (long long)matrix * n + first;
  Front<T, X> front(memory, shared, lu, row, column, size, n - first - size, cluster);
  for (int e = c; e < X * X; e += blockDim.x)
    if (e / X < size && e % X < size) D[e / X][e % X] = lu[e / X * row + e % X * column];
  front.template copy<false>();
  front.wait();
  for (int s = 0; s < size; ++s) {
    double largest = -1;
    int where = 0;
    auto complete = [&](T* own, long long step, int i) {
      const T value = own[s * step] - sum_of_terms(own, step, D, s, s);                            // (1.11)
      own[s * step] = value;
      take_larger(largest, where, size_of(value), i);
    };
    for (int i = s + int(blockDim.x) - 1 - c; i < size; i += blockDim.x) complete(D[i], 1, i);
    for (int i = c; i < front.held; i += blockDim.x) complete(front.tile + i * (X + 1), 1, size + front.begin + i);
    for (int i = front.held + c; i < front.count; i += blockDim.x)
      complete(front.below + i * row, column, size + front.begin + i);
    largest_of_block(largest, where);                            // its barrier completes the column
    const bool wanted = pivot && !(double(modulus(D[s][s])) > tolerance);
    if (wanted) where = front.pivot(D, s, largest, where);
    if (c == 0) chosen[s] = wanted ? where : s;
    if (front.rank == 0 && c == 0) pivots[s] = wanted ? first + where : -1;
    if (c > s && c < size) {                                     // in the warp that has swapped the rows
      const T value = D[s][c] - sum_of_terms(D[s], 1, D, s, c), diagonal = D[s][s];
      D[s][c] = diagonal != T(0) ? value / diagonal : value;     // (1.12)
    }
    __syncthreads();
  }
  front.template copy<true>();
  if (front.rank == 0)
    for (int e = c; e < X * X; e += blockDim.x)
      if (e / X < size && e % X < size) lu[e / X * row + e % X * column] = D[e / X][e % X];
  if (pivot) front.template swap<8>(lu, chosen, first, first, first + size, n);
}

// Complete the front's rows of U in columns left to end, a thread a column. Only the last front has less than X rows,
// and it has no columns to its right.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(64) beside(Context* ctx, T* lu, long long row,
    long long column, int first, int size, int left, int end, int x, int threads, int n, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T L[X][X + 1];
  const int across = (end - left + blockDim.x - 1) / blockDim.x;
  const int j = left + blockIdx.x % across * blockDim.x + threadIdx.x;
  lu += (long long)(blockIdx.x / across) * n * n + first * row;
  for (int e = threadIdx.x; e < X * X; e += blockDim.x) L[e / X][e % X] = lu[e / X * row + (first + e % X) * column];
  T v[X];
#pragma unroll
  for (int k = 0; k < X; ++k) v[k] = j < end ? lu[k * row + j * column] : T(0);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < X; ++k) {
    if (L[k][k] != T(0)) v[k] = v[k] / L[k][k];
#pragma unroll
    for (int i = k + 1; i < X; ++i) v[i] = fused(-L[i][k], v[k], v[i]);                            // (1.12)
  }
#pragma unroll
  for (int k = 0; k < X; ++k)
    if (j < end) lu[k * row + j * column] = v[k];
}
