// Triangular solves on a GPU: by levels, without synchronisation, and by sweeps. preconditioners/level_schedule.py
// describes the layout: slices of 32 rows in level order, T = (I + N) D. So the sum of a row is final as soon as the
// sums of the rows that it needs are: w = b − N w, x = D⁻¹ w.
#include "columns.cuh"
#include "waiting.cuh"

constexpr int SLICE = 32, AHEAD = 4;

template <class V, class I> struct Factor {
  const I *rows, *ptr, *columns;
  const V *values, *inverse;
};

// Number, first entry and slice width of a row. width -1: no row.
template <class I> struct Place {
  I row, start;
  int width;
};

template <class V, class I> DEVICE Place<I> find_place(const Factor<V, I>& A, I p, I end) {
  Place<I> place{0, 0, -1};
  if (p < end) {
    const I slice = p / SLICE, first = A.ptr[slice];
    place = {A.rows[p], first + p % SLICE, int((A.ptr[slice + 1] - first) / SLICE)};
  }
  return place;
}

// Data of a row that a thread can load before the rows that it needs are solved: first entries, b and the diagonal.
template <class T, class V, class I> struct Ahead {
  I row, start, column[AHEAD];
  V value[AHEAD];
  int width;
  T b;
  V inverse;
};

// Load all but b, which the preceding kernel may be writing: kernels call this before `stopped`.
template <class T, class V, class I>
DEVICE Ahead<T, V, I> load_entries(const Factor<V, I>& A, const Place<I>& at, I p) {
  Ahead<T, V, I> a;
  a.row = at.row, a.start = at.start, a.width = at.width;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) a.column[k] = k < a.width ? A.columns[a.start + k * SLICE] : I(-1);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) a.value[k] = k < a.width ? A.values[a.start + k * SLICE] : V(0);
  a.inverse = a.width < 0 ? V(0) : A.inverse[p];
  a.b = T(0);
  return a;
}

template <class T, class V, class I>
DEVICE Ahead<T, V, I> load_ahead(const Factor<V, I>& A, const T* b, const Place<I>& at, I p) {
  Ahead<T, V, I> a = load_entries<T>(A, at, p);
  if (a.width >= 0) a.b = b[a.row];
  return a;
}

template <class T, class V, class I>
DEVICE Ahead<T, V, I> load_ahead(const Factor<V, I>& A, const T* b, I p, I end) {
  return load_ahead(A, b, find_place(A, p, end), p);
}

// b − N w in the row of `a`.
template <class T, class V, class I>
DEVICE T difference(const Factor<V, I>& A, const Ahead<T, V, I>& a, const T* w) {
  T gathered[AHEAD], sum = a.b;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) gathered[k] = a.column[k] >= 0 ? w[a.column[k]] : T(0);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k)
    if (a.column[k] >= 0) sum = fused(-T(a.value[k]), gathered[k], sum);
  for (int k = AHEAD; k < a.width; ++k) {
    const I column = A.columns[a.start + k * SLICE];
    if (column >= 0) sum = fused(-T(A.values[a.start + k * SLICE]), w[column], sum);
  }
  return sum;
}

// Solve a row; w holds all rows that it needs.
template <class T, class V, class I>
DEVICE void finish(const Factor<V, I>& A, const Ahead<T, V, I>& a, I p, T* w, T* x) {
  if (a.width < 0) return;
  const T sum = difference(A, a, w);
  w[p] = sum;
  x[a.row] = T(a.inverse) * sum;
}

// One level: the rows at places first, first + 1, ... of the order.
// launch: elements of level_rows, 128 threads
template <typename T, typename V, typename I> __global__ void __launch_bounds__(128) level(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const I* level_rows, const T* b, T* w, T* x,
    long long first, long long n) {
  let_next_start();
  const Factor<V, I> A{rows, ptr, columns, values, inverse};
  const I p = I(first + thread_id());
  Ahead<T, V, I> a = load_entries<T>(A, find_place(A, p, I(first + n)), p);
  if (stopped(ctx) || a.width < 0) return;
  a.b = b[a.row];
  finish(A, a, p, w, x);
}

// One block solves many narrow levels, with a barrier between two instead of a launch. While it solves a level, it
// loads the entries of the next level, and the places of the level after that.
// launch: one block of 1024 threads
template <typename T, typename V, typename I>
__global__ void __launch_bounds__(1024) levels(Context* ctx, const I* rows, const I* ptr, const I* columns,
    const V* values, const V* inverse, const I* bounds, const T* b, T* w, T* x, long long bounds_size) {
  if (stopped(ctx)) return;
  const Factor<V, I> A{rows, ptr, columns, values, inverse};
  const int count = int(bounds_size) - 1;
  auto bound = [&](int l) { return bounds[min(l, count)]; };
  I begin = bound(0), end = bound(1), later = bound(2), far = bound(3);
  Ahead<T, V, I> next = load_ahead(A, b, I(begin + threadIdx.x), end);
  Place<I> place = find_place(A, I(end + threadIdx.x), later);
  for (int l = 0; l < count; ++l) {
    const Ahead<T, V, I> now = next;
    next = load_ahead(A, b, place, I(end + threadIdx.x));
    place = find_place(A, I(later + threadIdx.x), far);
    const I farther = bound(l + 4);
    finish(A, now, I(begin + threadIdx.x), w, x);
    for (I p = begin + threadIdx.x + blockDim.x; p < end; p += blockDim.x) finish(A, load_ahead(A, b, p, end), p, w, x);
    __syncthreads();
    begin = end, end = later, later = far, far = farther;
  }
}

