// Products with the inverses of diagonal blocks, a thread a row. The rows of a block are neighbours, so that its
// threads read one contiguous piece of memory. block_jacobi.cpp is the CPU's version.
#include "context.cuh"

// out = alpha diag(inverses) x + beta out; beta = 0 never reads out.
// launch: elements of x, 256 threads
template <typename T>
__global__ void apply(Context* ctx, const T* inverses, const T* x, T* out, int block, T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  long long row = thread_id();
  if (row >= n) return;
  long long first = row / block * block, size = min((long long)block, n - first);
  const T* values = inverses + row * block;
  T total(0);
  for (int j = 0; j < size; ++j) total = fused(values[j], x[first + j], total);
  out[row] = beta == T(0) ? alpha * total : fused(beta, out[row], alpha * total);
}

// out = alpha diag(inverses)^H x + beta out; beta = 0 never reads out.
// launch: elements of x, 256 threads
template <typename T>
__global__ void apply_adjoint(Context* ctx, const T* inverses, const T* x, T* out, int block, T alpha, T beta,
    long long n) {
  if (stopped(ctx)) return;
  long long row = thread_id();
  if (row >= n) return;
  long long first = row / block * block, size = min((long long)block, n - first);
  const T* values = inverses + first * block + row % block;
  T total(0);
  for (int j = 0; j < size; ++j) total = fused(conj(values[j * (long long)block]), x[first + j], total);
  out[row] = beta == T(0) ? alpha * total : fused(beta, out[row], alpha * total);
}
