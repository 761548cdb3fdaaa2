// Fused steps of LSQR on a GPU; lsqr.cpp has the same kernels for a CPU.
#include "breakdown.cuh"
#include "judge.cuh"
#include "measure.hpp"

// launch: elements of w, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void start(Context* ctx, const T* v, T* w, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const double alpha = real(slot(s, NEXT_ALPHA)), beta = real(slot(s, NEXT_BETA));
  const real_t<T> of_v(quotient(1.0, alpha));
  for (long long i = thread_id(); i < n; i += threads()) w[i] = of_v * v[i];
  if (last_to_read(ctx)) {
    slot(s, ALPHA) = slot(s, RHO_BAR) = acc_t<T>(alpha);
    slot(s, BETA) = slot(s, PHI_BAR) = acc_t<T>(beta);
    judge_start(ctx, measure2(beta, alpha * beta, real(slot(s, ALLOWED)), real(slot(s, NORMAL))));
  }
}

// launch: elements of y, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(512) update(Context* ctx, const T* v, T* w, T* y, acc_t<T>* s,
                                                                    long long n) {
  if (stopped(ctx)) return;
  using R = real_t<T>;
  const double alpha = real(slot(s, NEXT_ALPHA)), beta = real(slot(s, NEXT_BETA)), rho_bar = real(slot(s, RHO_BAR));
  const double phi_bar = real(slot(s, PHI_BAR)), rho = hypot(rho_bar, beta);
  const double cos = quotient(rho_bar, rho), sin = quotient(beta, rho);
  const R of_y(quotient(cos * phi_bar, rho)), of_v(quotient(1.0, alpha)), of_w(quotient(sin * alpha, rho));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> ws = load(w, i, n), ys = load(y, i, n);
    const Pack<T> vs = load(v, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      ys.at[e] = ys.at[e] + of_y * ws.at[e];
      ws.at[e] = of_v * vs.at[e] - of_w * ws.at[e];
    }
    store(y, i, n, ys);
    store(w, i, n, ws);
  }
  if (last_to_read(ctx)) {
    const double residual = sin * phi_bar;
    slot(s, ALPHA) = acc_t<T>(alpha);
    slot(s, BETA) = acc_t<T>(beta);
    slot(s, RHO_BAR) = acc_t<T>(-cos * alpha);
    slot(s, PHI_BAR) = acc_t<T>(residual);
    judge(ctx, measure2(residual, residual * alpha * fabs(cos), real(slot(s, ALLOWED)), real(slot(s, NORMAL))));
  }
}
