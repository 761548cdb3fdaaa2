// Block SELL products on a GPU, a thread a row, neighbouring rows in neighbouring threads; formats/block_sell.py
// describes the layout.
//
// As in SELL, a thread loads a batch of values before it uses the first: columns of one block, or of several small
// blocks. Padding has column -1 and ends the row. HEIGHT and BLOCK are constants, since divisions by variables cost
// registers.
#include "columns.cuh"

// Row `lane` of a slice with slice columns e to end - 1: add(value, column) for each entry whose column is below
// x_size.
template <int HEIGHT, int BLOCK, class T, class I, class Add>
DEVICE void walk(const I* columns, const T* values, I e, I end, int lane, I x_size, Add add) {
  constexpr int ROWS = HEIGHT * BLOCK, WIDTH = BLOCK < 4 ? BLOCK : 4, AHEAD = BLOCK < 4 ? 4 / BLOCK : 1;
  for (; e < end; e += AHEAD) {
    I of_block[AHEAD];
#pragma unroll
    for (int a = 0; a < AHEAD; ++a)
      of_block[a] = e + a < end ? load_stream(columns + (e + a) * HEIGHT + lane / BLOCK) : I(-1);
#pragma unroll
    for (int c = 0; c < BLOCK; c += WIDTH) {             // WIDTH columns of each block at a time
      T value[AHEAD][WIDTH];
#pragma unroll
      for (int a = 0; a < AHEAD; ++a)
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
          if (of_block[a] >= 0 && c + i < BLOCK)
            value[a][i] = load_stream(values + ((e + a) * BLOCK + c + i) * ROWS + lane);
#pragma unroll
      for (int a = 0; a < AHEAD; ++a)
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
          const I column = of_block[a] * BLOCK + c + i;
          if (of_block[a] >= 0 && c + i < BLOCK && column < x_size) add(value[a][i], column);
        }
    }
    if (of_block[AHEAD - 1] < 0) return;                 // padding ends the row
  }
}

// The product of a row with x.
template <int HEIGHT, int BLOCK, class T, class I>
DEVICE T row_product(const I* columns, const T* values, const T* x, I e, I end, int lane, I x_size) {
  T sum(0);
  walk<HEIGHT, BLOCK>(columns, values, e, end, lane, x_size, [&](T value, I at) { sum = fused(value, x[at], sum); });
  return sum;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I, int HEIGHT, int BLOCK>
__global__ void __launch_bounds__(256) product(Context* ctx, const I* ptr, const I* columns, const T* values,
    const T* x, T* y, int height, int block, T alpha, T beta, long long n, long long x_size) {
  if (stopped(ctx)) return;
  const I row = I(thread_id()), slice = row / (HEIGHT * BLOCK);
  if (row >= I(n)) return;
  const I begin = __ldg(ptr + slice) / HEIGHT, end = __ldg(ptr + slice + 1) / HEIGHT;
  const T sum = row_product<HEIGHT, BLOCK>(columns, values, x, begin, end, int(row % (HEIGHT * BLOCK)), I(x_size));
  y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, int HEIGHT, int BLOCK>
__global__ void __launch_bounds__(256) product_dots(Context* ctx, const I* ptr, const I* columns, const T* values,
    const T* x, T* y, const T* w, acc_t<T>* dots, int height, int block, long long n, long long x_size) {
  if (stopped(ctx)) return;
  const I row = I(thread_id()), slice = row / (HEIGHT * BLOCK);
  const bool inside = row < I(n);
  const I begin = inside ? __ldg(ptr + slice) / HEIGHT : I(0), end = inside ? __ldg(ptr + slice + 1) / HEIGHT : I(0);
  const T sum = row_product<HEIGHT, BLOCK>(columns, values, x, begin, end, int(row % (HEIGHT * BLOCK)), I(x_size));
  put_dots(ctx, y, w, row, inside, sum);
}

// The products with the columns of x of a row, as row_product.
template <int HEIGHT, int BLOCK, int TILE, class T, class I>
DEVICE void row_products(const I* columns, const T* values, const Tile<TILE>& tile, const T* x, long long step, I e,
    I end, int lane, I x_size, T (&sums)[TILE]) {
  clear(sums);
  walk<HEIGHT, BLOCK>(columns, values, e, end, lane, x_size,
                      [&](T value, I at) { add_entry(tile, value, x, step, at, sums); });
}

// y = alpha A x + beta y, of every column.
// launch: elements of y, 256 threads
template <typename T, typename I, int HEIGHT, int BLOCK, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::fewer / 256) product_columns(Context* ctx, const I* ptr,
    const I* columns, const T* values, const T* x, T* y, int height, int block, T alpha, T beta, int tile, int vectors,
    long long n, long long x_size, long long x_step, long long y_step) {
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  const I row = I(row_thread()), slice = row / (HEIGHT * BLOCK);
  if (row >= I(n)) return;
  const I begin = __ldg(ptr + slice) / HEIGHT, end = __ldg(ptr + slice + 1) / HEIGHT;
  T sums[TILE];
  row_products<HEIGHT, BLOCK>(columns, values, own, own.of(x, x_step), x_step, begin, end, int(row % (HEIGHT * BLOCK)),
                              I(x_size), sums);
  put(own, y, y_step, row, sums, alpha, beta);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, int HEIGHT, int BLOCK, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::fewer / 256) product_dots_columns(Context* ctx, const I* ptr,
    const I* columns, const T* values, const T* x, T* y, const T* w, acc_t<T>* dots, int height, int block, int tile,
    int vectors, long long n, long long x_size, long long x_step, long long y_step, long long w_step) {
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  const I row = I(row_thread()), slice = row / (HEIGHT * BLOCK);
  const bool inside = row < I(n);
  const I begin = inside ? __ldg(ptr + slice) / HEIGHT : I(0), end = inside ? __ldg(ptr + slice + 1) / HEIGHT : I(0);
  T sums[TILE];
  row_products<HEIGHT, BLOCK>(columns, values, own, own.of(x, x_step), x_step, begin, end, int(row % (HEIGHT * BLOCK)),
                              I(x_size), sums);
  put_dots(ctx, own, y, y_step, w, w_step, row, inside, sums);
}
