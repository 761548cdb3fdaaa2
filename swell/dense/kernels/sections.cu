// One iteration of a section in the thesis' form of the iterative Crout method (listings 2.9, 2.10, C.3 to C.5): a
// block of X by X threads computes X by X elements, whole sums by tiles in shared memory. KIND: 0 diagonal, 1 below, 2
// to the right.
#include "context.cuh"
#include "settled.cuh"

// next = the new iterate of a section; flags[section] = 1 if an element has changed.
// launch: a block of threads threads for each slice of tiles
template <typename T, int KIND, int X>
__global__ void __launch_bounds__(X * X) compute(Context* ctx, int kind, const T* a, const T* lu, T* next,
    long long row, long long column, int top, int bottom, int left, int right, int bad, int x, int threads,
    double tolerance, int section, int* flags, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T L[X][X + 1], U[X][X + 1];
  const int across = (right - left + X - 1) / X, ty = threadIdx.x / X, tx = threadIdx.x % X;
  const int r = top + blockIdx.x / across * X, c = left + blockIdx.x % across * X;
  if (KIND == 0 && r > bad && c > bad) return;                   // the whole tile waits for the bad element
  const int i = r + ty, j = c + tx, own = KIND == 1 ? j : KIND == 2 ? i : i < j ? i : j;
  int most = KIND == 1 ? c + X : KIND == 2 ? r + X : (r < c ? r : c) + X;        // most terms of an element of the tile
  const int terms = KIND == 1 ? right : KIND == 2 ? bottom : right < bottom ? right : bottom;
  most = most < terms ? most : terms;
  T sum = T(0);
  for (int k = 0; k < most; k += X) {
    L[ty][tx] = i < bottom && k + tx < most ? lu[i * row + (k + tx) * column] : T(0);
    U[ty][tx] = j < right && k + ty < most ? lu[(k + ty) * row + j * column] : T(0);
    __syncthreads();
    const int count = own - k < X ? own - k : X;
    for (int t = 0; t < count; ++t) sum = fused(L[ty][t], U[t][tx], sum);
    __syncthreads();
  }
  if (i >= bottom || j >= right || (KIND == 0 && i >= bad && j > bad)) return;
  T value = a[i * row + j * column] - sum;                       // (1.11)
  if (i < j) {
    const T diagonal = lu[i * (row + column)];
    if (diagonal != T(0)) value = value / diagonal;              // (1.12)
  }
  if (!settled(value, lu[i * row + j * column], tolerance)) flags[section] = 1;
  next[i * row + j * column] = value;
}

// Copy the new iterate of a section to lu.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X>
__global__ void __launch_bounds__(X * X) assign(Context* ctx, T* lu, const T* next, long long row, long long column,
    int top, int bottom, int left, int right, int bad, int x, int threads, const int* tiles) {
  if (stopped(ctx)) return;
  const int across = (right - left + X - 1) / X;
  const int i = top + blockIdx.x / across * X + threadIdx.x / X, j = left + blockIdx.x % across * X + threadIdx.x % X;
  if (i < bottom && j < right && !(i >= bad && j > bad)) lu[i * row + j * column] = next[i * row + j * column];
}

// flags[0] = the first bad element from search to end; n if there is none.
// launch: one block of 1024 threads
template <typename T> __global__ void __launch_bounds__(1024) find_bad(Context* ctx, const T* lu, long long row,
    long long column, int search, int end, double lower, double upper, int n, int* flags) {
  if (stopped(ctx)) return;
  __shared__ int bad;
  if (threadIdx.x == 0) bad = n;
  __syncthreads();
  for (int j = search + threadIdx.x; j < end; j += blockDim.x)
    if (!good(lu[j * (row + column)], lower, upper)) atomicMin(&bad, j);
  __syncthreads();
  if (threadIdx.x == 0) flags[0] = bad;
}
