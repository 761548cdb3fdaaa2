// BSR products on a GPU; formats/bsr.py describes the layout.
//
// A fixed number of thread blocks per multiprocessor loops over the block rows, instead of one warp for each. This
// leaves fewer partial sums of inner products to collect. The number is 24, a multiple of 4, 6 and 8: a multiprocessor
// holds 4, 6 or 8 blocks at once, depending on their registers.
#include "block_rows.cuh"
#include "columns.cuh"

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: 24 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) product(Context* ctx, const I* indptr, const I* indices, const T* data,
    const T* x, T* y, int block, T alpha, T beta, long long indptr_size, long long x_size, long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  const Lane<BLOCK, T> lane;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    const I i = first + lane.member;
    const bool inside = lane.member < S::GROUP && i < rows;
    T sum[S::PASSES];
    lane_sums<BLOCK>(inside ? __ldg(indptr + i) : I(0), inside ? __ldg(indptr + i + 1) : I(0), indices, data,
                     (const I*)nullptr, x, lane, I(x_size), sum);
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
__global__ void __launch_bounds__(256) product_dots(Context* ctx, const I* indptr, const I* indices, const T* data,
    const T* x, T* y, const T* w, acc_t<T>* dots, int block, long long indptr_size, long long x_size,
    long long y_size) {
  if (stopped(ctx)) return;
  using S = Shape<BLOCK, T>;
  const Lane<BLOCK, T> lane;
  acc_t<T> wy(0);
  double yy = 0;
  const I rows = I(indptr_size - 1), step = I(threads() / 32 * S::GROUP);
  for (I first = I(thread_id() / 32 * S::GROUP); first < rows; first += step) {     // the whole warp together
    const I i = first + lane.member;
    const bool inside = lane.member < S::GROUP && i < rows;
    T sum[S::PASSES];
    lane_sums<BLOCK>(inside ? __ldg(indptr + i) : I(0), inside ? __ldg(indptr + i + 1) : I(0), indices, data,
                     (const I*)nullptr, x, lane, I(x_size), sum);
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

// Columns that a lane treats at once, so that their sums stay in registers: all of a tile, unless a lane has many sums
// of each. Then it reads the matrix again for the next columns.
template <int BLOCK, class T, int TILE> struct Once {
  static constexpr int bytes = Shape<BLOCK, T>::PASSES * int(sizeof(T)),
      most = bytes <= 32 ? 8 : bytes <= 64 ? 4 : bytes <= 128 ? 2 : 1;
  static constexpr int columns = TILE < most ? TILE : most;
  static constexpr int threads = Shape<BLOCK, T>::PASSES > 4 ? 256 : columns > 2 ? Room<T, columns>::fewer : 1024;
  static constexpr int blocks = threads / 256;                   // of a multiprocessor
  static constexpr int blocks_dots = (threads + 256) / 512;      // inner products take as many registers again
};

// sums[c] = the sums of a lane for column c of the tile, as lane_sums of one vector.
template <int BLOCK, int TILE, class T, class I>
DEVICE void lane_sums(const I* indptr, const I* indices, const T* data, const Tile<TILE>& tile, const T* x,
    long long step, I i, I rows, const Lane<BLOCK, T>& lane, I columns, T (&sums)[TILE][Shape<BLOCK, T>::PASSES]) {
  using S = Shape<BLOCK, T>;
  using Entries = Several<T, S::PER>;
#pragma unroll
  for (int c = 0; c < TILE; ++c) clear(sums[c]);
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
      const T* at = x + column[a];
#pragma unroll
      for (int c = 0; c < TILE; ++c, at += step) {
        if (!tile.runs(c)) continue;
        Entries gathered;
        if (S::PER == 1 || column[a] + S::PER <= columns) gathered = *reinterpret_cast<const Entries*>(at);
        else
#pragma unroll
          for (int e = 0; e < S::PER; ++e) gathered.at[e] = column[a] + e < columns ? at[e] : T(0);
#pragma unroll
        for (int q = 0; q < S::PASSES; ++q)
          if (lane.row + q * S::ROWS < BLOCK)
#pragma unroll
            for (int e = 0; e < S::PER; ++e) sums[c][q] = fused(value[a][q].at[e], gathered.at[e], sums[c][q]);
      }
    }
  }
}

// y = alpha A x + beta y, of every column.
// launch: 24 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename I, int BLOCK, int TILE>
__global__ void __launch_bounds__(256, Once<BLOCK, T, TILE>::blocks) product_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, const T* x, T* y, int block, T alpha, T beta, int tile, int vectors,
    long long indptr_size, long long x_size, long long y_size, long long x_step, long long y_step) {
  const Tile<TILE> whole(ctx, vectors);
  if (whole.stopped()) return;
  using S = Shape<BLOCK, T>;
  constexpr int ONCE = Once<BLOCK, T, TILE>::columns;
  const Lane<BLOCK, T> lane;
  const I rows = I(indptr_size - 1), stride = I(threads() / 32 * S::GROUP);
#pragma unroll 1
  for (int begin = 0; begin < TILE; begin += ONCE) {
    const auto own = whole.template part<ONCE>(begin);
    for (I first = I(row_thread() / 32 * S::GROUP); first < rows; first += stride) {  // the whole warp together
      T sums[ONCE][S::PASSES];
      lane_sums<BLOCK>(indptr, indices, data, own, own.of(x, x_step), x_step, I(first + lane.member), rows, lane,
          I(x_size), sums);
#pragma unroll
      for (int c = 0; c < ONCE; ++c)
#pragma unroll
        for (int q = 0; q < S::PASSES; ++q) {
          const T total = row_sum<BLOCK>(sums[c][q], lane.across);
          const int within = lane.row + q * S::ROWS;
          const I row = (first + lane.member) * BLOCK + within;
          if (!own.runs(c) || lane.member >= S::GROUP || lane.across || within >= BLOCK || row >= I(y_size)) continue;
          T& of_row = own.of(y, y_step)[c * y_step + row];
          of_row = beta == T(0) ? alpha * total : fused(beta, of_row, alpha * total);
        }
    }
  }
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: 24 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename I, int BLOCK, int TILE>
__global__ void __launch_bounds__(256, Once<BLOCK, T, TILE>::blocks_dots) product_dots_columns(Context* ctx,
    const I* indptr, const I* indices, const T* data, const T* x, T* y, const T* w, acc_t<T>* dots, int block, int tile,
    int vectors, long long indptr_size, long long x_size, long long y_size, long long x_step, long long y_step,
    long long w_step) {
  const Tile<TILE> whole(ctx, vectors);
  if (whole.stopped()) return;
  using S = Shape<BLOCK, T>;
  constexpr int ONCE = Once<BLOCK, T, TILE>::columns;
  const Lane<BLOCK, T> lane;
  const I rows = I(indptr_size - 1), stride = I(threads() / 32 * S::GROUP);
#pragma unroll 1
  for (int begin = 0; begin < TILE; begin += ONCE) {
    const auto own = whole.template part<ONCE>(begin);
    acc_t<T> wy[ONCE];
    double yy[ONCE];
    clear(wy), clear(yy);
    for (I first = I(row_thread() / 32 * S::GROUP); first < rows; first += stride) {  // the whole warp together
      T sums[ONCE][S::PASSES];
      lane_sums<BLOCK>(indptr, indices, data, own, own.of(x, x_step), x_step, I(first + lane.member), rows, lane,
          I(x_size), sums);
#pragma unroll
      for (int c = 0; c < ONCE; ++c)
#pragma unroll
        for (int q = 0; q < S::PASSES; ++q) {
          const T total = row_sum<BLOCK>(sums[c][q], lane.across);
          const int within = lane.row + q * S::ROWS;
          const I row = (first + lane.member) * BLOCK + within;
          if (!own.runs(c) || lane.member >= S::GROUP || lane.across || within >= BLOCK || row >= I(y_size)) continue;
          own.of(y, y_step)[c * y_step + row] = total;
          wy[c] = conj_fused(own.of(w, w_step)[c * w_step + row], total, wy[c]);
          yy[c] += abs2(acc_t<T>(total));
        }
    }
    leave_dots<T>(ctx, own, wy, yy);
    if (ONCE < TILE) __syncthreads();                    // before the next columns' sums replace these
  }
}
