// Modified SELL products on a GPU: a block has a slice, a thread a row; formats/modified_sell.py describes the layout.
//
// The x of a slice's own rows lies in shared memory. Values of x outside the slice are gathered before the block waits
// for it. Occupancy decides the speed, as in SELL: 32 registers, so that 2048 threads share a multiprocessor at any
// height. This bound also allows blocks of 1024 threads. Padding has code 0 and ends a row: nothing after it is read.
#include "columns.cuh"

template <class T, int HEIGHT> struct Fit {
  static constexpr int all = (scalar<T>::parts == 1 ? 2048 : 1024) / HEIGHT;
  static constexpr int blocks = all > 32 ? 32 : all;             // blocks per multiprocessor
};

template <class T, class I> struct Matrix {
  const I* slice_ptr;
  const T* diag;
  const T* entries;
  const I* col_idx;
};

// The entries of one row that a thread has in flight. code 0: padding, or past the end.
template <class T, class I> struct Batch {
  static constexpr int SIZE = scalar<T>::parts == 1 ? 3 : 4;
  I code[SIZE];
  T value[SIZE];
};

template <int HEIGHT, class T, class I> DEVICE Batch<T, I> load_batch(const Matrix<T, I>& A, I at, int left) {
  Batch<T, I> batch;
#pragma unroll
  for (int i = 0; i < batch.SIZE; ++i) {
    batch.code[i] = 0;
    if (i < left) {
      batch.code[i] = load_stream(A.col_idx + at + i * HEIGHT);
      batch.value[i] = load_stream(A.entries + at + i * HEIGHT);
    }
  }
  return batch;
}

// The product of a row with x. `batch` holds the row's first entries, `sum` the diagonal's term. All threads of a block
// call this.
template <int HEIGHT, class T, class I>
DEVICE T row_product(const Matrix<T, I>& A, const T* x, const T* own, I at, int left, Batch<T, I> batch, T sum) {
  for (bool first = true;; first = false) {
    T gathered[batch.SIZE];
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i)
      if (batch.code[i] > 0) gathered[i] = x[batch.code[i] - 1];
    if (first) __syncthreads();                                  // the x of this slice is now in shared memory
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i)
      if (batch.code[i] < 0) gathered[i] = own[-(batch.code[i] + 1)];
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i)
      if (batch.code[i] != 0) sum = fused(batch.value[i], gathered[i], sum);
    if ((left -= batch.SIZE) <= 0 || batch.code[batch.SIZE - 1] == 0) return sum;
    batch = load_batch<HEIGHT>(A, at += batch.SIZE * HEIGHT, left);
  }
}

