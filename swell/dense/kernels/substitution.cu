// Substitution as an iteration, on a GPU; V as in substitution.cpp. A block has ROWS rows by 8 right-hand sides.
#include "context.cuh"
#include "settled.cuh"

// Iterate a block of rows until it has settled, in shared memory, from the first position that is not final for all 8.
// launch: a block of threads threads for each slice of counts
template <typename T, int ROWS>
__global__ void __launch_bounds__(8 * ROWS) settle(Context* ctx, const T* lu, long long row, long long column,
    int first, int size, int backward, int unit, int rows, int threads, double tolerance, T* V, int n, int m,
    int* counts) {
  if (stopped(ctx)) return;
  __shared__ T v[8][ROWS];
  __shared__ int changed;
  const int p = threadIdx.x % ROWS, r = threadIdx.x / ROWS, start = backward ? first + size - 1 : first,
      step = backward ? -1 : 1;
  const long long i = start + step * p, at = i + (8ll * blockIdx.x + r) * n;
  const bool inside = p < size && 8 * blockIdx.x + r < m;
  T b = T(0), own = T(0), base = T(0), diagonal = T(1);
  if (inside) {
    b = own = V[at];
    if (!unit) diagonal = lu[i * (row + column)];
  }
  v[r][p] = own;
  int front = 0, iterations = 0;
  while (front < size) {
    if (threadIdx.x == 0) changed = size;
    __syncthreads();
    const bool active = inside && p >= front;
    if (active) {
      T sum = base;
      for (int q = front; q < p; ++q) sum = fused(lu[i * row + (start + step * q) * column], v[r][q], sum);
      T value = b - sum;
      if (!unit) value = value / diagonal;
      if (!settled(value, own, tolerance)) atomicMin(&changed, p);
      own = value;
    }
    __syncthreads();
    const int after = changed > front + 1 ? changed : front + 1;  // the first entry needed final ones only: it is final
    if (active) v[r][p] = own;
    __syncthreads();
    if (inside)
      for (int q = front; q < after && q < p; ++q)
        base = fused(lu[i * row + (start + step * q) * column], v[r][q], base);
    front = after;
    ++iterations;
  }
  if (inside) V[at] = own;
  if (threadIdx.x == 0) counts[blockIdx.x] += iterations;
}

// One iteration of all rows, from now to then, a thread an entry; changed[0] = 1 if an entry has changed.
// launch: a block of threads threads for each slice of tiles
template <typename T, int ROWS>
__global__ void __launch_bounds__(8 * ROWS) sweep(Context* ctx, const T* lu, long long row, long long column,
    int backward, int unit, const T* b, const T* now, T* then, int rows, int threads, double tolerance, int n, int m,
    int* changed, const int* tiles) {
  if (stopped(ctx)) return;
  const int across = (n + ROWS - 1) / ROWS;
  const long long i = blockIdx.x % across * (long long)ROWS + threadIdx.x % ROWS,
      r = blockIdx.x / across * 8ll + threadIdx.x / ROWS;
  if (i >= n || r >= m) return;
  T sum = T(0);
  for (long long k = backward ? i + 1 : 0; k < (backward ? n : i); ++k)
    sum = fused(lu[i * row + k * column], now[k + r * n], sum);
  T value = b[i + r * n] - sum;
  if (!unit) value = value / lu[i * (row + column)];
  then[i + r * n] = value;
  if (!settled(value, now[i + r * n], tolerance)) changed[0] = 1;
}
