// Fused steps of LSMR on a GPU; lsmr.cpp has the same kernels for a CPU.
#include "breakdown.cuh"
#include "judge.cuh"
#include "measure.hpp"

// launch: elements of h, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void start(Context* ctx, const T* v, T* h, T* hbar, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  const double alpha = real(slot(s, NEXT_ALPHA)), beta = real(slot(s, NEXT_BETA));
  const real_t<T> of_v(quotient(1.0, alpha));
  for (long long i = thread_id(); i < n; i += threads()) {
    h[i] = of_v * v[i];
    hbar[i] = T(0);
  }
  if (last_to_read(ctx)) {
    slot(s, ALPHA) = slot(s, ALPHA_BAR) = A(alpha);
    slot(s, BETA) = slot(s, BETA_DOTS) = A(beta);
    slot(s, ZETA_BAR) = A(alpha * beta);
    slot(s, RHO) = slot(s, RHO_BAR) = slot(s, COS_BAR) = slot(s, RHO_DOT) = A(1);
    slot(s, SIN_BAR) = slot(s, ZETA) = slot(s, BETA_DOT) = slot(s, TAU) = slot(s, THETA) = A(0);
    judge_start(ctx, measure2(beta, alpha * beta, real(slot(s, ALLOWED)), real(slot(s, NORMAL))));
  }
}

// launch: elements of y, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) update(Context* ctx, const T* v, T* h, T* hbar, T* y, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  using R = real_t<T>;
  const double alpha = real(slot(s, NEXT_ALPHA)), beta = real(slot(s, NEXT_BETA)), alpha_bar = real(slot(s, ALPHA_BAR));
  const double rho = hypot(alpha_bar, beta), cos = quotient(alpha_bar, rho), sin = quotient(beta, rho);
  const double theta = sin * alpha, theta_bar = real(slot(s, SIN_BAR)) * rho, diagonal = real(slot(s, COS_BAR)) * rho;
  const double rho_bar = hypot(diagonal, theta), cos_bar = quotient(diagonal, rho_bar),
      sin_bar = quotient(theta, rho_bar);
  const double zeta = cos_bar * real(slot(s, ZETA_BAR)), zeta_bar = -sin_bar * real(slot(s, ZETA_BAR));
  const R of_hbar(quotient(theta_bar * rho, real(slot(s, RHO)) * real(slot(s, RHO_BAR)))),
      of_y(quotient(zeta, rho * rho_bar));
  const R of_v(quotient(1.0, alpha)), of_h(quotient(theta, rho));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> hs = load(h, i, n), bs = load(hbar, i, n), ys = load(y, i, n);
    const Pack<T> vs = load(v, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      bs.at[e] = hs.at[e] - of_hbar * bs.at[e];
      ys.at[e] = ys.at[e] + of_y * bs.at[e];
      hs.at[e] = of_v * vs.at[e] - of_h * hs.at[e];
    }
    store(h, i, n, hs);
    store(hbar, i, n, bs);
    store(y, i, n, ys);
  }
  if (last_to_read(ctx)) {                       // section 5.1: the norm of r
    const double beta_hat = cos * real(slot(s, BETA_DOTS)), beta_dots = -sin * real(slot(s, BETA_DOTS));
    const double last_dot = real(slot(s, RHO_DOT)), rho_tilde = hypot(last_dot, theta_bar);
    const double cos_tilde = quotient(last_dot, rho_tilde), sin_tilde = quotient(theta_bar, rho_tilde);
    const double theta_tilde = sin_tilde * rho_bar, rho_dot = cos_tilde * rho_bar;
    const double beta_dot = cos_tilde * beta_hat - sin_tilde * real(slot(s, BETA_DOT));
    const double tau = quotient(real(slot(s, ZETA)) - real(slot(s, THETA)) * real(slot(s, TAU)), rho_tilde);
    const double residual = hypot(beta_dot - quotient(zeta - theta_tilde * tau, rho_dot), beta_dots);
    slot(s, ALPHA) = A(alpha);
    slot(s, BETA) = A(beta);
    slot(s, ALPHA_BAR) = A(cos * alpha);
    slot(s, ZETA_BAR) = A(zeta_bar);
    slot(s, RHO) = A(rho);
    slot(s, RHO_BAR) = A(rho_bar);
    slot(s, COS_BAR) = A(cos_bar);
    slot(s, SIN_BAR) = A(sin_bar);
    slot(s, ZETA) = A(zeta);
    slot(s, BETA_DOTS) = A(beta_dots);
    slot(s, BETA_DOT) = A(beta_dot);
    slot(s, RHO_DOT) = A(rho_dot);
    slot(s, TAU) = A(tau);
    slot(s, THETA) = A(theta_tilde);
    judge(ctx, measure2(residual, fabs(zeta_bar), real(slot(s, ALLOWED)), real(slot(s, NORMAL))));
  }
}
