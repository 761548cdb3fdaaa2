// Products with several right-hand sides (core/cuda_columns.py): a block treats TILE columns, so that it reads the
// matrix once for them. A thread has the rows of the one-vector kernel, and one sum for each column: every column gets
// the additions of its own product, in the same order, and so the same bits.
#pragma once
#include "context.cuh"

// Threads that share a multiprocessor: as many as TILE sums and TILE loads in flight leave registers for.
template <class T, int TILE> struct Room {
  static constexpr int bytes = TILE * int(sizeof(T)), large = scalar<T>::parts == 1 ? 1024 : 768;
  static constexpr int threads = bytes <= 16 ? 1536 : bytes <= 32 ? 1024 : bytes <= 64 ? large : 512;
  // for more loads
  static constexpr int fewer = bytes <= 16 ? 1280 : bytes <= 32 ? 768 : bytes <= 64 ? large - 256 : 512;
};

// Blocks start in the order of their numbers. Neighbours have the same rows and other columns, so that only the first
// of them reads the matrix from memory, and the others from the L2 cache. row_block, row_thread: in place of blockIdx.x
// and thread_id() of the one-vector kernel.
DEVICE unsigned block_number() { return blockIdx.y * gridDim.x + blockIdx.x; }
DEVICE unsigned row_block() { return block_number() / gridDim.y; }
DEVICE long long row_thread() { return row_block() * (long long)blockDim.x + threadIdx.x; }

// The columns of a block: TILE of them, from `first` on. Bit c of `running`: column first + c exists, and its loop has
// not stopped. Nothing is written for other columns. Every thread makes one first, whole warps together; then all
// earlier kernels have finished.
template <int TILE> struct Tile {
  int first;
  unsigned running;
  DEVICE Tile(int first, unsigned running) : first(first), running(running) {}
  DEVICE Tile(const Context* ctx, int columns) : first(block_number() % gridDim.y * TILE) {
    let_next_start();
    wait_for_previous();
    const int lane = threadIdx.x % 32;
    running = __ballot_sync(~0u, lane < TILE && first + lane < columns && !over(ctx + first + lane));
  }
  template <int PART> DEVICE Tile<PART> part(int begin) const {              // PART columns from its column `begin` on
    return Tile<PART>(first + begin, running >> begin & ((1u << PART) - 1));
  }
  DEVICE bool stopped() const { return running == 0; }                       // have all of them?
  DEVICE bool runs(int c) const { return running >> c & 1; }
  template <class P> DEVICE P* of(P* array, long long step) const { return array + first * step; }    // the first one's
};

// sums[c] += a x[column] for the running columns c. x: of the tile's first column; `step`: between columns.
template <int TILE, class T, class I>
DEVICE void add_entry(const Tile<TILE>& tile, T a, const T* x, long long step, I column, T (&sums)[TILE]) {
  T gathered[TILE];
  x += column;
#pragma unroll
  for (int c = 0; c < TILE; ++c, x += step)             // one address, since one for each column costs registers
    if (tile.runs(c)) gathered[c] = *x;
#pragma unroll
  for (int c = 0; c < TILE; ++c)
    if (tile.runs(c)) sums[c] = fused(a, gathered[c], sums[c]);
}

template <int TILE, class T> DEVICE void clear(T (&sums)[TILE]) {
#pragma unroll
  for (int c = 0; c < TILE; ++c) sums[c] = T(0);
}

// y[row] = alpha sums + beta y[row] of every running column; beta = 0 never reads y. y: of column 0.
template <int TILE, class T, class I>
DEVICE void put(const Tile<TILE>& tile, T* y, long long step, I row, const T (&sums)[TILE], T alpha, T beta) {
  y = tile.of(y, step);
#pragma unroll
  for (int c = 0; c < TILE; ++c)
    if (tile.runs(c)) {
      T& own = y[c * step + row];
      own = beta == T(0) ? alpha * sums[c] : fused(beta, own, alpha * sums[c]);
    }
}

// y[row] = alpha sums + beta z[row] + gamma w[row] of every running column; gamma = 0 never reads w.
template <int TILE, class T, class I>
DEVICE void put_sum(const Tile<TILE>& tile, T* y, long long y_step, const T* z, long long z_step, const T* w,
                    long long w_step, I row, const T (&sums)[TILE], T alpha, T beta, T gamma) {
  y = tile.of(y, y_step), z = tile.of(z, z_step), w = tile.of(w, w_step);
#pragma unroll
  for (int c = 0; c < TILE; ++c)
    if (tile.runs(c))
      y[c * y_step + row] = with_vectors(alpha * sums[c], z + c * z_step, beta, w + c * w_step, gamma, row);
}

// Leave this block's sums of every running column for collect_dots. All threads of a block call this. The warps share
// the columns; a column is added up as in block_sum.
template <class T, int TILE>
DEVICE void leave_dots(Context* ctx, const Tile<TILE>& tile, const acc_t<T> (&wy)[TILE], const double (&yy)[TILE]) {
  constexpr int COUNT = Two<T>::count;
  __shared__ double parts[32][TILE * COUNT];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
  for (int c = 0; c < TILE; ++c) {
    Two<T> own(wy[c], yy[c]);
    warp_sum(own.v);
    if (lane == 0)
#pragma unroll
      for (int k = 0; k < COUNT; ++k) parts[warp][c * COUNT + k] = own.v[k];
  }
  __syncthreads();
  for (int c = warp; c < TILE; c += warps) {
    double v[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) v[k] = lane < warps ? parts[lane][c * COUNT + k] : 0.0;
    warp_sum(v);
    if (lane || !tile.runs(c)) continue;
    Context* own = ctx + tile.first + c;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) own->left[row_block() * (long long)COUNT + k] = v[k];
    if (row_block() == 0) own->left_count = gridDim.x;
  }
}

// y[row] = sum, and this block's parts of (w, y) and (y, y) for collect_dots. `inside`: the thread has a row; without
// one its sum is 0. All threads of a block call this.
template <class T, class I> DEVICE void put_dots(Context* ctx, T* y, const T* w, I row, bool inside, T sum) {
  const T weight = inside ? w[row] : T(0);
  if (inside) y[row] = sum;
  leave_dots<T>(ctx, Two<T>(conj_fused(weight, sum, acc_t<T>(0)), abs2(acc_t<T>(sum))));
}

// The same for every running column.
template <int TILE, class T, class I>
DEVICE void put_dots(Context* ctx, const Tile<TILE>& tile, T* y, long long y_step, const T* w, long long w_step, I row,
                     bool inside, const T (&sums)[TILE]) {
  y = tile.of(y, y_step), w = tile.of(w, w_step);
  T weights[TILE];
  acc_t<T> wy[TILE];
  double yy[TILE];
#pragma unroll
  for (int c = 0; c < TILE; ++c) weights[c] = inside && tile.runs(c) ? w[c * w_step + row] : T(0);
#pragma unroll
  for (int c = 0; c < TILE; ++c) {
    if (inside && tile.runs(c)) y[c * y_step + row] = sums[c];
    wy[c] = conj_fused(weights[c], sums[c], acc_t<T>(0)), yy[c] = abs2(acc_t<T>(sums[c]));
  }
  leave_dots<T>(ctx, tile, wy, yy);
}
