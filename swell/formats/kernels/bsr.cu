// BSR products on a GPU; the layout is described in formats/bsr.py.
//
// The lanes of a warp are laid over the rows and columns of one block, lane = (row, column), so that the blocks of a block
// row, which lie one after the other, are loaded as they lie. Up to 5 x 5 a block has all its rows at once, and a warp as
// many block rows as there is room for; from 6 x 6 on a warp has one block row, and a lane several rows of its column, each
// with a sum of its own. At the end the lanes of a row add their sums. BLOCK is a constant: every size has its own code.
//
// A number of blocks per multiprocessor walk over the block rows, rather than a warp being started for each: fewer sums of
// inner products to collect. 24, since 4, 6 and 8 of them, as registers allow, fit in a multiprocessor at once.
#include "context.cuh"

template <int BLOCK> struct Shape {
  static constexpr int ROWS_AT_ONCE = BLOCK <= 5 ? BLOCK : 32 / BLOCK;
  static constexpr int PASSES = (BLOCK + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;               // sums of a lane
  static constexpr int ROWS = (BLOCK + PASSES - 1) / PASSES;                             // ... of which each is a row
  static constexpr int LANES = ROWS * BLOCK;                                             // of a block row
  static constexpr int GROUP = BLOCK <= 5 ? 32 / LANES : 1;                              // block rows of a warp
  static constexpr int AHEAD = PASSES >= 4 ? 1 : 4 / PASSES;                             // blocks whose loads are in flight
};

// Which block row a lane works on, and where in its blocks.
template <int BLOCK> struct Lane {
  int member, row, column;
  DEVICE Lane() {
    const int lane = threadIdx.x % 32, within = lane % Shape<BLOCK>::LANES;
    member = lane / Shape<BLOCK>::LANES;                                                 // GROUP or more: idle
    row = within / BLOCK, column = within % BLOCK;
  }
};

// Sums of a lane over the blocks of block row i: rows row, row + ROWS, ...
template <int BLOCK, class T, class I>
DEVICE void lane_sums(const I* indptr, const I* indices, const T* data, const T* x, I i, I rows,
                      const Lane<BLOCK>& lane, I columns, T (&sum)[Shape<BLOCK>::PASSES]) {
  using S = Shape<BLOCK>;
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) sum[q] = T(0);
  if (lane.member >= S::GROUP || i >= rows) return;
  const I end = __ldg(indptr + i + 1);
  for (I k = __ldg(indptr + i); k < end; k += S::AHEAD) {
    I column[S::AHEAD];
    T value[S::AHEAD][S::PASSES];
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      column[a] = columns;
      if (k + a >= end) continue;
      column[a] = __ldg(indices + k + a) * BLOCK + lane.column;
      const T* block = data + (k + a) * (BLOCK * BLOCK) + lane.row * BLOCK + lane.column;
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK) value[a][q] = load_stream(block + q * S::LANES);
    }
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      if (column[a] >= columns) continue;                // past the last block, or past the end of x
      const T xc = x[column[a]];
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK) sum[q] = fused(value[a][q], xc, sum[q]);
    }
  }
}

// The sum over the lanes of a row, complete in that of column 0. By all lanes of a warp.
template <int BLOCK, class T> DEVICE T row_sum(T sum, int column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < BLOCK) {
      const T other = shuffle(sum, (lane + o) % 32);
      if (column + o < BLOCK) sum = sum + other;
    }
  return sum;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: 24 blocks per multiprocessor of 256 threads
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) product(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y,
                                               int block, T alpha, T beta, long long indptr_size, long long x_size,
                                               long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK>;
  const Lane<BLOCK> lane;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    T sum[S::PASSES];
    lane_sums<BLOCK>(indptr, indices, data, x, I(first + lane.member), rows, lane, I(x_size), sum);
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const T total = row_sum<BLOCK>(sum[q], lane.column);
      const int within = lane.row + q * S::ROWS;
      const I row = (first + lane.member) * BLOCK + within;
      if (lane.member < S::GROUP && lane.column == 0 && within < BLOCK && row < I(y_size))
        y[row] = beta == T(0) ? alpha * total : fused(beta, y[row], alpha * total);
    }
  }
}

// y = A x; the parts of (w, y) and (y, y) are left for collect_dots.
// launch: 24 blocks per multiprocessor of 256 threads
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) product_dots(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x,
                                                    T* y, const T* w, acc_t<T>* dots, int block, long long indptr_size,
                                                    long long x_size, long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK>;
  const Lane<BLOCK> lane;
  acc_t<T> wy(0);
  double yy = 0;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    T sum[S::PASSES];
    lane_sums<BLOCK>(indptr, indices, data, x, I(first + lane.member), rows, lane, I(x_size), sum);
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const T total = row_sum<BLOCK>(sum[q], lane.column);
      const int within = lane.row + q * S::ROWS;
      const I row = (first + lane.member) * BLOCK + within;
      if (lane.member < S::GROUP && lane.column == 0 && within < BLOCK && row < I(y_size)) {
        y[row] = total;
        wy = conj_fused(w[row], total, wy);
        yy += abs2(acc_t<T>(total));
      }
    }
  }
  leave_dots<T>(ctx, Two<T>(wy, yy));
}
