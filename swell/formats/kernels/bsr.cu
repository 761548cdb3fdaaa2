// BSR products on a GPU; formats/bsr.py describes the layout.
//
// The lanes of a warp cover the rows and columns of one block, so that the blocks of a block row are loaded in storage
// order. A lane has as many adjoining columns as 16 bytes hold, if this number divides the block size. If a warp has
// enough lanes, they cover all rows of a block at once, and a warp has one or several block rows. Otherwise a warp has
// one block row, and a lane several rows of its columns, with one sum each. At the end the lanes of a row add up their
// sums. BLOCK is a constant: every size has its own code.
//
// A fixed number of thread blocks per multiprocessor loops over the block rows, instead of one warp for each. This
// leaves fewer partial sums of inner products to collect. The number is 24, a multiple of 4, 6 and 8: a multiprocessor
// holds 4, 6 or 8 blocks at once, depending on their registers.
#include "context.cuh"

template <int BLOCK, class T> struct Shape {
  static constexpr int WIDE = 16 / sizeof(T);
  static constexpr int PER = BLOCK % WIDE == 0 ? WIDE : BLOCK % 2 == 0 && WIDE > 1 ? 2 : 1;     // columns of a lane
  static constexpr int ACROSS = BLOCK / PER;                                             // lanes of a row
  static constexpr int PASSES = (BLOCK + 32 / ACROSS - 1) / (32 / ACROSS);               // sums of a lane
  static constexpr int ROWS = (BLOCK + PASSES - 1) / PASSES;                             // rows of a block covered at once
  static constexpr int LANES = ROWS * ACROSS;                                            // lanes of a block row
  static constexpr int GROUP = PASSES == 1 ? 32 / LANES : 1;                             // block rows of a warp
  static constexpr int AHEAD = PASSES >= 4 ? 1 : 4 / PASSES;                             // blocks whose loads are in flight
};

// Adjoining scalars, loaded at once.
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Several { T at[COUNT]; };

// A lane's block row (`member`, among the warp's), and its row and group of columns in a block.
template <int BLOCK, class T> struct Lane {
  int member, row, across;
  DEVICE Lane() {
    using S = Shape<BLOCK, T>;
    const int lane = threadIdx.x % 32, within = lane % S::LANES;
    member = lane / S::LANES;                                                            // GROUP or more: idle
    row = within / S::ACROSS, across = within % S::ACROSS;
  }
};

// sum = the sums of a lane over the blocks of block row i, for its rows row, row + ROWS, ...
template <int BLOCK, class T, class I>
DEVICE void lane_sums(const I* indptr, const I* indices, const T* data, const T* x, I i, I rows,
                      const Lane<BLOCK, T>& lane, I columns, T (&sum)[Shape<BLOCK, T>::PASSES]) {
  using S = Shape<BLOCK, T>;
  using Entries = Several<T, S::PER>;
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) sum[q] = T(0);
  if (lane.member >= S::GROUP || i >= rows) return;
  const I end = __ldg(indptr + i + 1);
  for (I k = __ldg(indptr + i); k < end; k += S::AHEAD) {
    I column[S::AHEAD];
    Entries value[S::AHEAD][S::PASSES];
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      column[a] = columns;
      if (k + a >= end) continue;
      column[a] = __ldg(indices + k + a) * BLOCK + lane.across * S::PER;
      const Entries* block = reinterpret_cast<const Entries*>(data + (k + a) * (BLOCK * BLOCK)) + lane.row * S::ACROSS
                             + lane.across;
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK) value[a][q] = load_stream(block + q * S::LANES);
    }
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      if (column[a] >= columns) continue;                // past the last block, or past the end of x
      Entries gathered;
      if (S::PER == 1 || column[a] + S::PER <= columns) gathered = *reinterpret_cast<const Entries*>(x + column[a]);
      else
#pragma unroll
        for (int e = 0; e < S::PER; ++e) gathered.at[e] = column[a] + e < columns ? x[column[a] + e] : T(0);
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK)
#pragma unroll
          for (int e = 0; e < S::PER; ++e) sum[q] = fused(value[a][q].at[e], gathered.at[e], sum[q]);
    }
  }
}

// The sum over the lanes of a row; only the first of them has the whole sum. All lanes of a warp must call this.
template <int BLOCK, class T> DEVICE T row_sum(T sum, int across) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < Shape<BLOCK, T>::ACROSS) {
      const T other = shuffle(sum, (lane + o) % 32);
      if (across + o < Shape<BLOCK, T>::ACROSS) sum = sum + other;
    }
  return sum;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: 24 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) product(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y,
                                               int block, T alpha, T beta, long long indptr_size, long long x_size,
                                               long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  const Lane<BLOCK, T> lane;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    T sum[S::PASSES];
    lane_sums<BLOCK>(indptr, indices, data, x, I(first + lane.member), rows, lane, I(x_size), sum);
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const T total = row_sum<BLOCK>(sum[q], lane.across);
      const int within = lane.row + q * S::ROWS;
      const I row = (first + lane.member) * BLOCK + within;
      if (lane.member < S::GROUP && lane.across == 0 && within < BLOCK && row < I(y_size))
        y[row] = beta == T(0) ? alpha * total : fused(beta, y[row], alpha * total);
    }
  }
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: 24 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) product_dots(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x,
                                                    T* y, const T* w, acc_t<T>* dots, int block, long long indptr_size,
                                                    long long x_size, long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  const Lane<BLOCK, T> lane;
  acc_t<T> wy(0);
  double yy = 0;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    T sum[S::PASSES];
    lane_sums<BLOCK>(indptr, indices, data, x, I(first + lane.member), rows, lane, I(x_size), sum);
#pragma unroll
    for (int q = 0; q < S::PASSES; ++q) {
      const T total = row_sum<BLOCK>(sum[q], lane.across);
      const int within = lane.row + q * S::ROWS;
      const I row = (first + lane.member) * BLOCK + within;
      if (lane.member < S::GROUP && lane.across == 0 && within < BLOCK && row < I(y_size)) {
        y[row] = total;
        wy = conj_fused(w[row], total, wy);
        yy += abs2(acc_t<T>(total));
      }
    }
  }
  leave_dots<T>(ctx, Two<T>(wy, yy));
}
