// First kernels of methods with a shadow vector, on a GPU; shadow.cpp has the same kernels for a CPU.
// krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const T* r, const T* shadow, const float* w, T* p, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  acc_t<T> rho(0);
  double v[P + 3] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    T ri = r[i], h = shadow[i];
    p[i] = ri;
    rho = conj_fused(h, ri, rho);
    double r2 = abs2(acc_t<T>(ri));
    v[P] += abs2(acc_t<T>(h));
    v[P + 1] += r2;
    v[P + 2] += w ? w[i] * r2 : r2;
  }
  split(v, rho);
  if (grid_sum(ctx, v)) {
    join(rho, v);
    slot(s, RHO) = rho;
    slot(s, SHADOW2) = acc_t<T>(v[P]);
    slot(s, RR) = acc_t<T>(v[P + 1]);
    slot(s, NORM2) = acc_t<T>(v[P + 2]);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void judge_first(Context* ctx, const acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_start(ctx, real(slot(s, NORM2)));
  if (!over(ctx) && vanishes(slot(s, RHO), real(slot(s, SHADOW2)), real(slot(s, RR)))) halt(ctx, BREAKDOWN);
}
