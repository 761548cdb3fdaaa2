// CSR products on a GPU: a warp has 32 rows, and `lanes` lanes share a row; 0 takes the power of two below the mean row
// length.
#include "columns.cuh"

// Products with x of the warp's 32 rows: each lane returns the product of row (first row) + (lane number).
template <class T, class I>
DEVICE T row_product(const I* indptr, const I* indices, const T* data, const T* x, int lanes, long long n,
    long long nnz) {
  int lane = threadIdx.x % 32;
  if (!lanes)
    for (lanes = 1; lanes < 32 && 2 * lanes * n <= nnz;) lanes *= 2;
  long long first = thread_id() - lane;
  T mine(0);
  for (int pass = 0; pass < lanes; ++pass) {
    long long row = first + pass * (32 / lanes) + lane / lanes;
    T sum(0);
    if (row < n)
      for (I k = indptr[row] + lane % lanes; k < indptr[row + 1]; k += lanes)
        sum = fused(load_stream(data + k), x[__ldcs(indices + k)], sum);
    for (int o = lanes / 2; o; o >>= 1) sum = sum + shuffle_xor(sum, o);
    T of_pass = shuffle(sum, lane % (32 / lanes) * lanes);
    if (lane / (32 / lanes) == pass) mine = of_pass;
  }
  return mine;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void product(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y, int lanes,
    T alpha, T beta, long long n, long long data_size) {
  if (stopped(ctx)) return;
  T sum = row_product(indptr, indices, data, x, lanes, n, data_size);
  long long row = thread_id();
  if (row < n) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = alpha A x + beta z + gamma w.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void product_sum(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, const T* z,
    const T* w, T* y, int lanes, T alpha, T beta, T gamma, long long n, long long data_size) {
  if (stopped(ctx)) return;
  T sum = row_product(indptr, indices, data, x, lanes, n, data_size);
  long long row = thread_id();
  if (row < n) y[row] = with_vectors(alpha * sum, z, beta, w, gamma, row);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 128 threads
template <typename T, typename I>
__global__ void product_dots(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y,
    const T* w, acc_t<T>* dots, int lanes, long long n, long long data_size) {
  if (stopped(ctx)) return;
  const T sum = row_product(indptr, indices, data, x, lanes, n, data_size);
  put_dots(ctx, y, w, thread_id(), thread_id() < n, sum);
}

// The products of the warp's 32 rows with the columns of x, as row_product. The lanes of a row share its sums, and pass
// them through shared memory to the lanes that return them.
template <int THREADS, int TILE, class T, class I>
DEVICE void row_products(const I* indptr, const I* indices, const T* data, const Tile<TILE>& tile, const T* x,
                         long long step, int lanes, long long n, long long nnz, T (&mine)[TILE]) {
  __shared__ T passed[TILE][THREADS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x - lane;
  if (!lanes)
    for (lanes = 1; lanes < 32 && 2 * lanes * n <= nnz;) lanes *= 2;
  for (int pass = 0; pass < lanes; ++pass) {
    const int place = pass * (32 / lanes) + lane / lanes, of_row = lane & (lanes - 1);
    const long long row = row_thread() - lane + place;
    T sums[TILE];
    clear(sums);
    if (row < n)
#pragma unroll 2
      for (I k = indptr[row] + of_row; k < indptr[row + 1]; k += lanes)
        add_entry(tile, load_stream(data + k), x, step, __ldcs(indices + k), sums);
#pragma unroll
    for (int c = 0; c < TILE; ++c) {
      for (int o = lanes / 2; o; o >>= 1) sums[c] = sums[c] + shuffle_xor(sums[c], o);
      if ((c & (lanes - 1)) == of_row) passed[c][warp + place] = sums[c];
    }
  }
  __syncwarp();
#pragma unroll
  for (int c = 0; c < TILE; ++c) mine[c] = passed[c][threadIdx.x];
}

// y = alpha A x + beta y, of every column.
// launch: elements of y, 256 threads
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, const T* x, T* y, int lanes, T alpha, T beta, int tile, int vectors, long long n,
    long long data_size, long long x_step, long long y_step) {
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<256>(indptr, indices, data, own, own.of(x, x_step), x_step, lanes, n, data_size, sums);
  if (row_thread() < n) put(own, y, y_step, row_thread(), sums, alpha, beta);
}

// y = alpha A x + beta z + gamma w, of every column.
// launch: elements of y, 256 threads
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) product_sum_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, const T* x, const T* z, const T* w, T* y, int lanes, T alpha, T beta, T gamma,
    int tile, int vectors, long long n, long long data_size, long long x_step, long long z_step, long long w_step,
    long long y_step) {
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<256>(indptr, indices, data, own, own.of(x, x_step), x_step, lanes, n, data_size, sums);
  if (row_thread() < n) put_sum(own, y, y_step, z, z_step, w, w_step, row_thread(), sums, alpha, beta, gamma);
}

// y = A x, of every column; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 128 threads
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(128, Room<T, TILE>::threads / 128) product_dots_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, const T* x, T* y, const T* w, acc_t<T>* dots, int lanes, int tile, int vectors,
    long long n, long long data_size, long long x_step, long long y_step, long long w_step) {
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  row_products<128>(indptr, indices, data, own, own.of(x, x_step), x_step, lanes, n, data_size, sums);
  put_dots(ctx, own, y, y_step, w, w_step, row_thread(), row_thread() < n, sums);
}

