// The fronts of the iterative Crout method on a GPU: final elements are not computed again. fronts.py defines keys, final
// elements and `state`. In `settle` a block has X by X threads, and a thread an element of the diagonal block, or of a row below
// it; in the other kernels a thread has a whole row or column. A launch handles many matrices, which are n * n elements apart. Between kernels, entries that are not
// final hold A less the terms of finished fronts.
#include "context.cuh"
#include "bulk.cuh"
#include "front.cuh"

// Iterate v = r - sum of v[k] U[k][lane] over front <= k < lane in the lanes from front to end, by the X lanes of a row. r is an
// entry of A less the terms of the lanes before front. Returns the number of iterations.
template <int X, class T> DEVICE int settle_line(T r, T& v, const T (&U)[X][X + 1], int front, int end, double tolerance) {
  const int lane = threadIdx.x % X, group = threadIdx.x % 32 / X * X;
  const unsigned mine = X == 32 ? ~0u : (1u << X % 32) - 1;
  int iterations = 0;
  while (__any_sync(~0u, front < end)) {
    T value = r;
    for (int k = X == 32 ? front : 0; k < (X == 32 ? end : X) - 1; ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < lane && lane < end) value = fused(-l, U[k][lane], value);
    }
    const bool active = front <= lane && lane < end;
    const unsigned changed = __ballot_sync(~0u, active && !settled(value, v, tolerance)) >> group & mine;
    if (active) v = value;
    int after = changed ? __ffs(changed) - 1 : end;
    if (after < front + 1) after = front + 1;                    // the first element needed final ones only: it is final
    if (after > end) after = end;
    for (int k = X == 32 ? front : 0; k < (X == 32 ? after : X); ++k) {
      const T l = shuffle(v, group + k);
      if (k >= front && k < after && k < lane) r = fused(-l, U[k][lane], r);
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

// r less the terms of the elements before `begin` of its row, which are in the first lanes.
template <int X, class T> DEVICE T less_final(T r, const T (&U)[X][X + 1], int begin) {
  const int lane = threadIdx.x % X, group = threadIdx.x % 32 / X * X;
  for (int k = 0; k < begin; ++k) {
    const T l = shuffle(r, group + k);
    if (lane >= begin) r = fused(-l, U[k][lane], r);
  }
  return r;
}

// Iterate the diagonal block up to a bad element, then the rows below in the columns up to it; swap the pivot's row;
// and so on until there is no bad element. A cluster a matrix: each of its blocks iterates the diagonal block, and some of the
// rows. Below the diagonal block, `rest` takes what is left.
// launch: a block of threads threads for each slice of blocks, shared bytes shared, in clusters of cluster
template <typename T, int X> __global__ void __launch_bounds__(X * X) settle(Context* ctx, T* lu, T* estimate, long long row,
    long long column, int first, int size, bool choose, bool own, int x, int threads, int shared, int cluster,
    double tolerance, double lower, double upper, int n, int* state, int* pivots, int* counts, int* below, const int* blocks) {
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
  T a = inside ? lu[i * row + j * column] : T(0), r = a, v = inside ? estimate[i * row + j * column] : T(0);    // r: a less the terms of final elements
  int front = 0, search = 0, iterations = 0, b;                  // the rows below are complete up to column `search`
  V[i][j] = v;
  if (threadIdx.x == 0) changed[0] = changed[1] = 2 * size;
  rows.wait();
  for (;;) {
    for (;; ++iterations) {
      const unsigned bad = __ballot_sync(~0u, search <= lane && lane < size && !good(V[lane % X][lane % X], lower, upper));
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
      int after = *now > front + 1 ? *now : front + 1;           // the first element needed final ones only: it is final
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
    if (search == b) {                                           // one column, which needs final elements only: one iteration
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
        const T left = less_final<X>(mine ? rows.at(t + i, j) : T(0), V, search);
        T l = search || !mine ? left : estimate[(size + rows.begin + t + i) * row + j * column];
        const int took = settle_line<X>(left, l, V, mine ? search : b + 1, b + 1, tolerance);
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

constexpr int BLOCK = 8;     // final elements whose terms are subtracted together

// Iterate v[c] = (left[c] - sum of v[k] L[c][k] over k < c) inverse[c] in the elements c >= front of a thread's line, whose left[c]
// is at left[32 c]. The terms of full blocks of final elements, of all lines of a warp, are subtracted from `left`. Returns the
// number of iterations.
template <int X, class T> DEVICE int settle_own_line(T (&v)[X], T* left, const T (&L)[X][X], const T (&inverse)[X], int front,
                                                     double tolerance) {
  int base = 0, iterations = 0;
  for (;;) {
    const int least = __reduce_min_sync(~0u, front);
#pragma unroll
    for (int b = 0; b < X; b += BLOCK)
      if (base <= b && b + BLOCK <= least)
#pragma unroll
        for (int c = b + BLOCK; c < X; ++c) {
          T value = left[33 * c];
#pragma unroll
          for (int k = b; k < b + BLOCK; ++k) value = fused(-v[k], L[c][k], value);
          left[33 * c] = value;
        }
    if (least == X) return iterations;
    base = least / BLOCK * BLOCK;
    int changed = X;
#pragma unroll
    for (int c = X - 1; c >= 0; --c) {                           // backwards: c must read the last iterate
      if (c < base) continue;
      T value = left[33 * c];
#pragma unroll
      for (int b = 0; b < c; b += BLOCK)
        if (b >= base)
#pragma unroll
          for (int k = b; k < b + BLOCK && k < c; ++k) value = fused(-v[k], L[c][k], value);
      value = value * inverse[c];
      if (c < front) continue;
      if (!settled(value, v[c], tolerance)) changed = c;
      v[c] = value;
    }
    if (front == X) continue;
    front = changed > front + 1 ? changed : front + 1;           // the first element needed final ones only: it is final
    ++iterations;
  }
}

// Iterate lines from..end of a matrix, 32 a block, in their elements from `begin` on: rows of L below a front (along: the distance
// of columns), or columns of U beside it. Only U is divided by the diagonal (`divide`). corner: the front's entry in line 0.
template <int X, class T> DEVICE void settle_lines(T* corner, const T* estimate, long long along, long long across, bool divide,
                                                   int first, int begin, int from, int end, double tolerance, int* counts) {
  __shared__ __align__(16) T L[X][X];
  __shared__ T inverse[X], left[X][33];
  __shared__ int slowest[32 / X];
  const int t = threadIdx.x, lines = end - from < 32 ? end - from : 32;
  auto copy = [&](auto move) {                                   // neighbouring threads access neighbours in memory
    for (int e = t; e < X * 32; e += 32) {
      const int l = across == 1 ? e % 32 : e / X, c = across == 1 ? e / 32 : e % X;
      if (l < lines) move(c, l, (from + l) * across + c * along);
    }
  };
  T v[X];
  copy([&](int c, int l, long long at) { left[c][l] = estimate[at]; });
  __syncwarp();
#pragma unroll
  for (int c = 0; c < X; ++c) v[c] = left[c][t];
  __syncwarp();
  copy([&](int c, int l, long long at) { left[c][l] = corner[at]; });
  for (int e = t; e < X * X; e += 32) {
    const int c = across == 1 ? e / X : e % X, k = across == 1 ? e % X : e / X;
    L[c][k] = k <= c ? corner[c * along + (first + k) * across] : T(0);
  }
  if (t < 32 / X) slowest[t] = 0;
  __syncwarp();
  if (t < X) inverse[t] = divide && L[t][t] != T(0) ? T(1) / L[t][t] : T(1);
#pragma unroll
  for (int c = 0; c < X; ++c)
    if (c < begin) v[c] = left[c][t];
  __syncwarp();
  atomicMax(slowest + t / X, settle_own_line<X>(v, &left[0][t], L, inverse, t < lines ? begin : X, tolerance));
#pragma unroll
  for (int c = 0; c < X; ++c) left[c][t] = v[c];
  __syncwarp();
  copy([&](int c, int l, long long at) { if (c >= begin) corner[at] = left[c][l]; });
  if (t % X == 0 && t < lines) counts[(from + t) / X] += slowest[t / X];
}

// Iterate (1.11) in the rows below the diagonal block, in the columns that `settle` has left.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(32) rest(Context* ctx, T* lu, const T* estimate, long long row,
    long long column, int first, int size, int x, int threads, double tolerance, int n, const int* state, int* counts,
    const int* tiles) {
  if (stopped(ctx)) return;
  const int across = (n - first - size + 31) / 32, matrix = blockIdx.x / across, begin = state[matrix];
  if (begin == size) return;
  const long long corner = (long long)matrix * n * n + first * column;
  settle_lines<X>(lu + corner, estimate + corner, column, row, false, first, begin, first + size + blockIdx.x % across * 32, n, tolerance,
                  counts + matrix * ((n + X - 1) / X));
}

// Iterate (1.12) in the columns to the right of the diagonal block.
// launch: a block of threads threads for each slice of tiles
template <typename T, int X> __global__ void __launch_bounds__(32) settle_right(Context* ctx, T* lu, const T* estimate,
    long long row, long long column, int first, int size, int left, int right, int x, int threads, double tolerance, int n,
    int* counts, const int* tiles) {
  if (stopped(ctx)) return;
  const int across = (right - left + 31) / 32, matrix = blockIdx.x / across;
  const long long corner = (long long)matrix * n * n + first * row;
  settle_lines<X>(lu + corner, estimate + corner, row, column, true, first, 0, left + blockIdx.x % across * 32, right, tolerance,
                  counts + matrix * ((n + X - 1) / X));
}
