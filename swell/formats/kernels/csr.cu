// CSR products on a GPU: a warp has 32 rows, and `lanes` lanes share a row; 0 takes the power of two below the mean row
// length.
#include "context.cuh"

// Products with x of the warp's 32 rows: each lane returns the product of row (first row) + (lane number).
template <class T, class I>
DEVICE T row_product(const I* indptr, const I* indices, const T* data, const T* x, int lanes, long long n, long long nnz) {
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
__global__ void product(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y, int lanes, T alpha,
                        T beta, long long n, long long data_size) {
  if (stopped(ctx)) return;
  T sum = row_product(indptr, indices, data, x, lanes, n, data_size);
  long long row = thread_id();
  if (row < n) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = alpha A x + beta z + gamma w.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void product_sum(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, const T* z, const T* w, T* y,
                            int lanes, T alpha, T beta, T gamma, long long n, long long data_size) {
  if (stopped(ctx)) return;
  T sum = row_product(indptr, indices, data, x, lanes, n, data_size);
  long long row = thread_id();
  if (row < n) y[row] = with_vectors(alpha * sum, z, beta, w, gamma, row);
}

// y = A x; collect_dots adds the blocks' parts of (w, y) and (y, y).
// launch: elements of y, 128 threads
template <typename T, typename I>
__global__ void product_dots(Context* ctx, const I* indptr, const I* indices, const T* data, const T* x, T* y, const T* w,
                             acc_t<T>* dots, int lanes, long long n, long long data_size) {
  if (stopped(ctx)) return;
  T sum = row_product(indptr, indices, data, x, lanes, n, data_size), weight(0);
  long long row = thread_id();
  if (row < n) {
    y[row] = sum;
    weight = w[row];
  }
  leave_dots<T>(ctx, Two<T>(conj_fused(weight, sum, acc_t<T>(0)), abs2(acc_t<T>(sum))));
}

DEVICE float modulus(float a) { return fabsf(a); }
DEVICE double modulus(double a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }

// y = max over j of |a_ij| x_j.
// launch: elements of y, 256 threads
template <typename T, typename I>
__global__ void maxima(Context* ctx, const I* indptr, const I* indices, const T* data, const real_t<T>* x, real_t<T>* y, long long n) {
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
