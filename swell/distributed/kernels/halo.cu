// Halo kernels of a distributed product on a GPU: pack the entries to send, add the off-diagonal product.
// halo.cpp has the CPU's: there the size of the blocks chooses a loop, here it is a constant of the kernel.
//
// The off-diagonal part A is in BSR, with blocks of BLOCK rows, row-major; blocks of 1 are CSR. It has one row for each
// of ``rows``, which are distinct. A thread has one row: the threads of a block row read adjoining rows of the same
// blocks.
#include "context.cuh"

// out = x[index].
// launch: elements of index, 256 threads
template <typename T> __global__ void pack(Context* ctx, const int* index, const T* x, T* out, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  out[k] = x[index[k]];
}

// Row k of A x.
template <int BLOCK, class T>
DEVICE T row_product(const int* indptr, const int* indices, const T* data, const T* x, long long k) {
  const long long i = k / BLOCK, r = k % BLOCK;
  T total(0);
  for (long long at = indptr[i]; at < indptr[i + 1]; ++at) {
    const T *row = data + (at * BLOCK + r) * BLOCK, *part = x + (long long)indices[at] * BLOCK;
#pragma unroll
    for (int c = 0; c < BLOCK; ++c) total = fused(row[c], part[c], total);
  }
  return total;
}

// out[rows] += alpha A x.
// launch: elements of rows, 256 threads
template <typename T, int BLOCK>
__global__ void add_product(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
    const T* x, T* out, int block, T alpha, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  out[rows[k]] = fused(alpha, row_product<BLOCK>(indptr, indices, data, x, k), out[rows[k]]);
}

// Like add_product with alpha = 1; also adds the resulting change of (w, out) to dots[0].
// launch: elements of rows, 256 threads, at most 2 blocks per multiprocessor
template <typename T, int BLOCK>
__global__ void add_product_dot(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
    const T* x, T* out, const T* w, acc_t<T>* dots, int block, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> wy(0);
  for (long long k = thread_id(); k < n; k += threads()) {
    const int row = rows[k];
    const T before = out[row], after = before + row_product<BLOCK>(indptr, indices, data, x, k);
    out[row] = after;
    wy = conj_fused(w[row], after, conj_fused(w[row], -before, wy));
  }
  double change[scalar<T>::parts];
  split(change, wy);
  if (!grid_sum(ctx, change)) return;
  join(wy, change);
  dots[0] += wy;
}
