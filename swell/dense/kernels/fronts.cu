// The fronts of the iterative Crout method on a GPU: final elements are not computed again. fronts.py defines keys, final
// elements and `state`. A block has X by X threads. A thread has an element of the diagonal block, or of a row below it, or of a
// column to its right. A launch handles many matrices, which are n * n elements apart.
#include "context.cuh"
#include "pivot.cuh"

// Iterate the diagonal block, in shared memory, up to a bad element; `again` from behind the last one.
// launch: a block of threads threads for each slice of matrices
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle_diagonal(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int again, int x, int threads, double tolerance, double lower,
    double upper, int n, int* state, const int* matrices) {
  if (stopped(ctx)) return;
  lu += (long long)blockIdx.x * n * n, estimate += (long long)blockIdx.x * n * n, state += 3 * blockIdx.x;
  const int search = !again ? 0 : state[1] + 1 < size ? state[1] + 1 : size;
  __syncthreads();                                               // all threads have read `state`
  if (search == size) {
    if (threadIdx.x == 0) state[0] = state[1] = size, state[2] = 0;
    return;
  }
  int front = search ? 2 * search - 1 : 0;
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
    int after = changed > front + 1 ? changed : front + 1;       // the first element needed final ones only: it is final
    after = after < limit + 1 ? after : limit + 1;
    __syncthreads();
    if (inside && key >= after)
      for (int k = front / 2; k < after / 2 && k < steps; ++k) base = fused(V[i][k], V[k][j], base);
    front = after;
    ++iterations;
  }
  if (inside && key < front) lu[at] = v;
  if (threadIdx.x == 0) state[0] = search, state[1] = bad, state[2] = iterations;
}

// Iterate v = (a - sum of v[k] entering[lane][k] over k < lane) / entering[lane][lane] in the lanes from front to end, by the X
// lanes of a row or a column. Only `divide` divides. Returns the number of iterations.
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
    if (after < front + 1) after = front + 1;                    // the first element needed final ones only: it is final
    for (int k = X == 32 ? front : 0; k < X; ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < after && k < lane) base = fused(l, entering[lane][k], base);
    }
    if (front < end) front = after, ++iterations;
  }
  return iterations;
}

// Load (store) element (line, lane) of X lines of X elements through shared memory, so that a warp accesses neighbours in
// memory. `along`: the elements of a line are neighbours.
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

// Add the iterations of the slowest line to the tile's count.
DEVICE void count_slowest(int iterations, int* count) {
  __shared__ int slowest;
  if (threadIdx.x == 0) slowest = 0;
  __syncthreads();
  atomicMax(&slowest, iterations);
  __syncthreads();
  if (threadIdx.x == 0) *count += slowest;
}

// Iterate (1.11) in the rows below the diagonal block, X rows a block.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle_lower(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int x, int threads, double tolerance, int n, const int* state,
    int* counts, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T entering[X][X + 1], tile[X][X + 1];
  const int across = (n - first - size + X - 1) / X, matrix = blockIdx.x / across;
  const int begin = state[3 * matrix], end = state[3 * matrix + 1] + 1 < size ? state[3 * matrix + 1] + 1 : size;
  if (begin == end) return;
  lu += (long long)matrix * n * n, estimate += (long long)matrix * n * n, counts += matrix * ((n + X - 1) / X);
  const int a = threadIdx.x / X, b = threadIdx.x % X, top = first + size + blockIdx.x % across * X;
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
  count_slowest(iterations, counts + top / X);
}

// Swap the row of each matrix's bad element with the row of the largest in its column; in the estimate too unless `own`.
// launch: a block of threads threads for each slice of matrices
template <typename T> __global__ void __launch_bounds__(1024) pivot(Context* ctx, T* lu, T* estimate, long long row,
    long long column, int first, int size, int threads, bool own, int n, const int* state, int* pivots, const int* matrices) {
  if (stopped(ctx)) return;
  const int bad = state[3 * blockIdx.x + 1], j = first + bad;
  if (bad == size || j >= n - 1) return;
  lu += (long long)blockIdx.x * n * n, estimate += (long long)blockIdx.x * n * n;
  double largest = -1;
  int where = n;
  for (int i = j + threadIdx.x; i < n; i += blockDim.x) take_larger(largest, where, size_of(lu[i * row + j * column]), i);
  largest_of_block(largest, where);
  if (threadIdx.x == 0) pivots[(long long)blockIdx.x * n + j] = where;
  if (where == j) return;
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    const long long one = j * row + k * column, other = where * row + k * column;
    const T a = lu[one], b = lu[other];
    lu[one] = b, lu[other] = a;
    if (own) continue;
    const T c = estimate[one], d = estimate[other];
    estimate[one] = d, estimate[other] = c;
  }
}

// Iterate (1.12) in the columns to the right of the diagonal block, X columns a block.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle_right(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int left, int right, int x, int threads, double tolerance, int n,
    int* counts, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T entering[X][X + 1], tile[X][X + 1];
  const int across = (right - left + X - 1) / X, matrix = blockIdx.x / across;
  const int a = threadIdx.x / X, b = threadIdx.x % X, begin = left + blockIdx.x % across * X;
  const int lines = right - begin < X ? right - begin : X;
  lu += (long long)matrix * n * n, estimate += (long long)matrix * n * n, counts += matrix * ((n + X - 1) / X);
  const bool along = row == 1;
  const long long at = first * row + begin * column;
  const int c = along ? b : a, k = along ? a : b;
  entering[c][k] = k <= c && c < size ? lu[(first + c) * row + (first + k) * column] : T(0);
  const T of_A = load_line<X>(lu + at, tile, column, row, along, lines, size);
  T v = load_line<X>(estimate + at, tile, column, row, along, lines, size);
  const int iterations = settle_line<X>(of_A, v, entering, true, a < lines ? 0 : size, size, tolerance);
  store_line<X>(lu + at, v, tile, column, row, along, lines, 0, size);
  count_slowest(iterations, counts + begin / X);
}
