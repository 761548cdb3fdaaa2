// The fronts of the iterative Crout method on a GPU: final elements are not computed again. fronts.cpp defines keys,
// final elements and `state`. A block has X by X threads. A thread has an element of the diagonal block, or of a row
// below it, or of a column to its right. A launch handles many matrices, which are n * n elements apart. Between
// kernels, entries that are not final hold A less the terms of finished fronts.
#include "context.cuh"
#include "bulk.cuh"
#include "front.cuh"

// Iterate v = (r - sum of v[k] entering[lane][k] over front <= k < lane) inverse in the lanes from front to end, by the
// X lanes of a row or a column. `inverse`: of the lane's diagonal element; 1 in a row of L. r is an entry of A less the
// terms of final elements; those before end - 1 are subtracted from all lanes behind them. Returns the number of
// iterations. UPPER:
// entering[k][lane] is in the place of entering[lane][k].
template <int X, bool UPPER, class T>
DEVICE int settle_line(T& r, T& v, const T (&entering)[X][X + 1], T inverse, int front, int end, double tolerance) {
  const int lane = threadIdx.x % X, group = threadIdx.x % 32 / X * X;
  const unsigned mine = X == 32 ? ~0u : (1u << X % 32) - 1;
  auto term = [&](int k) { return UPPER ? entering[k][lane] : entering[lane][k]; };
  int iterations = 0;
  while (__any_sync(~0u, front < end)) {
    T value = r;
    for (int k = X == 32 ? front : 0; k < (X == 32 ? end : X) - 1; ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < lane && lane < end) value = fused(-l, term(k), value);
    }
    value = value * inverse;
    const bool active = front <= lane && lane < end;
    const unsigned changed = __ballot_sync(~0u, active && !settled(value, v, tolerance)) >> group & mine;
    if (active) v = value;
    int after = changed ? __ffs(changed) - 1 : end;
    if (after < front + 1) after = front + 1;                   // the first element needed final ones only: it is final
    if (after > end) after = end;
    const int until = after < end ? after : end - 1;             // no lane before end needs the last element
    for (int k = X == 32 ? front : 0; k < (X == 32 ? until : X); ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < until && k < lane) r = fused(-l, term(k), r);
    }
    if (front < end) front = after, ++iterations;
  }
  return iterations;
}

// Add the iterations of the slowest line to the tile's count.
DEVICE void count_slowest(int iterations, int* count) {
  __shared__ int slowest;
  if (threadIdx.x == 0) slowest = 0;
  __syncthreads();
  atomicMax(&slowest, iterations);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(count, slowest);
}

// r less the terms of the elements before `begin` of its line, which are in the first lanes.
template <int X, bool UPPER, class T> DEVICE T less_final(T r, const T (&entering)[X][X + 1], int begin) {
  const int lane = threadIdx.x % X, group = threadIdx.x % 32 / X * X;
  for (int k = 0; k < begin; ++k) {
    const T l = shuffle(r, group + k);
    if (lane >= begin) r = fused(-l, UPPER ? entering[k][lane] : entering[lane][k], r);
  }
  return r;
}

