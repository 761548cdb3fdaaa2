// SELL products on a GPU, one thread a row over the full grid; formats/sell.py describes the layout.
//
// Occupancy decides the speed. A thread has 32 registers, so that 2048 threads share a multiprocessor, and issues all
// loads of a batch before it uses the first. Matrix entries are read once and bypass the cache (load_stream), which
// leaves it to x. The offset marks padding; its value and x are not used. HEIGHT is a constant, since a division by a
// variable costs registers. A block has `task` threads, at most 512; the launch bounds limit the registers for this.
#include "sliced.cuh"

constexpr unsigned PAD = 0xFFFF;

template <class T, class I> struct Matrix {
  const I *ptr, *base;
  const unsigned short* offsets;
  const T* values;
  const I* high_ptr;
  const unsigned short* high;
};

// A row's place. start: the first slice column of its slice. lane: the row in the slice. up: where the slice's upper
// halves begin, -1 if 16 bits suffice. width: the number of slice columns.
template <class I> struct Row {
  I start, lane, up;
  int width;
};

template <int HEIGHT, bool HIGH, class T, class I> DEVICE Row<I> find_row(const Matrix<T, I>& A, I slot, I slices) {
  const I slice = slot / HEIGHT;
  Row<I> row{0, slot % HEIGHT, -1, 0};
  if (slice < slices) {
    row.start = __ldg(A.ptr + slice) / HEIGHT;
    row.width = int(__ldg(A.ptr + slice + 1) / HEIGHT - row.start);
    if constexpr (HIGH) row.up = __ldg(A.high_ptr + slice);
  }
  return row;
}

template <int HEIGHT, bool HIGH, class T, class I>
DEVICE Batch<T, I> load_batch(const Matrix<T, I>& A, const Row<I>& row, int k) {
  Batch<T, I> batch;
#pragma unroll
  for (int i = 0; i < batch.SIZE; ++i) {
    unsigned low = PAD;
    I from = 0;
    const I at = (row.start + k + i) * HEIGHT + row.lane;
    if (k + i < row.width) {
      low = load_stream(A.offsets + at);
      batch.value[i] = load_stream(A.values + at);
      from = __ldg(A.base + row.start + k + i);
    }
    batch.column[i] = low == PAD ? I(-1) : from + I(low);
    if constexpr (HIGH)
      if (row.up >= 0 && k + i < row.width) {          // a slice whose columns need more than 16 bits
        const unsigned top = load_stream(A.high + row.up + (k + i) * HEIGHT + row.lane);
        batch.column[i] = low == PAD && top == PAD ? I(-1) : I(low) + (I(top) << 16);
      }
  }
  return batch;
}

// The product of a row with x. `batch` holds the row's first entries, loaded before the stop flag was read.
template <int HEIGHT, bool HIGH, class T, class I>
DEVICE T row_product(const Matrix<T, I>& A, const T* x, const Row<I>& row, Batch<T, I> batch) {
  T sum(0);
  for (int k = 0;;) {
    sum = accumulate(batch, x, sum);
    if ((k += batch.SIZE) >= row.width) return sum;
    batch = load_batch<HEIGHT, HIGH>(A, row, k);
  }
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH>
__global__ void __launch_bounds__(512, scalar<T>::parts == 1 ? 4 : 2) product(Context* ctx, const I* ptr, const I* base,
    const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr, const unsigned short* high,
    const T* x, T* y, int height, int window, int task, T alpha, T beta, long long n, long long ptr_size) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(thread_id()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));
  if (stopped(ctx)) return;
  const T sum = row_product<HEIGHT, HIGH>(A, x, place, batch);
  if (row < I(n)) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = alpha A x + beta z + gamma w.
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH>
__global__ void __launch_bounds__(512, scalar<T>::parts == 1 ? 4 : 2) product_sum(Context* ctx, const I* ptr,
    const I* base, const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr,
    const unsigned short* high, const T* x, const T* z, const T* w, T* y, int height, int window, int task, T alpha,
    T beta, T gamma, long long n, long long ptr_size) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(thread_id()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));
  if (stopped(ctx)) return;
  const T sum = row_product<HEIGHT, HIGH>(A, x, place, batch);
  if (row < I(n)) y[row] = with_vectors(alpha * sum, z, beta, w, gamma, row);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH>
