// Fused steps of CG with one reduction on a CPU; single_reduction_cg.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by SingleReductionCG of krylov/slots.py. The vectors have the
// names of krylov/single_reduction_cg.py. `weights`: of the tested norm², empty for all ones. A kernel writes the left
// sides of its formulas in place. α_ and γ_ are of the last iteration.
#include "slots/swell/krylov/single_reduction_cg.hpp"

#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// γ = (r, r), right without M only: M's product writes it again;  norm² = Σ w |r|².
template <class T> void norm(Context* ctx, Array<const T> r, Array<const float> weights, Array<acc_t<T>> s) {
  const auto [rr, norm2] = sums<double, double>(r.size, [=](auto i, auto& rr, auto& norm2) {
    const auto square = abs2(wide(load(r, i)));
    add(rr, i, square), add(norm2, i, weighted(weights, i, square));
  });
  s[GAMMA] = acc_t<T>(rr), s[NORM2] = acc_t<T>(norm2);
}

// Store β = `beta` and α = γ / `curvature`, which is (p, A p) of the new direction p. If γ or the curvature is not
// positive, stop the run.
template <class A> void choose(Context* ctx, Array<A> s, double beta, double curvature) {
  const double gamma = real(s[GAMMA]);
  if (!over(ctx) && !(gamma > 0 && curvature > 0))
    halt(ctx, isfinite(gamma) && isfinite(curvature) ? INDEFINITE : NONFINITE);
  s[LAST_GAMMA] = A(gamma);
  s[ALPHA] = A(curvature > 0 ? gamma / curvature : 0.0);
  s[BETA] = A(beta);
}

// Test the first residual for convergence;  α = γ/δ, β = 0.
template <class A> void first(Context* ctx, Array<A> s) {
  judge_start(ctx, real(s[NORM2]));
  choose(ctx, s, 0, real(s[DELTA]));
}

// p = u + β p;  q = w + β q;  x += α p;  r −= α q;  norm² = Σ w |r|²;  next γ = (r, r).
//
// `q` is the s = A p of krylov/single_reduction_cg.py. u may be r. With M, M's product writes γ again.
template <class T>
void advance(Context* ctx, Array<const T> u, Array<const T> w, Array<T> p, Array<T> q, Array<T> x, Array<T> r,
             Array<const float> weights, Array<acc_t<T>> s) {
  const real_t<T> alpha(real(s[ALPHA])), beta(real(s[BETA]));
  const Array<const float> due_weights{weights.data, due(ctx) ? weights.size : 0};
  const auto [rr, norm2] = sums<double, double>(r.size, [=](auto i, auto& rr, auto& norm2) {
    const auto direction = load(u, i) + beta * load(p, i), image = load(w, i) + beta * load(q, i);
    const auto value = load(r, i) - alpha * image;
    const auto square = abs2(wide(value));
    store(p, i, direction), store(q, i, image);
    store(x, i, load(x, i) + alpha * direction);
    store(r, i, value);
    add(rr, i, square), add(norm2, i, weighted(due_weights, i, square));
  });
  s[GAMMA] = acc_t<T>(rr), s[NORM2] = acc_t<T>(norm2);
}

// Test this iteration for convergence; compute the next β = γ/γ_ and α = γ/(δ − β γ/α_).
//
// Iteration k stores α_ and β at 2 k and 2 k + 1 of `coefficients`, if there is room. If the curvature δ − β γ/α_ is
// not positive, the direction restarts with p = u, whose curvature δ is measured.
template <class A> void settle(Context* ctx, Array<A> s, Array<double> coefficients) {
  const double gamma = real(s[GAMMA]), alpha = real(s[ALPHA]), delta = real(s[DELTA]);
  double beta = gamma / real(s[LAST_GAMMA]), curvature = delta - beta * gamma / alpha;
  if (!(curvature > 0)) beta = 0, curvature = delta;
  const int64_t k = 2 * flag(ctx, ITERATION);
  if (k + 1 < coefficients.size) coefficients[k] = alpha, coefficients[k + 1] = beta;
  judge(ctx, real(s[NORM2]));
  choose(ctx, s, beta, curvature);
}

// r = `true_`, the true residual b − A x;  s[DRIFT2] = the largest ‖true_ − r‖² yet.
template <class T> void take(Context* ctx, Array<const T> true_, Array<T> r, Array<acc_t<T>> s) {
  const auto [drift2] = sums<double>(r.size, [=](auto i, auto& drift2) {
    const auto value = load(true_, i), drift = value - load(r, i);
    store(r, i, value);
    add(drift2, i, abs2(wide(drift)));
  });
  s[DRIFT2] = acc_t<T>(max(real(s[DRIFT2]), drift2));
}

}  // namespace

KERNELS("swell.krylov.single_reduction_cg", VALUES(norm), SUMS(first), VALUES(advance), SUMS(settle), VALUES(take))
