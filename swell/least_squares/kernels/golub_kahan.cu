// Fused steps of Golub-Kahan bidiagonalisation on a GPU; golub_kahan.cpp has the same kernels for a CPU.
#include "breakdown.cuh"
#include "context.cuh"

// launch: elements of u, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void first(Context* ctx, const T* u, acc_t<T>* s, double allowed, double normal, long long n) {
  if (stopped(ctx)) return;
  double sums[1] = {};
  for (long long i = thread_id(); i < n; i += threads()) sums[0] += abs2(acc_t<T>(u[i]));
  if (grid_sum(ctx, sums)) {
    slot(s, ALPHA) = slot(s, BETA) = acc_t<T>(0);
    slot(s, NEXT_BETA) = acc_t<T>(sqrt(sums[0]));
    slot(s, ALLOWED) = acc_t<T>(allowed);
    slot(s, NORMAL) = acc_t<T>(normal);
  }
}

// out = of_new fresh - of_old out, and its sum of squares; for u and for v.
template <typename T> DEVICE void combine(const T* fresh, T* out, real_t<T> of_new, real_t<T> of_old, double (&sums)[1],
                                          long long n) {
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> fs = load(fresh, i, n);
    Pack<T> os = load(out, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      os.at[e] = of_new * fs.at[e] - of_old * os.at[e];
      sums[0] += abs2(acc_t<T>(os.at[e]));
    }
    store(out, i, n, os);
  }
}

// launch: elements of u, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) left(Context* ctx, const T* Av, T* u, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const double alpha = real(slot(s, ALPHA));
  double sums[1] = {};
  combine<T>(Av, u, real_t<T>(quotient(1.0, alpha)), real_t<T>(quotient(alpha, real(slot(s, BETA)))), sums, n);
  if (grid_sum(ctx, sums)) slot(s, NEXT_BETA) = acc_t<T>(sqrt(sums[0]));
}

// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) right(Context* ctx, const T* Au, T* v, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const double beta = real(slot(s, NEXT_BETA));
  double sums[1] = {};
  combine<T>(Au, v, real_t<T>(quotient(1.0, beta)), real_t<T>(quotient(beta, real(slot(s, ALPHA)))), sums, n);
  if (grid_sum(ctx, sums)) slot(s, NEXT_ALPHA) = acc_t<T>(sqrt(sums[0]));
}
