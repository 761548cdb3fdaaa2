// Triangular solves on a GPU: by levels, without synchronisation, and by sweeps. The layout is that of
// preconditioners/level_schedule.py: slices of 32 rows in the order of their levels, T = (I + N) D, so that the sum of a row
// is final as soon as the rows that it needs are: w = b − N w, x = D⁻¹ w.
#include "context.cuh"

constexpr int SLICE = 32, AHEAD = 4;

// What a thread needs of one row before the rows that it depends on are known: its first entries, b and the diagonal.
template <class T, class V, class I> struct Ahead {
  I row, start, column[AHEAD];
  V value[AHEAD];
  int width;
  T b;
  V inverse;
};

template <class T, class V, class I> struct Factor {
  const I *rows, *ptr, *columns;
  const V *values, *inverse;
};

template <class T, class V, class I> DEVICE Ahead<T, V, I> load_ahead(const Factor<T, V, I>& A, const T* b, I p, I end) {
  Ahead<T, V, I> a;
  a.width = -1;                                              // no row
  if (p >= end) return a;
  const I slice = p / SLICE;
  a.start = A.ptr[slice] + p % SLICE;
  a.width = int((A.ptr[slice + 1] - A.ptr[slice]) / SLICE);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) a.column[k] = k < a.width ? A.columns[a.start + k * SLICE] : I(-1);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) a.value[k] = k < a.width ? A.values[a.start + k * SLICE] : V(0);
  a.row = A.rows[p];
  a.inverse = A.inverse[p];
  a.b = b[a.row];
  return a;
}

// Finish a row: all that it needs lies in w.
template <class T, class V, class I> DEVICE void finish(const Factor<T, V, I>& A, const Ahead<T, V, I>& a, I p, T* w, T* x) {
  if (a.width < 0) return;
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
  w[p] = sum;
  x[a.row] = T(a.inverse) * sum;
}

// One level: the rows at places first, first + 1, ... of the order.
// launch: elements of level_rows, 128 threads
template <typename T, typename V, typename I> __global__ void __launch_bounds__(128) level(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const I* level_rows, const T* b, T* w, T* x,
    long long first, long long n) {
  let_next_start();
  const Factor<T, V, I> A{rows, ptr, columns, values, inverse};
  const long long t = thread_id();
  if (stopped(ctx) || t >= n) return;
  const I p = I(first + t);
  finish(A, load_ahead(A, b, p, I(first + n)), p, w, x);
}

// Many narrow levels by one block: a barrier instead of a launch between two. While a level is solved, the next one's
// entries are on their way.
// launch: one block of 1024 threads
template <typename T, typename V, typename I> __global__ void __launch_bounds__(1024) levels(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const I* bounds, const T* b, T* w, T* x,
    long long bounds_size) {
  if (stopped(ctx)) return;
  const Factor<T, V, I> A{rows, ptr, columns, values, inverse};
  const int count = int(bounds_size) - 1;
  I begin = bounds[0], end = bounds[1], later = count > 1 ? bounds[2] : end;
  Ahead<T, V, I> next = load_ahead(A, b, I(begin + threadIdx.x), end);
  for (int l = 0; l < count; ++l) {
    const Ahead<T, V, I> now = next;
    const I far = l + 3 <= count ? bounds[l + 3] : later;
    next = load_ahead(A, b, I(end + threadIdx.x), later);
    finish(A, now, I(begin + threadIdx.x), w, x);
    for (I p = begin + threadIdx.x + blockDim.x; p < end; p += blockDim.x) finish(A, load_ahead(A, b, p, end), p, w, x);
    __syncthreads();
    begin = end, end = later, later = far;
  }
}

// A value is there as soon as it is not this NaN, which no sum is allowed to be.
DEVICE bool empty(float v) { return __float_as_uint(v) == 0xFFFFFFFFu; }
DEVICE bool empty(double v) { return __double_as_longlong(v) == -1ll; }
template <class R> DEVICE bool empty(complex<R> v) { return empty(v.re) || empty(v.im); }
DEVICE float nothing(float) { return __uint_as_float(0xFFFFFFFFu); }
DEVICE double nothing(double) { return __longlong_as_double(-1ll); }
template <class R> DEVICE complex<R> nothing(complex<R> v) { return {nothing(v.re), nothing(v.im)}; }
DEVICE float ordinary(float v) { return empty(v) ? __uint_as_float(0x7FFFFFFFu) : v; }
DEVICE double ordinary(double v) { return empty(v) ? __longlong_as_double(0x7FF8000000000000ll) : v; }
template <class R> DEVICE complex<R> ordinary(complex<R> v) { return {ordinary(v.re), ordinary(v.im)}; }
template <class R> DEVICE R peek(const R* p) { return *(const volatile R*)p; }
template <class R> DEVICE complex<R> peek(const complex<R>* p) { return {peek(&p->re), peek(&p->im)}; }
template <class R> DEVICE void post(R* p, R v) { *(volatile R*)p = v; }
template <class R> DEVICE void post(complex<R>* p, complex<R> v) { post(&p->re, v.re), post(&p->im, v.im); }

