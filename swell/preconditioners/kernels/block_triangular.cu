// Block triangular solves on a GPU; block_triangular.cpp of this folder explains the arguments. Warps have block rows
// as in block_rows.cuh, and keep their sums in shared memory for the product with D⁻¹. BLOCK is a constant: every size
// has its own code.
//
// A sweep has three forms. A warp with several block rows suits most sizes. Real blocks of 5, 6 and 7 leave a warp with
// one block row and idle lanes, which take too many instructions for their bytes: there a warp copies the adjoining
// blocks of several block rows to shared memory, and a lane has a row (`staged_sweep`). If there are too few block rows
// to fill the GPU, latency counts: a warp has one block row, and its members different blocks of it (WHOLE = 1).
#include "block_rows.cuh"
#include "waiting.cuh"

constexpr int MOST = 32;       // warps of a block of threads, at most

// (I + N) D. `first` is the place of the first inverse diagonal block, -1 for D = I.
template <class V, class I> struct Triangle {
  const I *order, *ptr, *columns;
  const V* blocks;
  long long first;
};

// Sums of the block rows of one warp, numbered by member and row.
template <int BLOCK, class T> struct Sums {
  static constexpr int GROUP = Shape<BLOCK, T>::GROUP;
  T at[GROUP * BLOCK];
};

// The block of b and x that belongs to block row i.
template <class I> DEVICE long long numbered(const I* order, I i) { return order ? (long long)order[i] : (long long)i; }

// Write D⁻¹ v of block row i to x; v is in `sums`. All lanes of a warp call it, after __syncwarp.
template <int BLOCK, class T, class V, class I>
DEVICE void divide(const Triangle<V, I>& A, I i, bool inside, const Sums<BLOCK, T>& sums, T* x, long long n,
                   const Lane<BLOCK, T>& lane) {
  using S = Shape<BLOCK, T>;
  using Stored = Several<V, S::PER>;
  const T* v = sums.at + (inside ? lane.member * BLOCK : 0) + lane.across * S::PER;
  const Stored* block = reinterpret_cast<const Stored*>(A.blocks + (A.first + (inside ? i : 0)) * (BLOCK * BLOCK))
                        + lane.row * S::ACROSS + lane.across;
  const long long place = inside ? numbered(A.order, i) * BLOCK : n;
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) {
    const int within = lane.row + q * S::ROWS;
    T sum = T(0);
    if (inside && within < BLOCK) {
      const Stored value = load_stream(block + q * S::LANES);
#pragma unroll
      for (int e = 0; e < S::PER; ++e) sum = fused(T(value.at[e]), v[e], sum);
    }
    sum = row_sum<BLOCK>(sum, lane.across);
    if (lane.across == 0 && within < BLOCK && place + within < n) x[place + within] = sum;
  }
}

// b − N old for block row i. If `keep`, write it to fresh[i]; if `last`, write D⁻¹ (b − N old) to x. `mapped`: old is
// numbered as b. WHOLE: all members have the same row, and the first of them writes. All lanes of a warp call it.
template <int BLOCK, int WHOLE, class T, class V, class I>
DEVICE void solve_row(const Triangle<V, I>& A, I i, bool inside, const T* b, long long b_size, const T* old,
                      long long old_size, bool mapped, T* fresh, bool keep, T* x, bool last, long long n,
                      const Lane<BLOCK, T>& lane, Sums<BLOCK, T>& sums) {
  using S = Shape<BLOCK, T>;
  const I begin = inside ? __ldg(A.ptr + i) : I(0), end = inside ? __ldg(A.ptr + i + 1) : I(0);
  const long long place = inside ? numbered(A.order, i) * BLOCK : 0;
  const bool writes = inside && lane.across == 0 && (!WHOLE || lane.member == 0);
  T rhs[S::PASSES], sum[S::PASSES];
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) {
    const int within = lane.row + q * S::ROWS;
    rhs[q] = writes && within < BLOCK && place + within < b_size ? b[place + within] : T(0);
  }
  lane_sums<BLOCK, WHOLE ? S::GROUP : 1>(WHOLE ? begin + lane.member : begin, end, A.columns, A.blocks,
                                         mapped ? A.order : (const I*)nullptr, old, lane, I(old_size), sum);
  __syncwarp();                                              // before this row's sums replace the preceding row's
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) {
    const int within = lane.row + q * S::ROWS;
    T total = row_sum<BLOCK>(sum[q], lane.across);
    if (WHOLE) total = member_sum<BLOCK>(total, lane.member);
    const T v = rhs[q] - total;
    if (!writes || within >= BLOCK) continue;
    if (keep) fresh[(long long)i * BLOCK + within] = v;
    if (!last) continue;
    if (A.first >= 0) sums.at[lane.member * BLOCK + within] = v;
    else if (place + within < n) x[place + within] = v;
  }
  if (!last || A.first < 0) return;
  __syncwarp();
  divide<BLOCK>(A, i, inside && (!WHOLE || lane.member == 0), sums, x, n, lane);
}

