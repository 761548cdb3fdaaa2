// Block triangular solves on a GPU; preconditioners/block_triangular.py describes the layout. A warp has a block row. Lane
// (q, r) has row r of columns q, q + TAKEN, ... of its blocks; the sums of a row are then added over q. Blocks are
// column-major, so that the lanes read adjacent numbers for every size. BLOCK is a constant: every size has its own code.
#include "context.cuh"
#include "waiting.cuh"

template <class V, class I> struct Factor {
  const I *rows, *ptr, *columns;
  const V *blocks, *inverse;
  bool unit;
};

// Column q and row r of a lane. Inactive lanes take part in shuffles only.
template <int BLOCK> struct Lane {
  static constexpr int TAKEN = 32 / BLOCK;                   // columns of blocks that a warp handles in a step
  int q, r;
  bool active;
  DEVICE Lane() : q(threadIdx.x % 32 / BLOCK), r(threadIdx.x % 32 % BLOCK), active(q < TAKEN) {}
};

// The sums over q; complete in the lanes with q = 0. All lanes of a warp call it.
template <int BLOCK, class T> DEVICE T sum_columns(T v, const Lane<BLOCK>& lane) {
#pragma unroll
  for (int width = Lane<BLOCK>::TAKEN; width > 1; width = (width + 1) / 2) {
    const int half = (width + 1) / 2;
    const T other = shuffle(v, (threadIdx.x + half * BLOCK) % 32);
    if (lane.q + half < width) v = v + other;
  }
  return v;
}

// Entry i of a vector of length n; zero beyond its end, in a padded last block.
template <class T> DEVICE T entry(const T* b, long long i, long long n) { return i < n ? b[i] : T(0); }

// b − N w of the block row at place p, in the lanes with q = 0; zero in the others.
template <int BLOCK, class T, class V, class I>
DEVICE T reduced(const Factor<V, I>& A, I p, const T* b, long long b_size, const T* w, const Lane<BLOCK>& lane) {
  using L = Lane<BLOCK>;
  const I first = A.ptr[p];
  const long long columns = (long long)(A.ptr[p + 1] - first) * BLOCK;
  const V* blocks = A.blocks + (long long)first * BLOCK * BLOCK;
  T sum = T(0);
  if (lane.active)
#pragma unroll 4
    for (long long c = lane.q; c < columns; c += L::TAKEN) {
      const T wc = w[(long long)A.columns[first + c / BLOCK] * BLOCK + c % BLOCK];
      sum = fused(T(blocks[c * BLOCK + lane.r]), wc, sum);
    }
  sum = sum_columns(sum, lane);
  return lane.q == 0 ? entry(b, (long long)A.rows[p] * BLOCK + lane.r, b_size) - sum : T(0);
}

// D⁻¹ v; v and the result are in the lanes with q = 0. All lanes of a warp call it.
template <int BLOCK, class T, class V, class I>
DEVICE T divided(const Factor<V, I>& A, I p, T v, const Lane<BLOCK>& lane) {
  if (A.unit) return v;
  using L = Lane<BLOCK>;
  const V* inverse = A.inverse + (long long)p * BLOCK * BLOCK;
  T sum = T(0);
#pragma unroll
  for (int c = 0; c < BLOCK; c += L::TAKEN) {
    const int column = c + lane.q;
    const T vc = shuffle(v, column % 32);
    if (lane.active && column < BLOCK) sum = fused(T(inverse[column * BLOCK + lane.r]), vc, sum);
  }
  return sum_columns(sum, lane);
}

// Write x of a block row from v, its w.
template <int BLOCK, class T, class V, class I>
DEVICE void finish(const Factor<V, I>& A, I p, T v, T* x, long long x_size, const Lane<BLOCK>& lane) {
  const T value = divided(A, p, v, lane);
  const long long row = (long long)A.rows[p] * BLOCK + lane.r;
  if (lane.q == 0 && row < x_size) x[row] = value;
}

template <int BLOCK, class T, class V, class I>
DEVICE void solve_row(const Factor<V, I>& A, I p, const T* b, T* w, T* x, long long x_size, const Lane<BLOCK>& lane) {
  const T v = reduced(A, p, b, x_size, w, lane);
  if (lane.q == 0) w[(long long)A.rows[p] * BLOCK + lane.r] = v;
  finish(A, p, v, x, x_size, lane);
}

// One level: the block rows at places first, first + 1, ...
// launch: elements of level_rows, 128 threads, a warp each
template <typename T, typename V, typename I, int BLOCK> __global__ void __launch_bounds__(128) level(Context* ctx,
    const I* rows, const I* ptr, const I* columns, const V* blocks, const V* inverse, const I* level_rows, const T* b, T* w,
    T* x, int block, long long first, long long n, long long inverse_size, long long x_size) {
  const long long k = thread_id() / 32;
  if (stopped(ctx) || k >= n) return;
  const Factor<V, I> A{rows, ptr, columns, blocks, inverse, inverse_size == 0};
  solve_row<BLOCK>(A, I(first + k), b, w, x, x_size, Lane<BLOCK>());
}