// sum = the product of the thread's row with x. The block loads the slice's part of x to `own`. Returns false if the
// solver has stopped.
template <int HEIGHT, class T, class I>
DEVICE bool own_product(Context* ctx, const Matrix<T, I>& A, const T* x, T* own, I row, I x_size, I y_size, T& sum) {
  let_next_start();
  const I begin = __ldg(A.slice_ptr + blockIdx.x);
  const int length = int((__ldg(A.slice_ptr + blockIdx.x + 1) - begin) / HEIGHT);
  const Batch<T, I> batch = load_batch<HEIGHT>(A, begin + I(threadIdx.x), length);
  const T d = row < y_size ? load_stream(A.diag + row) : T(0);
  if (stopped(ctx)) return false;
  const T mine = row < x_size ? x[row] : T(0);
  own[threadIdx.x] = mine;
  sum = row_product<HEIGHT>(A, x, own, begin + I(threadIdx.x), length, batch, d * mine);
  return true;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: a block of height threads for each slice of slice_ptr
template <typename T, typename I, int HEIGHT>
__global__ void __launch_bounds__(HEIGHT, Fit<T, HEIGHT>::blocks) product(Context* ctx, const I* slice_ptr,
    const T* diag, const T* entries, const I* col_idx, const T* x, T* y, int height, T alpha, T beta, long long x_size,
    long long y_size) {
  __shared__ T own[HEIGHT];
  const Matrix<T, I> A{slice_ptr, diag, entries, col_idx};
  const I row = I(blockIdx.x) * HEIGHT + I(threadIdx.x);
  T sum;
  if (!own_product<HEIGHT>(ctx, A, x, own, row, I(x_size), I(y_size), sum)) return;
  if (row < I(y_size)) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: a block of height threads for each slice of slice_ptr
template <typename T, typename I, int HEIGHT>
__global__ void __launch_bounds__(HEIGHT, Fit<T, HEIGHT>::blocks) product_dots(Context* ctx, const I* slice_ptr,
    const T* diag, const T* entries, const I* col_idx, const T* x, T* y, const T* w, acc_t<T>* dots, int height,
    long long x_size, long long y_size) {
  __shared__ T own[HEIGHT];
  const Matrix<T, I> A{slice_ptr, diag, entries, col_idx};
  const I row = I(blockIdx.x) * HEIGHT + I(threadIdx.x);
  T sum;
  if (!own_product<HEIGHT>(ctx, A, x, own, row, I(x_size), I(y_size), sum)) return;
  put_dots(ctx, y, w, row, row < I(y_size), sum);
}

// For TILE columns: as many blocks as fit; one if HEIGHT rows alone fill a multiprocessor.
template <class T, int HEIGHT, int TILE> struct FitColumns {
  static constexpr int all = Room<T, TILE>::fewer / HEIGHT;
  static constexpr int blocks = all > 32 ? 32 : all > 1 ? all : 1;
};

// sums = the products of the thread's row with the columns of x, as own_product. The x of the slice's rows comes
// through the cache, since shared memory would not hold TILE columns of 1024 rows.
template <int HEIGHT, int TILE, class T, class I>
DEVICE void own_products(const Matrix<T, I>& A, const Tile<TILE>& tile, const T* x, long long step, I row, T d,
    I x_size, I at, int left, Batch<T, I> batch, T (&sums)[TILE]) {
#pragma unroll
  for (int c = 0; c < TILE; ++c) sums[c] = row < x_size && tile.runs(c) ? d * x[c * step + row] : d * T(0);
  const I before = row - I(threadIdx.x);
  for (;;) {
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i) {
      const I code = batch.code[i];
      if (code != 0) add_entry(tile, batch.value[i], x, step, code > 0 ? code - 1 : before - (code + 1), sums);
    }
    if ((left -= batch.SIZE) <= 0 || batch.code[batch.SIZE - 1] == 0) return;
    batch = load_batch<HEIGHT>(A, at += batch.SIZE * HEIGHT, left);
  }
}

// y = alpha A x + beta y, of every column.
// launch: a block of height threads for each slice of slice_ptr
template <typename T, typename I, int HEIGHT, int TILE>
__global__ void __launch_bounds__(HEIGHT, FitColumns<T, HEIGHT, TILE>::blocks) product_columns(Context* ctx,
    const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const T* x, T* y, int height, T alpha,
    T beta, int tile, int vectors, long long x_size, long long y_size, long long x_step, long long y_step) {
  let_next_start();
  const Matrix<T, I> A{slice_ptr, diag, entries, col_idx};
  const I row = I(row_block()) * HEIGHT + I(threadIdx.x), begin = __ldg(slice_ptr + row_block());
  const int length = int((__ldg(slice_ptr + row_block() + 1) - begin) / HEIGHT);
  const Batch<T, I> batch = load_batch<HEIGHT>(A, begin + I(threadIdx.x), length);
  const T d = row < I(y_size) ? load_stream(diag + row) : T(0);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  own_products<HEIGHT>(A, own, own.of(x, x_step), x_step, row, d, I(x_size), begin + I(threadIdx.x), length, batch,
      sums);
  if (row < I(y_size)) put(own, y, y_step, row, sums, alpha, beta);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: a block of height threads for each slice of slice_ptr
template <typename T, typename I, int HEIGHT, int TILE>
__global__ void __launch_bounds__(HEIGHT, FitColumns<T, HEIGHT, TILE>::blocks) product_dots_columns(Context* ctx,
    const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const T* x, T* y, const T* w, acc_t<T>* dots,
    int height, int tile, int vectors, long long x_size, long long y_size, long long x_step, long long y_step,
    long long w_step) {
  let_next_start();
  const Matrix<T, I> A{slice_ptr, diag, entries, col_idx};
  const I row = I(row_block()) * HEIGHT + I(threadIdx.x), begin = __ldg(slice_ptr + row_block());
  const int length = int((__ldg(slice_ptr + row_block() + 1) - begin) / HEIGHT);
  const Batch<T, I> batch = load_batch<HEIGHT>(A, begin + I(threadIdx.x), length);
  const T d = row < I(y_size) ? load_stream(diag + row) : T(0);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  own_products<HEIGHT>(A, own, own.of(x, x_step), x_step, row, d, I(x_size), begin + I(threadIdx.x), length, batch,
      sums);
  put_dots(ctx, own, y, y_step, w, w_step, row, row < I(y_size), sums);
}
