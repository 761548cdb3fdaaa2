// Halo kernels of a distributed product on a GPU: pack the entries to send, add the off-diagonal product. CPU: halo.py.
#include "context.cuh"

// out = x[index].
// launch: elements of index, 256 threads
template <typename T> __global__ void pack(Context* ctx, const int* index, const T* x, T* out, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  out[k] = x[index[k]];
}

// out[rows] += alpha A x; A has a row for each of the (different) rows.
// launch: elements of rows, 256 threads
template <typename T> __global__ void add_product(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
                                                  const T* x, T* out, T alpha, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  T total(0);
  for (int at = indptr[k]; at < indptr[k + 1]; ++at) total = fused(data[at], x[indices[at]], total);
  out[rows[k]] = fused(alpha, total, out[rows[k]]);
}

// Like add_product with alpha = 1; also adds the resulting change of (w, out) to dots[0].
// launch: elements of rows, 256 threads, at most 2 blocks per multiprocessor
template <typename T> __global__ void add_product_dot(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
                                                       const T* x, T* out, const T* w, acc_t<T>* dots, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> wy(0);
  for (long long k = thread_id(); k < n; k += threads()) {
    T total(0);
    for (int at = indptr[k]; at < indptr[k + 1]; ++at) total = fused(data[at], x[indices[at]], total);
    const int row = rows[k];
    const T before = out[row], after = before + total;
    out[row] = after;
    wy = conj_fused(w[row], after, conj_fused(w[row], -before, wy));
  }
  double change[scalar<T>::parts];
  split(change, wy);
  if (!grid_sum(ctx, change)) return;
  join(wy, change);
  dots[0] += wy;
}
