// A(omega) from its three parts, on a GPU; system.cpp is the CPU version.
#include "context.cuh"

// launch: elements of out, 256 threads
template <typename T>
__global__ void form(Context* ctx, const real_t<T>* K, const T* M, const T* B, T w2, T iw, T* out, long long n) {
  if (stopped(ctx)) return;
  long long k = thread_id();
  if (k < n) out[k] = fused(iw, B[k], fused(-w2, M[k], T(K[k])));
}
