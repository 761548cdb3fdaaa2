// Staircase SELL products on a GPU, a slice a warp, one thread a row; formats/staircase_sell.py describes the layout.
//
// The length of a slice column is the number of lanes whose rows reach it. The warp counts them by a vote; if all lanes
// reach the end of a batch, one vote serves the batch. As in SELL, a thread has 32 registers, so that 2048 threads
// share a multiprocessor. It issues a batch of loads before it uses the first. Matrix entries bypass the cache.
#include "sliced.cuh"

template <class T, class I, class W> struct Matrix {
  const I *ptr, *base_ptr;
  const W* lengths;
  const I* base;
  const unsigned short* offsets;
  const T* values;
  const I* high_ptr;
  const unsigned short* high;
};

// The rest of a lane's row: the indices of its next entry (at), of its base (base) and of its upper half (up, -1 if 16
// bits suffice); and the number of entries left.
template <class I> struct Row {
  I at, base, up;
  int left;
};

template <bool HIGH, class T, class I, class W> DEVICE Row<I> find_row(const Matrix<T, I, W>& A, I slot, I slices) {
  const I slice = slot / 32, lane = slot % 32;
  Row<I> row{0, 0, -1, 0};
  if (slice < slices) {                                          // all lanes of a warp, or none
    row.left = int(__ldg(A.lengths + slot));
    row.at = __ldg(A.ptr + slice) + lane;
    row.base = __ldg(A.base_ptr + slice);
    if constexpr (HIGH) row.up = __ldg(A.high_ptr + slice);
    if (HIGH && row.up >= 0) row.up += lane;
  }
  return row;
}

// Load entry i of the batch; it lies `below` entries after the lane's next entry.
template <bool HIGH, class T, class I, class W>
DEVICE void load_entry(const Matrix<T, I, W>& A, const Row<I>& row, int below, Batch<T, I>& batch, int i) {
  const I low = load_stream(A.offsets + row.at + below);
  batch.value[i] = load_stream(A.values + row.at + below);
  batch.column[i] = __ldg(A.base + row.base + i) + low;
  if constexpr (HIGH)
    if (row.up >= 0) batch.column[i] = low + (I(load_stream(A.high + row.up + below)) << 16);
}

template <bool HIGH, class T, class I, class W> DEVICE Batch<T, I> load_batch(const Matrix<T, I, W>& A, Row<I>& row) {
  Batch<T, I> batch;
  int below = 0;
  if (__all_sync(~0u, row.left >= batch.SIZE)) {                 // the usual case: slice columns of 32 entries
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i) load_entry<HIGH>(A, row, 32 * i, batch, i);
    below = 32 * batch.SIZE;
  } else {
#pragma unroll
    for (int i = 0; i < batch.SIZE; ++i) {
      batch.column[i] = -1;
      if (i < row.left) load_entry<HIGH>(A, row, below, batch, i);
      below += __popc(__ballot_sync(~0u, i < row.left));
    }
  }
  row.at += below, row.base += batch.SIZE, row.left -= batch.SIZE;
  if (HIGH && row.up >= 0) row.up += below;
  return batch;
}

// The product of a row with x. `batch` holds the row's first entries, loaded before the stop flag was read.
template <bool HIGH, class T, class I, class W>
DEVICE T row_product(const Matrix<T, I, W>& A, const T* x, Row<I>& row, Batch<T, I> batch) {
  T sum(0);
  for (;;) {
    sum = accumulate(batch, x, sum);
    if (!__any_sync(~0u, row.left > 0)) return sum;              // the whole warp stays together, for its votes
    batch = load_batch<HIGH>(A, row);
  }
}

