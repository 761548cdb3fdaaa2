// Fused steps of LSMR, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by LSMR of least_squares/slots.py. Vectors have the names of
// least_squares/lsmr.py; hbar is h̄. A kernel writes the left sides of its formulas in place, vectors into the arrays
// and scalars into `s`.
#include "step.hpp"
#include "measure.hpp"

namespace {

// h = v/α; h̄ = 0; ᾱ = α, ζ̄ = α β; test the first residual for convergence.
// launch: elements of h, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL start(Context* ctx, Array<const T> v, Array<T> h, Array<T> hbar, Array<acc_t<T>> s) {
  step(ctx, vectors(v, out(h), out(hbar)), [=] {
    const real_t<T> of_v(quotient(1.0, real(s[NEXT_ALPHA])));
    return [=](auto v, auto& h, auto& hbar) { h = of_v * v, hbar = {}; };
  }, [=] {
    const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]);
    s[ALPHA] = s[ALPHA_BAR] = alpha;
    s[BETA] = s[BETA_DOTS] = beta;
    s[ZETA_BAR] = alpha * beta;
    s[RHO] = s[RHO_BAR] = s[COS_BAR] = s[RHO_DOT] = 1;
    s[SIN_BAR] = s[ZETA] = s[BETA_DOT] = s[TAU] = s[THETA] = 0;
    judge_start(ctx, measure2(beta, alpha * beta, real(s[ALLOWED]), real(s[NORMAL])));
  });
}

// Both rotations of a step.
struct Rotations { double rho, cos, sin, rho_bar, cos_bar, sin_bar; };
template <class A> DEVICE Rotations rotations(Array<A> s) {
  const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]), alpha_bar = real(s[ALPHA_BAR]);
  const double rho = hypot(alpha_bar, beta), cos = quotient(alpha_bar, rho), sin = quotient(beta, rho);
  const double theta = sin * alpha, diagonal = real(s[COS_BAR]) * rho, rho_bar = hypot(diagonal, theta);
  return {rho, cos, sin, rho_bar, quotient(diagonal, rho_bar), quotient(theta, rho_bar)};
}

// Both rotations; h̄ = h − (θ̄ ρ/(ρ_old ρ̄_old)) h̄; y += (ζ/(ρ ρ̄)) h̄; h = v/α − (θ/ρ) h. Then test this iteration
// for convergence.
// launch: elements of y, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Array<const T> v, Array<T> h, Array<T> hbar, Array<T> y, Array<acc_t<T>> s) {
  using R = real_t<T>;
  Rotations g;
  step(ctx, vectors(v, h, hbar, y), [&] {
    g = rotations(s);
    const double alpha = real(s[NEXT_ALPHA]), theta_bar = real(s[SIN_BAR]) * g.rho;
    const R of_hbar(quotient(theta_bar * g.rho, real(s[RHO]) * real(s[RHO_BAR])));
    const R of_y(quotient(g.cos_bar * real(s[ZETA_BAR]), g.rho * g.rho_bar));
    const R of_v(quotient(1.0, alpha)), of_h(quotient(g.sin * alpha, g.rho));
    return [=](auto v, auto& h, auto& hbar, auto& y) {
      hbar = h - of_hbar * hbar;
      y = y + of_y * hbar;
      h = of_v * v - of_h * h;
    };
  }, [&] {
    const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]), theta_bar = real(s[SIN_BAR]) * g.rho;
    const double zeta = g.cos_bar * real(s[ZETA_BAR]), zeta_bar = -g.sin_bar * real(s[ZETA_BAR]);
    const double beta_hat = g.cos * real(s[BETA_DOTS]), beta_dots = -g.sin * real(s[BETA_DOTS]);  // ‖r‖ by section 5.1
    const double last_dot = real(s[RHO_DOT]), rho_tilde = hypot(last_dot, theta_bar);
    const double cos_tilde = quotient(last_dot, rho_tilde), sin_tilde = quotient(theta_bar, rho_tilde);
    const double theta_tilde = sin_tilde * g.rho_bar, rho_dot = cos_tilde * g.rho_bar;
    const double beta_dot = cos_tilde * beta_hat - sin_tilde * real(s[BETA_DOT]);
    const double tau = quotient(real(s[ZETA]) - real(s[THETA]) * real(s[TAU]), rho_tilde);
    const double residual = hypot(beta_dot - quotient(zeta - theta_tilde * tau, rho_dot), beta_dots);
    s[ALPHA] = alpha, s[BETA] = beta, s[ALPHA_BAR] = g.cos * alpha, s[ZETA_BAR] = zeta_bar;
    s[RHO] = g.rho, s[RHO_BAR] = g.rho_bar, s[COS_BAR] = g.cos_bar, s[SIN_BAR] = g.sin_bar, s[ZETA] = zeta;
    s[BETA_DOTS] = beta_dots, s[BETA_DOT] = beta_dot, s[RHO_DOT] = rho_dot;
    s[TAU] = tau, s[THETA] = theta_tilde;
    judge(ctx, measure2(residual, fabs(zeta_bar), real(s[ALLOWED]), real(s[NORMAL])));
  });
}

}  // namespace

KERNELS("swell.least_squares.lsmr", VALUES(start), VALUES(update))
