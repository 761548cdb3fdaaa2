// Fused steps of CG with one reduction, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by SingleReductionCG of krylov/slots.py. The vectors have the
// names of krylov/single_reduction_cg.py. `weights`: of the tested norm², empty for all ones. A kernel writes the left
// sides of its formulas in place. α_ and γ_ are of the last iteration.
#include "step.hpp"

namespace {

// γ = (r, r), right without M only: M's product writes it again;  norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL norm(Context* ctx, Array<const T> r, Array<const float> weights, Array<acc_t<T>> s) {
  step<double, double>(ctx, vectors(r, ::weights<T>(weights)), [=] {
    return [=](auto r, auto weights, auto& rr, auto& norm2) {
      rr += abs2(wide(r)), norm2 += weights * abs2(wide(r));
    };
  }, [=](double rr, double norm2) { s[GAMMA] = rr, s[NORM2] = norm2; });
}

// Store β = `beta` and α = γ / `curvature`, which is (p, A p) of the new direction p. If γ or the curvature is not
// positive, stop the run.
template <class A> DEVICE void choose(Context* ctx, Array<A> s, double beta, double curvature) {
  const double gamma = real(s[GAMMA]);
  if (!over(ctx) && !(gamma > 0 && curvature > 0))
    halt(ctx, isfinite(gamma) && isfinite(curvature) ? INDEFINITE : NONFINITE);
  s[LAST_GAMMA] = gamma;
  s[ALPHA] = curvature > 0 ? gamma / curvature : 0.0;
  s[BETA] = beta;
}

// Test the first residual for convergence;  α = γ/δ, β = 0.
// launch: one block of 32 threads
template <class A> KERNEL first(Context* ctx, Array<A> s) {
  once(ctx, [=] {
    judge_start(ctx, real(s[NORM2]));
    choose(ctx, s, 0, real(s[DELTA]));
  });
}

// p = u + β p;  q = w + β q;  x += α p;  r −= α q;  norm² = Σ w |r|²;  next γ = (r, r).
//
// `q` is the s = A p of krylov/single_reduction_cg.py. u may be r. With M, M's product writes γ again.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL advance(Context* ctx, Array<const T> u, Array<const T> w, Array<T> p, Array<T> q, Array<T> x, Array<T> r,
               Array<const float> weights, Array<acc_t<T>> s) {
  step<double, double>(ctx, vectors(u, w, p, q, x, r, weights_if_due<T>(ctx, weights)), [=] {
    const real_t<T> alpha(real(s[ALPHA])), beta(real(s[BETA]));
    return [=](auto u, auto w, auto& p, auto& q, auto& x, auto& r, auto weights, auto& rr, auto& norm2) {
      p = u + beta * p;
      q = w + beta * q;
      x = x + alpha * p;
      r = r - alpha * q;
      const auto square = abs2(wide(r));
      rr += square;
      if (weights.given) norm2 += weights * square;
    };
  }, [=](double rr, double norm2) { s[GAMMA] = rr, s[NORM2] = weights.size ? norm2 : rr; });
}

// Test this iteration for convergence; compute the next β = γ/γ_ and α = γ/(δ − β γ/α_).
//
// Iteration k stores α_ and β at 2 k and 2 k + 1 of `coefficients`, if there is room. If the curvature δ − β γ/α_ is
// not positive, the direction restarts with p = u, whose curvature δ is measured.
// launch: one block of 32 threads
template <class A> KERNEL settle(Context* ctx, Array<A> s, Array<double> coefficients) {
  once(ctx, [=] {
    const double gamma = real(s[GAMMA]), alpha = real(s[ALPHA]), delta = real(s[DELTA]);
    double beta = gamma / real(s[LAST_GAMMA]), curvature = delta - beta * gamma / alpha;
    if (!(curvature > 0)) beta = 0, curvature = delta;
    const int64_t k = 2 * flag(ctx, ITERATION);
    if (k + 1 < coefficients.size) coefficients[k] = alpha, coefficients[k + 1] = beta;
    judge(ctx, real(s[NORM2]));
    choose(ctx, s, beta, curvature);
  });
}

// r = `true_`, the true residual b − A x;  s[DRIFT2] = the largest ‖true_ − r‖² yet.
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL take(Context* ctx, Array<const T> true_, Array<T> r, Array<acc_t<T>> s) {
  step<double>(ctx, vectors(true_, r), [=] {
    return [=](auto true_, auto& r, auto& drift2) {
      drift2 += abs2(wide(true_ - r));
      r = true_;
    };
  }, [=](double drift2) { s[DRIFT2] = max(real(s[DRIFT2]), drift2); });
}

}  // namespace

KERNELS("swell.krylov.single_reduction_cg", VALUES(norm), SUMS(first), VALUES(advance), SUMS(settle), VALUES(take))
