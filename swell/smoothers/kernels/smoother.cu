// What every smoother shares, on a GPU; smoother.py is the same on a CPU.
#include "context.cuh"

// launch: elements of out, 256 threads
template <typename T> __global__ void combine(Context* ctx, const T* z, T* out, T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  long long i = thread_id();
  if (i < n) out[i] = beta == T(0) ? alpha * z[i] : fused(beta, out[i], alpha * z[i]);
}