DEVICE float modulus(float a) { return fabsf(a); }
DEVICE double modulus(double a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }

// y = max over j of |a_ij| x_j.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void maxima(Context* ctx, const I* indptr, const I* indices, const T* data, const real_t<T>* x, real_t<T>* y,
    long long n) {
  if (stopped(ctx)) return;
  long long row = thread_id();
  if (row >= n) return;
  real_t<T> largest(0);
  for (I k = indptr[row]; k < indptr[row + 1]; ++k) largest = max(largest, modulus(data[k]) * x[indices[k]]);
  y[row] = largest;
}

// d = the diagonal; zero for entries that are not stored.
// launch: elements of d, 256 threads
template <typename T, typename I>
__global__ void diagonal(Context* ctx, const I* indptr, const I* indices, const T* data, T* d, long long n) {
  if (stopped(ctx)) return;
  long long row = thread_id();
  if (row >= n) return;
  T own(0);
  for (I k = indptr[row]; k < indptr[row + 1]; ++k)
    if (indices[k] == row) own = data[k];
  d[row] = own;
}

// out = the values of diag(left) A diag(right); a warp has 32 rows, and lanes share each row, so that accesses are
// coalesced.
// launch: elements of left, 256 threads
template <typename T, typename I>
__global__ void scale(Context* ctx, const I* indptr, const I* indices, const T* data, const real_t<T>* left,
                      const real_t<T>* right, T* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  int lane = threadIdx.x % 32, lanes = 1;
  while (lanes < 32 && 2 * lanes * n <= data_size) lanes *= 2;
  long long first = thread_id() - lane;
  for (int pass = 0; pass < lanes; ++pass) {
    long long row = first + pass * (32 / lanes) + lane / lanes;
    if (row < n)
      for (I k = indptr[row] + lane % lanes; k < indptr[row + 1]; k += lanes)
        out[k] = left[row] * data[k] * right[indices[k]];
  }
}

// y = the sum over j of |a_ij|.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void modulus_sums(Context* ctx, const I* indptr, const T* data, double* y, long long n) {
  if (stopped(ctx)) return;
  long long row = thread_id();
  if (row >= n) return;
  double total = 0;
  for (I k = indptr[row]; k < indptr[row + 1]; ++k) total += modulus(data[k]);
  y[row] = total;
}