// One level: `level_rows`.
// launch: elements of level_rows, 256 threads, a warp each, at most 24 blocks per multiprocessor, 16 bytes at once
template <typename T, typename V, typename I, int BLOCK>
__global__ void __launch_bounds__(256) level(Context* ctx, const I* level_rows, const I* order, const I* ptr,
    const I* columns, const V* blocks, const T* b, T* w, T* x, int block, long long diagonal, long long level_rows_size,
    long long b_size, long long w_size, long long x_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  __shared__ Sums<BLOCK, T> sums[8];
  const Triangle<V, I> A{order, ptr, columns, blocks, diagonal};
  const Lane<BLOCK, T> lane;
  const long long step = threads() / 32 * S::GROUP;
  for (long long first = thread_id() / 32 * S::GROUP; first < level_rows_size; first += step) {
    const long long p = first + lane.member;
    const bool inside = lane.member < S::GROUP && p < level_rows_size;
    solve_row<BLOCK, 0>(A, inside ? level_rows[p] : I(0), inside, b, b_size, w, w_size, false, w, true, x, true, x_size,
        lane, sums[threadIdx.x / 32]);
  }
}

// One block of threads solves many narrow levels, with a barrier between two instead of a launch.
// launch: one block of 1024 threads, 16 bytes at once
template <typename T, typename V, typename I, int BLOCK>
__global__ void __launch_bounds__(1024) levels(Context* ctx, const I* rows, const I* order, const I* ptr,
    const I* columns, const V* blocks, const I* bounds, const T* b, T* w, T* x, int block, long long diagonal,
    long long bounds_size, long long b_size, long long w_size, long long x_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  __shared__ Sums<BLOCK, T> sums[MOST];
  const Triangle<V, I> A{order, ptr, columns, blocks, diagonal};
  const Lane<BLOCK, T> lane;
  const int warp = threadIdx.x / 32;
  for (int l = 0; l + 1 < int(bounds_size); ++l) {
    const I begin = bounds[l], end = bounds[l + 1];
    if (S::GROUP > 1 && end - begin <= MOST) {               // a warp for each block row
      const bool inside = begin + warp < end && lane.member < S::GROUP;
      if (begin + warp < end)
        solve_row<BLOCK, 1>(A, rows[begin + warp], inside, b, b_size, w, w_size, false, w, true, x, true, x_size, lane,
                            sums[warp]);
    } else
      for (I first = begin + I(warp * S::GROUP); first < end; first += MOST * S::GROUP) {
        const I p = first + lane.member;
        const bool inside = lane.member < S::GROUP && p < end;
        solve_row<BLOCK, 0>(A, inside ? rows[p] : I(0), inside, b, b_size, w, w_size, false, w, true, x, true, x_size,
                            lane, sums[warp]);
      }
    __syncthreads();
  }
}