// Iterate the diagonal block up to a bad element, then the rows below in the columns up to it; swap the pivot's row;
// and so on until there is no bad element. A cluster a matrix: each of its blocks iterates the diagonal block, and some
// of the rows. Below the diagonal block, `rest` takes the other rows.
// launch: a block of threads threads for each slice of blocks, shared bytes shared, in clusters of cluster
template <typename T, int X>
__global__ void __launch_bounds__(X * X) settle(Context* ctx, T* lu, T* estimate, long long row, long long column,
    int first, int size, bool choose, bool own, int x, int threads, int shared, int cluster, double tolerance,
    double lower, double upper, int n, int* state, int* pivots, int* counts, int* below, const int* blocks) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ T V[X][X + 1];
  __shared__ int changed[2], chosen[X];
  if (stopped(ctx)) return;
  const int matrix = blockIdx.x / cluster, i = threadIdx.x / X, j = threadIdx.x % X, lane = threadIdx.x % 32;
  const int steps = i < j ? i : j, key = 2 * steps + (i < j);
  const long long corner = (long long)matrix * n * n + first * (row + column);
  if (threadIdx.x < X) chosen[threadIdx.x] = threadIdx.x;
  lu += corner, estimate += corner;
  pivots += (long long)matrix * n + first, below += matrix * ((n + X - 1) / X) + first / X;
  Front<T, X> rows(memory, shared, lu, row, column, size, n - first - size, cluster);
  const bool inside = i < size && j < size;
  // r: a less the terms of final elements
  T a = inside ? lu[i * row + j * column] : T(0), r = a, v = inside ? estimate[i * row + j * column] : T(0);
  int front = 0, search = 0, iterations = 0, b;                  // the rows below are complete up to column `search`
  V[i][j] = v;
  if (threadIdx.x == 0) changed[0] = changed[1] = 2 * size;
  rows.wait();
  for (;;) {
    for (;; ++iterations) {
      const unsigned bad = __ballot_sync(~0u, search <= lane && lane < size
          && !good(V[lane % X][lane % X], lower, upper));
      b = bad ? __ffs(bad) - 1 : size;
      const int limit = b < size ? 2 * b : 2 * size - 1;
      if (front > limit) break;
      const bool active = inside && front <= key && key <= limit;
      bool waits = false;
      if (active) {
        T value = r;
        for (int k = front / 2; k < steps; ++k) value = fused(-V[i][k], V[k][j], value);           // (1.11)
        if (i < j && V[i][i] != T(0)) value = value / V[i][i];                                     // (1.12)
        waits = !settled(value, v, tolerance);
        v = value;
      }
      int* const now = changed + iterations % 2;
      const int least = __reduce_min_sync(~0u, waits ? key : 2 * size);
      if (lane == 0 && least < 2 * size) atomicMin(now, least);
      if (threadIdx.x == 0) changed[(iterations + 1) % 2] = 2 * size;
      __syncthreads();
      if (active) V[i][j] = v;
      int after = *now > front + 1 ? *now : front + 1;          // the first element needed final ones only: it is final
      after = after < limit + 1 ? after : limit + 1;
      __syncthreads();
      if (inside && key >= after)
        for (int k = front / 2; k < after / 2 && k < steps; ++k) r = fused(-V[i][k], V[k][j], r);
      front = after;
    }
    if (b == size) break;
    if (search == 0) rows.template copy<false>();
    __syncthreads();                                             // all have read V
    if (key >= front) V[i][j] = a;
    double largest = -1;
    int where = 0;
    if (i >= b && i < size && j == b) largest = size_of(v), where = i;
    if (search == b) {                                     // one column, which needs final elements only: one iteration
      for (int t = threadIdx.x; t < rows.count; t += blockDim.x) {
        T* const own = &rows.at(t, 0);
        const long long step = t < rows.held ? 1 : column;
        T value = own[b * step];
#pragma unroll 4
        for (int k = 0; k < b; ++k) value = fused(-own[k * step], V[k][b], value);
        own[b * step] = value;
        take_larger(largest, where, size_of(value), size + rows.begin + t);
        if (t % X == 0) atomicAdd(below + (size + rows.begin + t) / X, 1);
      }
    } else {
      for (int t = 0; t < rows.count; t += X) {
        const bool mine = t + i < rows.count;
        T left = less_final<X, true>(mine ? rows.at(t + i, j) : T(0), V, search);
        T l = search || !mine ? left : estimate[(size + rows.begin + t + i) * row + j * column];
        const int took = settle_line<X, true>(left, l, V, T(1), mine ? search : b + 1, b + 1, tolerance);
        count_slowest(took, below + (size + rows.begin + t) / X);
        if (mine && search <= j && j <= b) rows.at(t + i, j) = l;
        if (mine && j == b) take_larger(largest, where, size_of(l), size + rows.begin + t + i);
      }
    }
    const bool swaps = choose && first + b < n - 1;
    if (swaps) {
      largest_of_block(largest, where);
      where = rows.pivot(V, b, largest, where);
      if (threadIdx.x == 0) chosen[b] = where;
      if (rows.rank == 0 && threadIdx.x == 0) pivots[b] = first + where;
    }
    __syncthreads();
    v = a = V[i][j];
    if (swaps && key >= front && (i == b || i == chosen[b])) {
      r = a;
      for (int k = 0; k < b; ++k) r = fused(-V[i][k], V[k][j], r);
    }
    search = b + 1;
    if (search == size) break;
  }
  __syncthreads();
  if (search) rows.template copy<true>();
  if (rows.rank == 0) {
    if (inside) lu[i * row + j * column] = v;
    if (threadIdx.x == 0) state[matrix] = search, counts[matrix] += iterations;
  }
  if (!choose || !search) return;
  constexpr int WARPS = X * X / 32, GROUPS = WARPS < 8 ? WARPS : 8;
  rows.template swap<GROUPS>(lu, chosen, first, first, first + size, n);
  if (!own) rows.template swap<GROUPS>(estimate, chosen, first, n, n, n);
}

