// The fronts of the iterative Crout method on a GPU: what has settled is not computed again. Keys, and what is final, as in
// fronts.py. A block is X by X threads: an element each in the diagonal block, an element of a row (a column) each beside it.
#include "context.cuh"
#include "settled.cuh"

// The diagonal block, in shared memory; threads beyond its X * X have nothing to do.
// launch: one block of 1024 threads
template <typename T, int X> __global__ void __launch_bounds__(1024) settle_diagonal(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int front, int search, int x, double tolerance, double lower,
    double upper, int* status) {
  if (stopped(ctx)) return;
  __shared__ T V[X][X + 1];
  __shared__ int changed, bad;
  const int i = threadIdx.x / X, j = threadIdx.x % X, steps = i < j ? i : j, key = 2 * steps + (i < j);
  const bool inside = i < size && j < size;
  const long long at = (first + i) * row + (first + j) * column;
  T a = T(0), v = T(0), base = T(0);
  if (inside) {
    a = lu[at], v = key < front ? a : estimate[at];
    V[i][j] = v;
  }
  __syncthreads();
  if (inside && key >= front)
    for (int k = 0; k < front / 2 && k < steps; ++k) base = fused(V[i][k], V[k][j], base);
  int iterations = 0;
  for (;;) {
    if (threadIdx.x == 0) changed = 2 * size, bad = size;
    __syncthreads();
    if (inside && i == j && i >= search && !good(v, lower, upper)) atomicMin(&bad, i);
    __syncthreads();
    const int limit = bad < size ? 2 * bad : 2 * size - 1;
    if (front > limit) break;
    const bool active = inside && front <= key && key <= limit;
    if (active) {
      T sum = base;
      for (int k = front / 2; k < steps; ++k) sum = fused(V[i][k], V[k][j], sum);
      T value = a - sum;                                         // (1.11)
      if (i < j && V[i][i] != T(0)) value = value / V[i][i];     // (1.12)
      if (!settled(value, v, tolerance)) atomicMin(&changed, key);
      v = value;
    }
    __syncthreads();
    if (active) V[i][j] = v;
    int after = changed > front + 1 ? changed : front + 1;       // what it needed was final: so is it
    after = after < limit + 1 ? after : limit + 1;
    __syncthreads();
    if (inside && key >= after)
      for (int k = front / 2; k < after / 2 && k < steps; ++k) base = fused(V[i][k], V[k][j], base);
    front = after;
    ++iterations;
  }
  if (inside && key < front) lu[at] = v;
  if (threadIdx.x == 0) status[0] = iterations, status[1] = bad;
}

// v = (a - sum of v[k] entering[lane][k] over k < lane) / entering[lane][lane] in every lane from front to end, by the X lanes
// of a row or a column: the number of iterations.
template <int X, class T> DEVICE int settle_line(T a, T& v, const T (&entering)[X][X + 1], bool divide, int front, int end,
                                                 double tolerance) {
  const int lane = threadIdx.x % X, group = threadIdx.x % 32 / X * X;
  const unsigned mine = X == 32 ? ~0u : (1u << X % 32) - 1;
  T base = T(0);
  for (int k = 0; k < X; ++k) {
    const T l = shuffle(v, group + k);
    if (k < front && k < lane) base = fused(l, entering[lane][k], base);
  }
  int iterations = 0;
  while (__any_sync(~0u, front < end)) {
    T sum = base;
    for (int k = X == 32 ? front : 0; k < X; ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < lane) sum = fused(l, entering[lane][k], sum);
    }
    T value = a - sum;
    if (divide && entering[lane][lane] != T(0)) value = value / entering[lane][lane];
    const bool active = front <= lane && lane < end;
    const unsigned changed = __ballot_sync(~0u, active && !settled(value, v, tolerance)) >> group & mine;
    if (active) v = value;
    int after = changed ? __ffs(changed) - 1 : end;
    if (after < front + 1) after = front + 1;                    // what it needed was final: so is it
    for (int k = X == 32 ? front : 0; k < X; ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < after && k < lane) base = fused(l, entering[lane][k], base);
    }
    if (front < end) front = after, ++iterations;
  }
  return iterations;
}

