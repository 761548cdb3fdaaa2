// Fused steps of LSQR, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by LSQR of least_squares/slots.py. Vectors have the names of
// least_squares/lsqr.py. A kernel writes the left sides of its formulas in place, vectors into the arrays and scalars
// into `s`.
#include "step.hpp"
#include "measure.hpp"

namespace {

// w = v/α; ρ̄ = α, φ̄ = β; test the first residual for convergence.
// launch: elements of w, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL start(Context* ctx, Array<const T> v, Array<T> w, Array<acc_t<T>> s) {
  step(ctx, vectors(v, out(w)), [=] {
    const real_t<T> of_v(quotient(1.0, real(s[NEXT_ALPHA])));
    return [=](auto v, auto& w) { w = of_v * v; };
  }, [=] {
    const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]);
    s[ALPHA] = s[RHO_BAR] = alpha;
    s[BETA] = s[PHI_BAR] = beta;
    judge_start(ctx, measure2(beta, alpha * beta, real(s[ALLOWED]), real(s[NORMAL])));
  });
}

// The rotation that takes β out of the bidiagonal matrix.
struct Rotation { double rho, cos, sin; };
template <class A> DEVICE Rotation rotation(Array<A> s) {
  const double rho_bar = real(s[RHO_BAR]), beta = real(s[NEXT_BETA]), rho = hypot(rho_bar, beta);
  return {rho, quotient(rho_bar, rho), quotient(beta, rho)};
}

// Rotate β out of the bidiagonal matrix; y += (φ/ρ) w; w = v/α − (θ/ρ) w. Then test this iteration for convergence.
// launch: elements of y, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T> KERNEL update(Context* ctx, Array<const T> v, Array<T> w, Array<T> y, Array<acc_t<T>> s) {
  using R = real_t<T>;
  Rotation g;
  step(ctx, vectors(v, w, y), [&] {
    g = rotation(s);
    const double alpha = real(s[NEXT_ALPHA]);
    const R of_y(quotient(g.cos * real(s[PHI_BAR]), g.rho)), of_v(quotient(1.0, alpha));
    const R of_w(quotient(g.sin * alpha, g.rho));
    return [=](auto v, auto& w, auto& y) {
      y = y + of_y * w;
      w = of_v * v - of_w * w;
    };
  }, [&] {
    const double alpha = real(s[NEXT_ALPHA]), residual = g.sin * real(s[PHI_BAR]);
    s[ALPHA] = alpha, s[BETA] = s[NEXT_BETA];
    s[RHO_BAR] = -g.cos * alpha, s[PHI_BAR] = residual;
    judge(ctx, measure2(residual, residual * alpha * fabs(g.cos), real(s[ALLOWED]), real(s[NORMAL])));
  });
}

}  // namespace

KERNELS("swell.least_squares.lsqr", VALUES(start), VALUES(update))