// Load (store) element (line, lane) of X lines of X elements through shared memory, so that a warp accesses neighbours
// in memory. `along`: the elements of a line are neighbours.
template <int X, class T>
DEVICE T load_line(const T* from, T (&tile)[X][X + 1], long long line, long long element, bool along, int lines,
    int elements) {
  const int a = threadIdx.x / X, b = threadIdx.x % X, i = along ? a : b, k = along ? b : a;
  __syncthreads();
  if (i < lines && k < elements) tile[i][k] = from[i * line + k * element];
  __syncthreads();
  return a < lines && b < elements ? tile[a][b] : T(0);
}
template <int X, class T>
DEVICE void store_line(T* to, T v, T (&tile)[X][X + 1], long long line, long long element, bool along, int lines,
    int begin, int end) {
  const int a = threadIdx.x / X, b = threadIdx.x % X, i = along ? a : b, k = along ? b : a;
  __syncthreads();
  tile[a][b] = v;
  __syncthreads();
  if (i < lines && begin <= k && k < end) to[i * line + k * element] = tile[i][k];
}

// Iterate (1.11) in the rows below the diagonal block, in the columns that `settle` has left, X rows a block.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(X * X) rest(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int x, int threads, double tolerance, int n, const int* state,
    int* counts, const int* tiles) {
  if (stopped(ctx)) return;
  __shared__ T entering[X][X + 1], tile[X][X + 1];
  const int across = (n - first - size + X - 1) / X, matrix = blockIdx.x / across, begin = state[matrix];
  if (begin == size) return;
  lu += (long long)matrix * n * n, estimate += (long long)matrix * n * n, counts += matrix * ((n + X - 1) / X);
  const int a = threadIdx.x / X, b = threadIdx.x % X, top = first + size + blockIdx.x % across * X;
  const int lines = n - top < X ? n - top : X;
  const bool along = column == 1;
  const long long at = top * row + first * column;
  const int c = along ? b : a, k = along ? a : b;
  entering[c][k] = k < c ? lu[(first + k) * row + (first + c) * column] : T(0);
  T left = load_line<X>(lu + at, tile, row, column, along, lines, size);
  T v = load_line<X>(estimate + at, tile, row, column, along, lines, size);
  left = less_final<X, false>(left, entering, begin);
  const int iterations = settle_line<X, false>(left, v, entering, T(1), a < lines ? begin : size, size, tolerance);
  store_line<X>(lu + at, v, tile, row, column, along, lines, begin, size);
  count_slowest(iterations, counts + top / X);
}

// Iterate (1.12) in the columns to the right of the diagonal block, X columns a block.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X>
__global__ void __launch_bounds__(X * X) settle_right(Context* ctx, T* lu, const T* estimate, long long row,
    long long column, int first, int size, int left, int right, int x, int threads, double tolerance, int n,
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
  T left_of_A = load_line<X>(lu + at, tile, column, row, along, lines, size);
  T v = load_line<X>(estimate + at, tile, column, row, along, lines, size);
  const T diagonal = entering[b][b];
  const T inverse = diagonal != T(0) ? T(1) / diagonal : T(1);
  const int iterations = settle_line<X, false>(left_of_A, v, entering, inverse, a < lines ? 0 : size, size, tolerance);
  store_line<X>(lu + at, v, tile, column, row, along, lines, 0, size);
  count_slowest(iterations, counts + begin / X);
}