// Write every entry to its place; `order` is the row at each place. A warp has a slice, whose longest rows come first.
// launch: elements of ptr, 32 threads, a warp each
template <typename T, typename I, typename P>
__global__ void place_entries(Context* ctx, const I* indptr, const I* indices, const T* data, const I* order,
    const P* ptr, const P* base_ptr, const P* base, const P* high_ptr, T* values, unsigned short* offsets,
    unsigned short* high, long long n, long long indptr_size, long long high_ptr_size) {
  if (stopped(ctx)) return;
  const long long s = blockIdx.x;
  if (s >= n - 1) return;
  const int lane = threadIdx.x, width = int(base_ptr[s + 1] - base_ptr[s]);
  const long long row = order[s * 32 + lane];
  const bool there = row < indptr_size - 1;
  const I begin = there ? indptr[row] : I(0), length = there ? indptr[row + 1] - begin : I(0);
  const long long upper = high_ptr_size ? (long long)high_ptr[s] : -1;
  long long column = 0;                                // entries in the preceding slice columns
  for (int k = 0; k < width; ++k) {
    const unsigned longer = __ballot_sync(~0u, k < length);
    if (k < length) {
      const long long at = ptr[s] + column + lane, offset = indices[begin + k] - (long long)base[base_ptr[s] + k];
      values[at] = data[begin + k];
      offsets[at] = (unsigned short)(offset & 0xFFFF);
      if (upper >= 0) high[upper + column + lane] = (unsigned short)(offset >> 16);
    }
    column += __popc(longer);
  }
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I, typename W, bool HIGH>
__global__ void __launch_bounds__(256, scalar<T>::parts == 1 ? 8 : 4) product(Context* ctx, const I* ptr,
    const I* base_ptr, const W* lengths, const I* base, const unsigned short* offsets, const T* values, const W* rows,
    const I* high_ptr, const unsigned short* high, const T* x, T* y, int window, T alpha, T beta, long long n,
    long long ptr_size) {
  let_next_start();
  const Matrix<T, I, W> A{ptr, base_ptr, lengths, base, offsets, values, high_ptr, high};
  const I slot = I(thread_id()), slices = I(ptr_size - 1);
  Row<I> place = find_row<HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HIGH>(A, place);
  if (stopped(ctx)) return;
  const T sum = row_product<HIGH>(A, x, place, batch);
  const I row = row_at(rows, slot, slices * 32, window, I(n));           // as late as this, to stay within 32 registers
  if (row < I(n)) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, typename W, bool HIGH>
__global__ void __launch_bounds__(256, scalar<T>::parts == 1 ? 8 : 4) product_dots(Context* ctx, const I* ptr,
    const I* base_ptr, const W* lengths, const I* base, const unsigned short* offsets, const T* values, const W* rows,
    const I* high_ptr, const unsigned short* high, const T* x, T* y, const T* w, acc_t<T>* dots, int window,
    long long n, long long ptr_size) {
  let_next_start();
  const Matrix<T, I, W> A{ptr, base_ptr, lengths, base, offsets, values, high_ptr, high};
  const I slot = I(thread_id()), slices = I(ptr_size - 1);
  Row<I> place = find_row<HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HIGH>(A, place);
  if (stopped(ctx)) return;
  const T sum = row_product<HIGH>(A, x, place, batch);
  const I row = row_at(rows, slot, slices * 32, window, I(n));
  put_dots(ctx, y, w, row, row < I(n), sum);
}

// The products of a row with the columns of x, as row_product.
template <bool HIGH, int TILE, class T, class I, class W>
DEVICE void row_products(const Matrix<T, I, W>& A, const Tile<TILE>& tile, const T* x, long long step, Row<I>& row,
                         Batch<T, I> batch, T (&sums)[TILE]) {
  clear(sums);
  for (;;) {
    accumulate(tile, batch, x, step, sums);
    if (!__any_sync(~0u, row.left > 0)) return;                  // the whole warp stays together, for its votes
    batch = load_batch<HIGH>(A, row);
  }
}

// y = alpha A x + beta y, of every column.
// launch: elements of y, 256 threads
template <typename T, typename I, typename W, bool HIGH, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_columns(Context* ctx, const I* ptr,
    const I* base_ptr, const W* lengths, const I* base, const unsigned short* offsets, const T* values, const W* rows,
    const I* high_ptr, const unsigned short* high, const T* x, T* y, int window, T alpha, T beta, int tile, int vectors,
    long long n, long long ptr_size, long long x_step, long long y_step) {
  let_next_start();
  const Matrix<T, I, W> A{ptr, base_ptr, lengths, base, offsets, values, high_ptr, high};
  const I slot = I(row_thread()), slices = I(ptr_size - 1);
  Row<I> place = find_row<HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HIGH>(A, place);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<HIGH>(A, own, own.of(x, x_step), x_step, place, batch, sums);
  const I row = row_at(rows, slot, slices * 32, window, I(n));
  if (row < I(n)) put(own, y, y_step, row, sums, alpha, beta);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, typename W, bool HIGH, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_dots_columns(Context* ctx, const I* ptr,
    const I* base_ptr, const W* lengths, const I* base, const unsigned short* offsets, const T* values, const W* rows,
    const I* high_ptr, const unsigned short* high, const T* x, T* y, const T* w, acc_t<T>* dots, int window, int tile,
    int vectors, long long n, long long ptr_size, long long x_step, long long y_step, long long w_step) {
  let_next_start();
  const Matrix<T, I, W> A{ptr, base_ptr, lengths, base, offsets, values, high_ptr, high};
  const I slot = I(row_thread()), slices = I(ptr_size - 1);
  Row<I> place = find_row<HIGH>(A, slot, slices);
  const Batch<T, I> batch = load_batch<HIGH>(A, place);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<HIGH>(A, own, own.of(x, x_step), x_step, place, batch, sums);
  const I row = row_at(rows, slot, slices * 32, window, I(n));
  put_dots(ctx, own, y, y_step, w, w_step, row, row < I(n), sums);
}