// All block rows in one launch; each is solved as soon as the block rows that it needs are. A warp has one block row,
// and its members different blocks of it. Warps draw their block rows in turn, so that a block row waits for running
// warps only. w has two halves: this solve writes one and empties the other for the next solve. state: the half to
// write, the number of drawn tasks, the number of finished warps.
// launch: elements of rows, 256 threads, a warp each, at most 2 blocks per multiprocessor, 16 bytes at once
template <typename T, typename V, typename I, int BLOCK> __global__ void __launch_bounds__(256) sync_free(Context* ctx,
    const I* rows, const I* order, const I* ptr, const I* columns, const V* blocks, const T* b, T* w, T* x, int* state,
    int block, long long diagonal, long long n, long long b_size, long long x_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  using Stored = Several<V, S::PER>;
  constexpr int AHEAD = S::GROUP < 4 ? S::AHEAD : 1;         // blocks of a lane whose loads are in flight
  __shared__ Sums<BLOCK, T> sums[8];
  const Triangle<V, I> A{order, ptr, columns, blocks, diagonal};
  const Lane<BLOCK, T> lane;
  const bool writes = lane.member == 0 && lane.across == 0;
  const int half = *(volatile int*)state;
  T *mine = w + half * n * BLOCK, *next = w + (1 - half) * n * BLOCK;
  for (;;) {
    const long long task = draw(state + 1) / 32;
    if (task >= n) break;
    const I i = rows[task], end = ptr[i + 1];
    const long long at = (long long)i * BLOCK, place = numbered(order, i) * BLOCK;
    T rhs[S::PASSES], sum[S::PASSES];
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const int within = lane.row + q * S::ROWS;
      const bool own = writes && within < BLOCK;
      sum[q] = T(0), rhs[q] = own && place + within < b_size ? b[place + within] : T(0);
      if (own) next[at + within] = nothing(T(0));
    }
    for (I first = ptr[i]; first < end; first += S::GROUP * AHEAD) {                // the whole warp together
      const T* from[AHEAD];
      Stored value[AHEAD][S::PASSES];
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const I k = first + lane.member + a * S::GROUP;
        from[a] = nullptr;                                   // nothing to wait for
        if (lane.member >= S::GROUP || k >= end) continue;
        from[a] = mine + (long long)columns[k] * BLOCK + lane.across * S::PER;
        const Stored* own = reinterpret_cast<const Stored*>(blocks + k * (long long)(BLOCK * BLOCK))
            + lane.row * S::ACROSS
                            + lane.across;
#pragma unroll
        for (int q = 0; q < S::PASSES; ++q)
          if (lane.row + q * S::ROWS < BLOCK) value[a][q] = own[q * S::LANES];
      }
      T gathered[AHEAD][S::PER];
      unsigned missing = 0;
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) missing |= from[a] ? 1u << a : 0u;
      while (__any_sync(~0u, missing != 0)) {
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
          if (!(missing >> a & 1)) continue;
          bool solved = true;
#pragma unroll
          for (int e = 0; e < S::PER; ++e) {
            gathered[a][e] = peek(from[a] + e);
            solved = solved && !empty(gathered[a][e]);
          }
          if (solved) missing &= ~(1u << a);
        }
      }
#pragma unroll
      for (int a = 0; a < AHEAD; ++a)                     // in a fixed order, whichever came first
#pragma unroll
        for (int q = 0; q < S::PASSES; ++q)
          if (from[a] && lane.row + q * S::ROWS < BLOCK)
#pragma unroll
            for (int e = 0; e < S::PER; ++e) sum[q] = fused(T(value[a][q].at[e]), gathered[a][e], sum[q]);
    }
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const int within = lane.row + q * S::ROWS;
      const T total = member_sum<BLOCK>(row_sum<BLOCK>(sum[q], lane.across), lane.member);
      const T v = rhs[q] - total;
      if (!writes || within >= BLOCK) continue;
      post(mine + at + within, ordinary(v));
      if (diagonal >= 0) sums[threadIdx.x / 32].at[within] = v;
      else if (place + within < x_size) x[place + within] = v;
    }
    if (diagonal < 0) continue;
    __syncwarp();
    divide<BLOCK>(A, i, lane.member == 0, sums[threadIdx.x / 32], x, x_size, lane);
    __syncwarp();
  }
  if (threadIdx.x % 32 == 0 && atomicAdd(state + 2, 1) == int(threads() / 32) - 1) {
    state[0] = 1 - half;
    state[1] = state[2] = 0;
  }
}

// The adjoining blocks that a warp copies at once, for GROUP block rows, a lane a row.
template <int BLOCK, class V> struct Stage {
  static constexpr int AREA = BLOCK * BLOCK, GROUP = 32 / BLOCK, AT_ONCE = 3 * GROUP;
  static constexpr int PASSES = (AT_ONCE * AREA + 31) / 32, BATCH = 5;       // loads of a lane, and those in flight
  static constexpr bool pays = BLOCK > 4 && BLOCK < 8 && scalar<V>::parts == 1;
};

template <int BLOCK, class V> DEVICE void copy_blocks(const V* from, int entries, V* to) {
  using F = Stage<BLOCK, V>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int first = 0; first < F::PASSES; first += F::BATCH) {
    V value[F::BATCH];
#pragma unroll
    for (int t = 0; t < F::BATCH; ++t) {
      const int e = (first + t) * 32 + lane;
      if (first + t < F::PASSES && e < entries) value[t] = load_stream(from + e);
    }
#pragma unroll
    for (int t = 0; t < F::BATCH; ++t) {
      const int e = (first + t) * 32 + lane;
      if (first + t < F::PASSES && e < entries) to[e] = value[t];
    }
  }
}