__global__ void __launch_bounds__(512, scalar<T>::parts == 1 ? 4 : 2) product_dots(Context* ctx, const I* ptr,
    const I* base, const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr,
    const unsigned short* high, const T* x, T* y, const T* w, acc_t<T>* dots, int height, int window, int task,
    long long n, long long ptr_size) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(thread_id()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  if (stopped(ctx)) return;
  const T sum = row_product<HEIGHT, HIGH>(A, x, place, batch);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));      // as late as this, to stay within 32 registers
  put_dots(ctx, y, w, row, row < I(n), sum);
}

// The products of a row with the columns of x, as row_product.
template <int HEIGHT, bool HIGH, int TILE, class T, class I>
DEVICE void row_products(const Matrix<T, I>& A, const Tile<TILE>& tile, const T* x, long long step, const Row<I>& row,
                         Batch<T, I> batch, T (&sums)[TILE]) {
  clear(sums);
  for (int k = 0;;) {
    accumulate(tile, batch, x, step, sums);
    if ((k += batch.SIZE) >= row.width) return;
    batch = load_batch<HEIGHT, HIGH>(A, row, k);
  }
}

// y = alpha A x + beta y, of every column.
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH, int TILE>
__global__ void __launch_bounds__(512, Room<T, TILE>::threads / 512) product_columns(Context* ctx, const I* ptr,
    const I* base, const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr,
    const unsigned short* high, const T* x, T* y, int height, int window, int task, T alpha, T beta, int tile,
    int vectors, long long n, long long ptr_size, long long x_step, long long y_step) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(row_thread()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<HEIGHT, HIGH>(A, own, own.of(x, x_step), x_step, place, batch, sums);
  if (row < I(n)) put(own, y, y_step, row, sums, alpha, beta);
}

// y = alpha A x + beta z + gamma w, of every column.
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH, int TILE>
__global__ void __launch_bounds__(512, Room<T, TILE>::threads / 512) product_sum_columns(Context* ctx, const I* ptr,
    const I* base, const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr,
    const unsigned short* high, const T* x, const T* z, const T* w, T* y, int height, int window, int task, T alpha,
    T beta, T gamma, int tile, int vectors, long long n, long long ptr_size, long long x_step, long long z_step,
    long long w_step, long long y_step) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(row_thread()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<HEIGHT, HIGH>(A, own, own.of(x, x_step), x_step, place, batch, sums);
  if (row < I(n)) put_sum(own, y, y_step, z, z_step, w, w_step, row, sums, alpha, beta, gamma);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, task threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH, int TILE>
__global__ void __launch_bounds__(512, Room<T, TILE>::threads / 512) product_dots_columns(Context* ctx, const I* ptr,
    const I* base, const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr,
    const unsigned short* high, const T* x, T* y, const T* w, acc_t<T>* dots, int height, int window, int task,
    int tile, int vectors, long long n, long long ptr_size, long long x_step, long long y_step, long long w_step) {
  let_next_start();
  const Matrix<T, I> A{ptr, base, offsets, values, high_ptr, high};
  const I slot = I(row_thread()), slices = I(ptr_size - 1);
  const Row<I> place = find_row<HEIGHT, HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HEIGHT, HIGH>(A, place, 0);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<HEIGHT, HIGH>(A, own, own.of(x, x_step), x_step, place, batch, sums);
  const I row = row_at(rows, slot, slices * HEIGHT, window, I(n));
  put_dots(ctx, own, y, y_step, w, w_step, row, row < I(n), sums);
}