// All rows in one launch; each is solved as soon as the rows that it needs are. Warps draw their rows in turn, so that
// a row waits for running warps only. Few warps run, since every waiting warp polls memory. The lanes of a warp poll
// together, so that none blocks another. w has two halves: this solve writes one and empties the other for the next
// solve. state: the half to write, the number of drawn tasks, the number of finished warps.
// launch: elements of rows, 256 threads, at most 1 blocks per multiprocessor, of all columns
template <typename T, typename V, typename I>
__global__ void __launch_bounds__(256) sync_free(Context* ctx, const I* rows, const I* ptr, const I* columns,
    const V* values, const V* inverse, const T* b, T* w, T* x, int* state, long long n) {
  if (stopped(ctx)) return;
  const Factor<V, I> A{rows, ptr, columns, values, inverse};
  const int half = *(volatile int*)state;
  T *mine = w + half * n, *next = w + (1 - half) * n;
  for (;;) {
    const long long p = draw(state + 1);
    if (p - threadIdx.x % 32 >= n) break;
    Ahead<T, V, I> a = load_ahead(A, b, I(p), I(n));
    if (p < n) next[p] = nothing(T(0));
    T sum = a.b;
    int k = 0;
    bool done = a.width < 0;
    while (__any_sync(~0u, !done)) {
      if (done) continue;
      T v[AHEAD];
      bool there = true;
#pragma unroll
      for (int e = 0; e < AHEAD; ++e)
        if (a.column[e] >= 0) v[e] = peek(mine + a.column[e]), there &= !empty(v[e]);
      if (!there) continue;
#pragma unroll
      for (int e = 0; e < AHEAD; ++e)
        if (a.column[e] >= 0) sum = fused(-T(a.value[e]), v[e], sum);
      k += AHEAD;
      if (k < a.width) {
#pragma unroll
        for (int e = 0; e < AHEAD; ++e) {
          a.column[e] = k + e < a.width ? A.columns[a.start + (k + e) * SLICE] : I(-1);
          a.value[e] = k + e < a.width ? A.values[a.start + (k + e) * SLICE] : V(0);
        }
      } else {
        post(mine + p, ordinary(sum));
        x[a.row] = T(a.inverse) * sum;
        done = true;
      }
    }
  }
  if (threadIdx.x % 32 == 0 && atomicAdd(state + 2, 1) == int(threads() / 32) - 1) {
    state[0] = 1 - half;
    state[1] = state[2] = 0;
  }
}

// depth = the level of every row, from 1: one more than the highest level of the rows that it needs. 0: not yet known.
// launch: elements of depth, 256 threads, at most 1 blocks per multiprocessor
template <typename T, typename I>
__global__ void find_levels(Context* ctx, const I* indptr, const I* indices, int* depth, int* drawn, bool lower,
    long long n) {
  if (stopped(ctx)) return;
  for (;;) {
    const long long t = draw(drawn);
    if (t - threadIdx.x % 32 >= n) break;
    const I i = I(lower ? t : n - 1 - t);
    bool done = t >= n;
    I k = done ? 0 : indptr[i];
    const I end = done ? 0 : indptr[i + 1];
    int deepest = 0;
    while (__any_sync(~0u, !done)) {
      if (done) continue;
      while (k < end) {
        const I j = indices[k];
        const int d = (lower ? j < i : j > i) ? peek(depth + j) : -1;
        if (d == 0) break;
        deepest = max(deepest, d), ++k;
      }
      if (k == end) {
        post(depth + i, deepest + 1);
        done = true;
      }
    }
  }
}

// y = b − N x; in the last sweep y = D⁻¹ (b − N x).
// launch: elements of rows, 256 threads
template <typename T, typename V, typename I>
__global__ void __launch_bounds__(256) sweep(Context* ctx, const I* rows, const I* ptr, const I* columns,
    const V* values, const V* inverse, const T* b, const T* x, T* y, bool last, long long n) {
  let_next_start();
  const Factor<V, I> A{rows, ptr, columns, values, inverse};
  const I p = I(thread_id());
  Ahead<T, V, I> a = load_entries<T>(A, find_place(A, p, I(n)), p);
  if (stopped(ctx) || a.width < 0) return;
  a.b = b[a.row];
  const T sum = difference(A, a, x);
  y[a.row] = last ? T(a.inverse) * sum : sum;
}

// sweep for several columns, which share the entries of the factor.
// launch: elements of rows, 256 threads
template <typename T, typename V, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) sweep_columns(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const T* b, const T* x, T* y, bool last,
    int tile, int vectors, long long n, long long b_step, long long x_step, long long y_step) {
  let_next_start();
  const Factor<V, I> A{rows, ptr, columns, values, inverse};
  const I p = I(row_thread());
  const Ahead<T, V, I> a = load_entries<T>(A, find_place(A, p, I(n)), p);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped() || a.width < 0) return;
  b = own.of(b, b_step), x = own.of(x, x_step);
  T sums[TILE];
#pragma unroll
  for (int c = 0; c < TILE; ++c) sums[c] = own.runs(c) ? b[c * b_step + a.row] : T(0);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k)
    if (a.column[k] >= 0) add_entry(own, -T(a.value[k]), x, x_step, a.column[k], sums);
  for (int k = AHEAD; k < a.width; ++k) {
    const I column = A.columns[a.start + k * SLICE];
    if (column >= 0) add_entry(own, -T(A.values[a.start + k * SLICE]), x, x_step, column, sums);
  }
  put(own, y, y_step, a.row, sums, last ? T(a.inverse) : T(1), T(0));
}
