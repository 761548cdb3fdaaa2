// ELL products on a GPU, one thread a row; formats/ell.py describes the layout.
//
// As in SELL, a thread has 32 registers, so that 2048 threads share a multiprocessor. It issues a batch of loads before
// it uses the first. Matrix entries bypass the cache. Padding has column -1 and ends a row: nothing after it is read.
// A CPU has tiles of 64 rows and no such batches (ell.cpp).
#include "sliced.cuh"

template <class T, class I> DEVICE Batch<T, I> load_batch(const I* columns, const T* values, I at, int left, I pitch) {
  Batch<T, I> batch;
#pragma unroll
  for (int i = 0; i < batch.SIZE; ++i, at += pitch) {
    batch.column[i] = -1;
    if (i < left) {
      batch.column[i] = load_stream(columns + at);
      batch.value[i] = load_stream(values + at);
    }
  }
  return batch;
}

// The product of a row with x. `batch` holds the row's first entries, loaded before the stop flag was read.
template <class T, class I>
DEVICE T row_product(const I* columns, const T* values, const T* x, I at, int left, I pitch, Batch<T, I> batch) {
  T sum = accumulate(batch, x, T(0));                   // inside the loop this call makes the compiler spill registers
  while ((left -= batch.SIZE) > 0 && batch.column[batch.SIZE - 1] >= 0) {
    batch = load_batch(columns, values, at += batch.SIZE * pitch, left, pitch);
    sum = accumulate(batch, x, sum);
  }
  return sum;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void __launch_bounds__(256, scalar<T>::parts == 1 ? 8 : 4) product(Context* ctx, const I* columns,
    const T* values, const T* x, T* y, int width, T alpha, T beta, long long n, long long columns_stride) {
  let_next_start();
  const I row = I(thread_id()), pitch = I(columns_stride);
  const int length = row < I(n) ? width : 0;
  const Batch<T, I> batch = load_batch(columns, values, row, length, pitch);
  if (stopped(ctx)) return;
  const T sum = row_product(columns, values, x, row, length, pitch, batch);
  if (row < I(n)) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void __launch_bounds__(256, scalar<T>::parts == 1 ? 8 : 4) product_dots(Context* ctx, const I* columns,
    const T* values, const T* x, T* y, const T* w, acc_t<T>* dots, int width, long long n, long long columns_stride) {
  let_next_start();
  const I row = I(thread_id()), pitch = I(columns_stride);
  const int length = row < I(n) ? width : 0;
  const Batch<T, I> batch = load_batch(columns, values, row, length, pitch);
  if (stopped(ctx)) return;
  const T sum = row_product(columns, values, x, row, length, pitch, batch);
  put_dots(ctx, y, w, row, row < I(n), sum);
}

// The products of a row with the columns of x, as row_product.
template <int TILE, class T, class I>
DEVICE void row_products(const I* columns, const T* values, const Tile<TILE>& tile, const T* x, long long step, I at,
                         int left, I pitch, Batch<T, I> batch, T (&sums)[TILE]) {
  clear(sums);
  for (;;) {
    accumulate(tile, batch, x, step, sums);
    if ((left -= batch.SIZE) <= 0 || batch.column[batch.SIZE - 1] < 0) return;
    batch = load_batch(columns, values, at += batch.SIZE * pitch, left, pitch);
  }
}

// y = alpha A x + beta y, of every column.
// launch: elements of y, 256 threads
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_columns(Context* ctx, const I* columns,
    const T* values, const T* x, T* y, int width, T alpha, T beta, int tile, int vectors, long long n,
    long long columns_stride, long long x_step, long long y_step) {
  let_next_start();
  const I row = I(row_thread()), pitch = I(columns_stride);
  const int length = row < I(n) ? width : 0;
  const Batch<T, I> batch = load_batch(columns, values, row, length, pitch);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products(columns, values, own, own.of(x, x_step), x_step, row, length, pitch, batch, sums);
  if (row < I(n)) put(own, y, y_step, row, sums, alpha, beta);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_dots_columns(Context* ctx,
    const I* columns, const T* values, const T* x, T* y, const T* w, acc_t<T>* dots, int width, int tile, int vectors,
    long long n, long long columns_stride, long long x_step, long long y_step, long long w_step) {
  let_next_start();
  const I row = I(row_thread()), pitch = I(columns_stride);
  const int length = row < I(n) ? width : 0;
  const Batch<T, I> batch = load_batch(columns, values, row, length, pitch);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products(columns, values, own, own.of(x, x_step), x_step, row, length, pitch, batch, sums);
  put_dots(ctx, own, y, y_step, w, w_step, row, row < I(n), sums);
}