// Element (line, lane) of X lines of X elements, by way of shared memory, so that neighbours in memory are read together.
// `along`: the elements of a line are neighbours.
template <int X, class T> DEVICE T load_line(const T* from, T (&tile)[X][X + 1], long long line, long long element, bool along,
                                             int lines, int elements) {
  const int a = threadIdx.x / X, b = threadIdx.x % X, i = along ? a : b, k = along ? b : a;
  __syncthreads();
  if (i < lines && k < elements) tile[i][k] = from[i * line + k * element];
  __syncthreads();
  return a < lines && b < elements ? tile[a][b] : T(0);
}
template <int X, class T> DEVICE void store_line(T* to, T v, T (&tile)[X][X + 1], long long line, long long element, bool along,
                                                 int lines, int begin, int end) {
  const int a = threadIdx.x / X, b = threadIdx.x % X, i = along ? a : b, k = along ? b : a;
  __syncthreads();
  tile[a][b] = v;
  __syncthreads();
  if (i < lines && begin <= k && k < end) to[i * line + k * element] = tile[i][k];
}

// The iterations of the slowest line, added to the tile's count.
DEVICE void count_slowest(int iterations, int* count) {
  __shared__ int slowest;
  if (threadIdx.x == 0) slowest = 0;
  __syncthreads();
  atomicMax(&slowest, iterations);
  __syncthreads();
  if (threadIdx.x == 0) *count += slowest;
}

// Rows below the diagonal block, X of them a block.
// launch: a block of threads threads for each slice of counts
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle_lower(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int begin, int end, int x, int threads, double tolerance, int n,
    int* counts) {
  if (stopped(ctx)) return;
  __shared__ T entering[X][X + 1], tile[X][X + 1];
  const int a = threadIdx.x / X, b = threadIdx.x % X, top = first + size + blockIdx.x * X;
  const int lines = n - top < X ? n - top : X;
  const bool along = column == 1;
  const long long at = top * row + first * column;
  const int c = along ? b : a, k = along ? a : b;
  entering[c][k] = k < c && c < end ? lu[(first + k) * row + (first + c) * column] : T(0);
  const T left = load_line<X>(lu + at, tile, row, column, along, lines, end);
  T v = load_line<X>(estimate + at, tile, row, column, along, lines, end);
  if (b < begin) v = left;
  const int iterations = settle_line<X>(left, v, entering, false, a < lines ? begin : end, end, tolerance);
  store_line<X>(lu + at, v, tile, row, column, along, lines, begin, end);
  count_slowest(iterations, counts + blockIdx.x);
}

// Columns to the right of the diagonal block, X of them a block.
// launch: a block of threads threads for each slice of counts
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle_right(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int left, int x, int threads, double tolerance, int n, int* counts) {
  if (stopped(ctx)) return;
  __shared__ T entering[X][X + 1], tile[X][X + 1];
  const int a = threadIdx.x / X, b = threadIdx.x % X, begin = left + blockIdx.x * X;
  const int lines = n - begin < X ? n - begin : X;
  const bool along = row == 1;
  const long long at = first * row + begin * column;
  const int c = along ? b : a, k = along ? a : b;
  entering[c][k] = k <= c && c < size ? lu[(first + c) * row + (first + k) * column] : T(0);
  const T right = load_line<X>(lu + at, tile, column, row, along, lines, size);
  T v = load_line<X>(estimate + at, tile, column, row, along, lines, size);
  const int iterations = settle_line<X>(right, v, entering, true, a < lines ? 0 : size, size, tolerance);
  store_line<X>(lu + at, v, tile, column, row, along, lines, 0, size);
  count_slowest(iterations, counts + blockIdx.x);
}
