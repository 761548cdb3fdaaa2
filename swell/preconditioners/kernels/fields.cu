// A vector ordered by fields, and back, on a GPU; fields.cpp is the CPU version. See preconditioners/fields.py.
#include "context.cuh"

// out[k] = x[rows[k]]; zero where rows[k] is negative, between two fields.
// launch: elements of out, 256 threads
template <typename T, typename I> __global__ void split(Context* ctx, const T* x, const I* rows, T* out, long long n) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k < n) out[k] = rows[k] >= 0 ? x[rows[k]] : T(0);
}

// out = alpha y[places] + beta out; beta = 0 never reads out.
// launch: elements of out, 256 threads
template <typename T, typename I>
__global__ void join(Context* ctx, const T* y, const I* places, T* out, T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  const T value = alpha * y[places[i]];
  out[i] = beta == T(0) ? value : value + beta * out[i];
}