// All rows in one launch, each as soon as what it needs is there. Blocks draw their places in the order in which they
// start, so that a row waits for running ones only; the lanes of a warp go round together, so that none holds up another.
// w has two halves: one is written, the other is emptied for the next solve; state: which, blocks begun, blocks done.
// launch: elements of rows, 256 threads
template <typename T, typename V, typename I> __global__ void __launch_bounds__(256) sync_free(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const T* b, T* w, T* x, int* state, long long n) {
  if (stopped(ctx)) return;
  __shared__ int place, half;
  if (threadIdx.x == 0) place = atomicAdd(state + 1, 1), half = *(volatile int*)state;
  __syncthreads();
  const Factor<T, V, I> A{rows, ptr, columns, values, inverse};
  T *mine = w + half * n, *next = w + (1 - half) * n;
  const I p = I(place) * blockDim.x + threadIdx.x;
  Ahead<T, V, I> a = load_ahead(A, b, p, I(n));
  if (p < n) next[p] = nothing(T(0));
  T sum = a.b;
  int k = 0;
  bool done = a.width < 0;
  while (__any_sync(~0u, !done)) {
    if (!done) {
      T v[AHEAD];
      bool there = true;
#pragma unroll
      for (int e = 0; e < AHEAD; ++e)
        if (a.column[e] >= 0) v[e] = peek(mine + a.column[e]), there &= !empty(v[e]);
      if (there) {
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
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(state + 2, 1) == gridDim.x - 1) {
    state[0] = 1 - half;
    state[1] = state[2] = 0;
  }
}

// The level of every row, from 1: one more than the greatest of those that it needs. 0: not known yet.
// launch: elements of depth, 256 threads
template <typename T, typename I> __global__ void find_levels(Context* ctx, const I* indptr, const I* indices, int* depth,
    int* ticket, bool lower, long long n) {
  if (stopped(ctx)) return;
  __shared__ int place;
  if (threadIdx.x == 0) place = atomicAdd(ticket, 1);
  __syncthreads();
  const I t = I(place) * blockDim.x + threadIdx.x;
  const I i = lower ? t : I(n) - 1 - t;
  I k = t < n ? indptr[i] : 0, end = t < n ? indptr[i + 1] : 0;
  int deepest = 0;
  bool done = t >= n;
  while (__any_sync(~0u, !done)) {
    if (!done) {
      if (k < end) {
        const I j = indices[k];
        if (lower ? j < i : j > i) {
          const int d = *(volatile int*)(depth + j);
          if (d) deepest = max(deepest, d), ++k;
        } else {
          ++k;
        }
      }
      if (k >= end) {
        *(volatile int*)(depth + i) = deepest + 1;
        done = true;
      }
    }
  }
}

// y = b − N x, or D⁻¹ of it in the last sweep.
// launch: elements of rows, 256 threads
template <typename T, typename V, typename I> __global__ void __launch_bounds__(256) sweep(Context* ctx, const I* rows,
    const I* ptr, const I* columns, const V* values, const V* inverse, const T* b, const T* x, T* y, bool last, long long n) {
  let_next_start();
  const Factor<T, V, I> A{rows, ptr, columns, values, inverse};
  const long long t = thread_id();
  if (stopped(ctx) || t >= n) return;
  const Ahead<T, V, I> a = load_ahead(A, b, I(t), I(n));
  T gathered[AHEAD], sum = a.b;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) gathered[k] = a.column[k] >= 0 ? x[a.column[k]] : T(0);
#pragma unroll
  for (int k = 0; k < AHEAD; ++k)
    if (a.column[k] >= 0) sum = fused(-T(a.value[k]), gathered[k], sum);
  for (int k = AHEAD; k < a.width; ++k) {
    const I column = A.columns[a.start + k * SLICE];
    if (column >= 0) sum = fused(-T(A.values[a.start + k * SLICE]), x[column], sum);
  }
  y[a.row] = last ? T(a.inverse) * sum : sum;
}
