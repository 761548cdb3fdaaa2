// Fused steps of LSMR on a CPU; lsmr.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by LSMR of least_squares/slots.py. Vectors have the names of
// least_squares/lsmr.py; hbar is h̄. A kernel writes the left sides of its formulas in place, vectors into the arrays
// and scalars into `s`.
#include "slots/swell/least_squares/lsmr.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/kernels/measure.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// h = v/α; h̄ = 0; ᾱ = α, ζ̄ = α β; test the first residual for convergence.
template <class T> void start(Context* ctx, Array<const T> v, Array<T> h, Array<T> hbar, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]);
  const real_t<T> of_v(quotient(1.0, alpha));
  elements(h, [=](auto i) { store(h, i, of_v * load(v, i)); });
  each(hbar.size, [=](int64_t i) { hbar[i] = T(0); });
  s[ALPHA] = s[ALPHA_BAR] = A(alpha);
  s[BETA] = s[BETA_DOTS] = A(beta);
  s[ZETA_BAR] = A(alpha * beta);
  s[RHO] = s[RHO_BAR] = s[COS_BAR] = s[RHO_DOT] = A(1);
  s[SIN_BAR] = s[ZETA] = s[BETA_DOT] = s[TAU] = s[THETA] = A(0);
  judge_start(ctx, measure2(beta, alpha * beta, real(s[ALLOWED]), real(s[NORMAL])));
}

// Both rotations; h̄ = h − (θ̄ ρ/(ρ_old ρ̄_old)) h̄; y += (ζ/(ρ ρ̄)) h̄; h = v/α − (θ/ρ) h. Then test this iteration
// for convergence.
template <class T>
void update(Context* ctx, Array<const T> v, Array<T> h, Array<T> hbar, Array<T> y, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  using R = real_t<T>;
  const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]), alpha_bar = real(s[ALPHA_BAR]);
  const double rho = hypot(alpha_bar, beta), cos = quotient(alpha_bar, rho), sin = quotient(beta, rho);
  const double theta = sin * alpha, theta_bar = real(s[SIN_BAR]) * rho, diagonal = real(s[COS_BAR]) * rho;
  const double rho_bar = hypot(diagonal, theta);
  const double cos_bar = quotient(diagonal, rho_bar), sin_bar = quotient(theta, rho_bar);
  const double zeta = cos_bar * real(s[ZETA_BAR]), zeta_bar = -sin_bar * real(s[ZETA_BAR]);
  const R of_hbar(quotient(theta_bar * rho, real(s[RHO]) * real(s[RHO_BAR]))), of_y(quotient(zeta, rho * rho_bar));
  const R of_v(quotient(1.0, alpha)), of_h(quotient(theta, rho));
  elements(y, [=](auto i) {
    const auto last = load(h, i), fresh = last - of_hbar * load(hbar, i);
    store(hbar, i, fresh);
    store(y, i, load(y, i) + of_y * fresh);
    store(h, i, of_v * load(v, i) - of_h * last);
  });
  const double beta_hat = cos * real(s[BETA_DOTS]), beta_dots = -sin * real(s[BETA_DOTS]);      // ‖r‖ by section 5.1
  const double last_dot = real(s[RHO_DOT]), rho_tilde = hypot(last_dot, theta_bar);
  const double cos_tilde = quotient(last_dot, rho_tilde), sin_tilde = quotient(theta_bar, rho_tilde);
  const double theta_tilde = sin_tilde * rho_bar, rho_dot = cos_tilde * rho_bar;
  const double beta_dot = cos_tilde * beta_hat - sin_tilde * real(s[BETA_DOT]);
  const double tau = quotient(real(s[ZETA]) - real(s[THETA]) * real(s[TAU]), rho_tilde);
  const double residual = hypot(beta_dot - quotient(zeta - theta_tilde * tau, rho_dot), beta_dots);
  s[ALPHA] = A(alpha), s[BETA] = A(beta), s[ALPHA_BAR] = A(cos * alpha), s[ZETA_BAR] = A(zeta_bar);
  s[RHO] = A(rho), s[RHO_BAR] = A(rho_bar), s[COS_BAR] = A(cos_bar), s[SIN_BAR] = A(sin_bar), s[ZETA] = A(zeta);
  s[BETA_DOTS] = A(beta_dots), s[BETA_DOT] = A(beta_dot), s[RHO_DOT] = A(rho_dot);
  s[TAU] = A(tau), s[THETA] = A(theta_tilde);
  judge(ctx, measure2(residual, fabs(zeta_bar), real(s[ALLOWED]), real(s[NORMAL])));
}

}  // namespace

KERNELS("swell.least_squares.lsmr", VALUES(start), VALUES(update))
