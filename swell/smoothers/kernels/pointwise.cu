// Sweeps that update each row by itself, one thread for each row, in modified SELL. pointwise.cpp has them for a CPU,
// which needs no four loads in flight and no tiles of columns.
#include "columns.cuh"

// b - A x in row i. Padding (column 0) ends a row; the loads of four entries are in flight at a time.
template <int HEIGHT, class T, class I>
DEVICE T residual(const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const T* b, const T* x,
    int zero, long long i) {
  T total = b[i];
  if (zero) return total;
  const long long slice = i / HEIGHT, first = slice * HEIGHT;
  const I end = slice_ptr[slice + 1];
  total = fused(-diag[i], x[i], total);
  for (I at = slice_ptr[slice] + I(i - first); at < end; at += 4 * HEIGHT) {
    I column[4];
    T value[4], gathered[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) column[k] = at + k * HEIGHT < end ? __ldcs(col_idx + at + k * HEIGHT) : I(0);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k]) {
        value[k] = load_stream(entries + at + k * HEIGHT);
        gathered[k] = x[column[k] < 0 ? first - column[k] - 1 : column[k] - 1];
      }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k]) total = fused(-value[k], gathered[k], total);
    if (!column[3]) break;
  }
  return total;
}

// out = x + omega D^-1 (b - A x); with `zero` x counts as 0 and is not read.
// launch: elements of out, 256 threads
template <typename T, typename I, int HEIGHT>
__global__ void jacobi(Context* ctx, const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const T* b,
                       const T* x, T* out, T omega, int zero, int height, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  const T step = omega * residual<HEIGHT>(slice_ptr, diag, entries, col_idx, b, x, zero, i) / diag[i];
  out[i] = zero ? step : x[i] + step;
}

// d = c0 d + c1 D^-1 (b - A x); out = x + d. Step 0 does not read d; with `zero` x counts as 0 and is not read.
// launch: elements of out, 256 threads
template <typename T, typename I, int HEIGHT>
__global__ void chebyshev(Context* ctx, const I* slice_ptr, const T* diag, const T* entries, const I* col_idx,
    const T* b, const T* x, T* out, T* d, const double* coefficients, int step, int zero, int height, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  const real_t<T> c0(coefficients[2 * step]), c1(coefficients[2 * step + 1]);
  T move = c1 * (residual<HEIGHT>(slice_ptr, diag, entries, col_idx, b, x, zero, i) / diag[i]);
  if (step) move += c0 * d[i];
  d[i] = move;
  out[i] = zero ? move : x[i] + move;
}

// sums = b - A x in row i, for several columns, as residual computes each.
template <int HEIGHT, int TILE, class T, class I>
DEVICE void residuals(const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const Tile<TILE>& tile,
    const T* b, long long b_step, const T* x, long long x_step, int zero, long long i, T (&sums)[TILE]) {
  b = tile.of(b, b_step), x = tile.of(x, x_step);
#pragma unroll
  for (int c = 0; c < TILE; ++c) sums[c] = tile.runs(c) ? b[c * b_step + i] : T(0);
  if (zero) return;
  const long long slice = i / HEIGHT, first = slice * HEIGHT;
  const I end = slice_ptr[slice + 1];
  add_entry(tile, -diag[i], x, x_step, i, sums);
  for (I at = slice_ptr[slice] + I(i - first); at < end; at += 4 * HEIGHT) {
    I column[4];
    T value[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) column[k] = at + k * HEIGHT < end ? __ldcs(col_idx + at + k * HEIGHT) : I(0);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k]) value[k] = load_stream(entries + at + k * HEIGHT);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k]) add_entry(tile, -value[k], x, x_step, column[k] < 0 ? first - column[k] - 1 : column[k] - 1, sums);
    if (!column[3]) break;
  }
}

// jacobi for several columns.
// launch: elements of out, 256 threads
template <typename T, typename I, int HEIGHT, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::fewer / 256) jacobi_columns(Context* ctx, const I* slice_ptr,
    const T* diag, const T* entries, const I* col_idx, const T* b, const T* x, T* out, T omega, int zero, int height,
    int tile, int vectors, long long n, long long b_step, long long x_step, long long out_step) {
  const Tile<TILE> own(ctx, vectors);
  const long long i = row_thread();
  if (own.stopped() || i >= n) return;
  T sums[TILE];
  residuals<HEIGHT>(slice_ptr, diag, entries, col_idx, own, b, b_step, x, x_step, zero, i, sums);
  x = own.of(x, x_step), out = own.of(out, out_step);
#pragma unroll
  for (int c = 0; c < TILE; ++c)
    if (own.runs(c)) {
      const T step = omega * sums[c] / diag[i];
      out[c * out_step + i] = zero ? step : x[c * x_step + i] + step;
    }
}