// One block of threads solves many narrow levels, with a barrier between two instead of a launch.
// launch: one block of 1024 threads
template <typename T, typename V, typename I, int BLOCK> __global__ void __launch_bounds__(1024) levels(Context* ctx,
    const I* rows, const I* ptr, const I* columns, const V* blocks, const V* inverse, const I* bounds, const T* b, T* w, T* x,
    int block, long long bounds_size, long long inverse_size, long long x_size) {
  if (stopped(ctx)) return;
  const Factor<V, I> A{rows, ptr, columns, blocks, inverse, inverse_size == 0};
  const Lane<BLOCK> lane;
  for (int l = 0; l + 1 < int(bounds_size); ++l) {
    const I end = bounds[l + 1];
    for (I p = bounds[l] + I(threadIdx.x / 32); p < end; p += 32) solve_row<BLOCK>(A, p, b, w, x, x_size, lane);
    __syncthreads();
  }
}

// All block rows in one launch; each is solved as soon as the block rows that it needs are. Warps draw their block rows in
// turn, so that a block row waits for running warps only. w has two halves: this solve writes one and empties the other
// for the next solve. state: the half to write, the number of drawn tasks, the number of finished warps.
// launch: elements of rows, 256 threads, a warp each, at most 2 blocks per multiprocessor
template <typename T, typename V, typename I, int BLOCK> __global__ void __launch_bounds__(256) sync_free(Context* ctx,
    const I* rows, const I* ptr, const I* columns, const V* blocks, const V* inverse, const T* b, T* w, T* x, int* state,
    int block, long long n, long long inverse_size, long long x_size) {
  if (stopped(ctx)) return;
  using L = Lane<BLOCK>;
  const Factor<V, I> A{rows, ptr, columns, blocks, inverse, inverse_size == 0};
  const L lane;
  const int half = *(volatile int*)state;
  T *mine = w + half * n * BLOCK, *next = w + (1 - half) * n * BLOCK;
  for (;;) {
    const long long task = draw(state + 1) / 32;
    if (task >= n) break;
    const I p = I(task), first = ptr[p];
    const long long count = (long long)(ptr[p + 1] - first) * BLOCK, row = (long long)rows[p] * BLOCK + lane.r;
    const V* own = blocks + (long long)first * BLOCK * BLOCK;
    const T rhs = lane.q == 0 ? entry(b, row, x_size) : T(0);
    if (lane.q == 0) next[row] = nothing(T(0));
    T sum = T(0);
    for (long long c = 0; c < count; c += L::TAKEN) {        // the whole warp together
      const long long column = c + lane.q;
      bool waits = lane.active && column < count;
      const T* from = waits ? mine + (long long)columns[first + column / BLOCK] * BLOCK + column % BLOCK : nullptr;
      const V value = waits ? own[column * BLOCK + lane.r] : V(0);
      while (__any_sync(~0u, waits)) {
        if (!waits) continue;
        const T wc = peek(from);
        if (empty(wc)) continue;
        sum = fused(T(value), wc, sum);
        waits = false;
      }
    }
    const T v = rhs - sum_columns(sum, lane);
    if (lane.q == 0) post(mine + row, ordinary(v));
    finish(A, p, v, x, x_size, lane);
  }
  if (threadIdx.x % 32 == 0 && atomicAdd(state + 2, 1) == int(threads() / 32) - 1) {
    state[0] = 1 - half;
    state[1] = state[2] = 0;
  }
}

// fresh = b − N old; the last sweep also writes out = D⁻¹ fresh. In-place sweeps pass old as fresh.
// launch: elements of rows, 256 threads, a warp each
template <typename T, typename V, typename I, int BLOCK> __global__ void __launch_bounds__(256) sweep(Context* ctx,
    const I* rows, const I* ptr, const I* columns, const V* blocks, const V* inverse, const T* b, const T* old, T* fresh,
    T* out, const T* nothing, int block, bool last, long long n, long long inverse_size, long long out_size) {
  const long long p = thread_id() / 32;
  if (stopped(ctx) || p >= n) return;
  const Factor<V, I> A{rows, ptr, columns, blocks, inverse, inverse_size == 0};
  const Lane<BLOCK> lane;
  const T v = reduced(A, I(p), b, out_size, old, lane);
  if (lane.q == 0) fresh[(long long)rows[p] * BLOCK + lane.r] = v;
  if (last) finish(A, I(p), v, out, out_size, lane);
}
