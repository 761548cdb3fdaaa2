// Fused steps of LSQR on a CPU; lsqr.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by LSQR of least_squares/slots.py. Vectors have the names of
// least_squares/lsqr.py. A kernel writes the left sides of its formulas in place, vectors into the arrays and scalars
// into `s`.
#include "slots/swell/least_squares/lsqr.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/kernels/measure.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// w = v/α; ρ̄ = α, φ̄ = β; test the first residual for convergence.
template <class T> void start(Context* ctx, Array<const T> v, Array<T> w, Array<acc_t<T>> s) {
  const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]);
  const real_t<T> of_v(quotient(1.0, alpha));
  elements(w, [=](auto i) { store(w, i, of_v * load(v, i)); });
  s[ALPHA] = s[RHO_BAR] = acc_t<T>(alpha);
  s[BETA] = s[PHI_BAR] = acc_t<T>(beta);
  judge_start(ctx, measure2(beta, alpha * beta, real(s[ALLOWED]), real(s[NORMAL])));
}

// Rotate β out of the bidiagonal matrix; y += (φ/ρ) w; w = v/α − (θ/ρ) w. Then test this iteration for convergence.
template <class T> void update(Context* ctx, Array<const T> v, Array<T> w, Array<T> y, Array<acc_t<T>> s) {
  using R = real_t<T>;
  const double alpha = real(s[NEXT_ALPHA]), beta = real(s[NEXT_BETA]), rho_bar = real(s[RHO_BAR]);
  const double phi_bar = real(s[PHI_BAR]), rho = hypot(rho_bar, beta);
  const double cos = quotient(rho_bar, rho), sin = quotient(beta, rho), residual = sin * phi_bar;
  const R of_y(quotient(cos * phi_bar, rho)), of_v(quotient(1.0, alpha)), of_w(quotient(sin * alpha, rho));
  elements(y, [=](auto i) {
    const auto last = load(w, i);
    store(y, i, load(y, i) + of_y * last);
    store(w, i, of_v * load(v, i) - of_w * last);
  });
  s[ALPHA] = acc_t<T>(alpha), s[BETA] = acc_t<T>(beta);
  s[RHO_BAR] = acc_t<T>(-cos * alpha), s[PHI_BAR] = acc_t<T>(residual);
  judge(ctx, measure2(residual, residual * alpha * fabs(cos), real(s[ALLOWED]), real(s[NORMAL])));
}

}  // namespace

KERNELS("swell.least_squares.lsqr", VALUES(start), VALUES(update))