// As `sweep`, for all block rows of the grid's warps.
template <int BLOCK, class T, class V, class I>
DEVICE void staged_sweep(const Triangle<V, I>& A, I rows, const T* b, long long b_size, const T* old,
    long long old_size, bool mapped, T* fresh, bool last, long long n) {
  using F = Stage<BLOCK, V>;
  __shared__ V staged[8][F::AT_ONCE * F::AREA];
  __shared__ T reduced[8][F::GROUP * BLOCK];
  V* own = staged[threadIdx.x / 32];
  T* v = reduced[threadIdx.x / 32];
  const int member = threadIdx.x % 32 / BLOCK, r = threadIdx.x % 32 % BLOCK;
  const I step = I(threads() / 32 * F::GROUP);
  for (I start = I(thread_id() / 32 * F::GROUP); start < rows; start += step) {          // the whole warp together
    const I i = start + member, stop = min(start + F::GROUP, rows);
    const bool inside = member < F::GROUP && i < rows;
    const I whole_end = __ldg(A.ptr + stop), end = inside ? __ldg(A.ptr + i + 1) : I(0);
    const long long place = inside ? numbered(A.order, i) * BLOCK : 0;
    I k = inside ? __ldg(A.ptr + i) : I(0);
    T sum = T(0);
    for (I base = __ldg(A.ptr + start); base < whole_end; base += F::AT_ONCE) {
      const I until = min(base + F::AT_ONCE, whole_end);
      __syncwarp();                                          // before these blocks replace the preceding ones
      copy_blocks<BLOCK>(A.blocks + (long long)base * F::AREA, int(until - base) * F::AREA, own);
      __syncwarp();
      for (; k < min(end, until); ++k) {
        I column = __ldg(A.columns + k);
        if (mapped && A.order) column = __ldg(A.order + column);
        const V* block = own + int(k - base) * F::AREA + r * BLOCK;
#pragma unroll
        for (int c = 0; c < BLOCK; ++c) {
          const T x = column * BLOCK + c < I(old_size) ? old[column * BLOCK + c] : T(0);
          sum = fused(T(block[c]), x, sum);
        }
      }
    }
    const T value = (inside && place + r < b_size ? b[place + r] : T(0)) - sum;
    if (!last && inside) fresh[(long long)i * BLOCK + r] = value;
    if (last && A.first < 0 && inside && place + r < n) fresh[place + r] = value;
    if (!last || A.first < 0) continue;
    __syncwarp();
    if (member < F::GROUP) v[member * BLOCK + r] = value;
    copy_blocks<BLOCK>(A.blocks + (A.first + start) * F::AREA, int(stop - start) * F::AREA, own);
    __syncwarp();
    if (!inside || place + r >= n) continue;
    T x = T(0);
#pragma unroll
    for (int c = 0; c < BLOCK; ++c) x = fused(T(own[member * F::AREA + r * BLOCK + c]), v[member * BLOCK + c], x);
    fresh[place + r] = x;
  }
}

// fresh = b − N old, or D⁻¹ (b − N old) if `last`. In-place sweeps pass old as fresh.
// launch: elements of ptr, 256 threads, a warp each, at most 24 blocks per multiprocessor, 16 bytes at once
template <typename T, typename V, typename I, int BLOCK, int WHOLE>
__global__ void __launch_bounds__(256) sweep(Context* ctx, const I* order, const I* ptr, const I* columns,
    const V* blocks, const T* b, const T* old, T* fresh, int block, long long diagonal, bool first, bool last,
    int whole, long long ptr_size, long long b_size, long long old_size, long long fresh_size) {
  if (stopped(ctx)) return;
  const Triangle<V, I> A{order, ptr, columns, blocks, diagonal};
  const I rows = I(ptr_size - 1);
  if constexpr (!WHOLE && Stage<BLOCK, V>::pays)
    staged_sweep<BLOCK>(A, rows, b, b_size, old, old_size, first, fresh, last, fresh_size);
  else {
    using S = Shape<BLOCK, T>;
    constexpr int GROUP = WHOLE ? 1 : S::GROUP;
    __shared__ Sums<BLOCK, T> sums[8];
    const Lane<BLOCK, T> lane;
    const I step = I(threads() / 32 * GROUP);
    for (I start = I(thread_id() / 32 * GROUP); start < rows; start += step) {           // the whole warp together
      const I i = WHOLE ? start : start + lane.member;
      const bool inside = lane.member < S::GROUP && i < rows;
      solve_row<BLOCK, WHOLE>(A, inside ? i : I(0), inside, b, b_size, old, old_size, first, fresh, !last, fresh, last,
                              fresh_size, lane, sums[threadIdx.x / 32]);
    }
  }
}
