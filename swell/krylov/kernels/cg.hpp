// Fused steps of conjugate gradients, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by CG of krylov/slots.py. The vectors have the names of
// krylov/cg.py; z may be r. `w`: weights of the tested norm², empty for all ones. A kernel writes the left sides of its
// formulas in place.
#include "step.hpp"

namespace {

// α = ρ/σ; 0 if the curvature σ is not positive: `direction` then ends the iteration.
template <class A> DEVICE double step_length(Array<A> s) {
  return real(s[SIGMA]) > 0 ? real(s[RHO]) / real(s[SIGMA]) : 0.0;
}

// p = z;  ρ = (r, z);  norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<acc_t<T>> s) {
  step<double, double>(ctx, vectors(r, z, weights<T>(w), out(p)), [=] {
    return [=](auto r, auto z, auto w, auto& p, auto& rho, auto& norm2) {
      p = z;
      rho += real(conj(wide(r)) * wide(z));
      norm2 += w * abs2(wide(r));
    };
  }, [=](double rho, double norm2) { s[RHO] = rho, s[NORM2] = norm2; });
}

// Test the first residual for convergence.
// launch: one block of 32 threads
template <class A> KERNEL judge_first(Context* ctx, Array<const A> s) {
  once(ctx, [=] {
    const double rho = real(s[RHO]);
    judge_start(ctx, real(s[NORM2]));
    if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
  });
}

// r −= α q;  norm² = Σ w |r|²;  next ρ = (r, r), right without M only: with M, M's product writes it again.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL residual(Context* ctx, Array<const T> q, Array<T> r, Array<const float> w, Array<acc_t<T>> s) {
  step<double, double>(ctx, vectors(q, r, weights_if_due<T>(ctx, w)), [=] {
    const real_t<T> alpha(step_length(s));
    return [=](auto q, auto& r, auto w, auto& rr, auto& norm2) {
      r = r - alpha * q;
      const auto square = abs2(wide(r));
      rr += square;
      if (w.given) norm2 += w * square;
    };
  }, [=](double rr, double norm2) { s[NEXT_RHO] = rr, s[NORM2] = w.size ? norm2 : rr; });
}

// x += α p;  β = next ρ / ρ;  p = z + β p; then test this iteration for convergence. Iteration k stores α and β at 2 k
// and 2 k + 1 of `coefficients`, if there is room.
// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL direction(Context* ctx, Array<const T> z, Array<T> p, Array<T> x, Array<acc_t<T>> s,
                 Array<double> coefficients) {
  step(ctx, vectors(z, x, p), [=] {
    const real_t<T> alpha(step_length(s)), beta(real(s[NEXT_RHO]) / real(s[RHO]));
    return [=](auto z, auto& x, auto& p) {
      x = x + alpha * p;
      p = z + beta * p;
    };
  }, [=] {
    const double rho = real(s[NEXT_RHO]), sigma = real(s[SIGMA]);
    const int64_t k = 2 * flag(ctx, ITERATION);
    if (k + 1 < coefficients.size) coefficients[k] = step_length(s), coefficients[k + 1] = rho / real(s[RHO]);
    s[RHO] = rho;
    if (!(sigma > 0)) return halt(ctx, isfinite(sigma) ? INDEFINITE : NONFINITE);
    judge(ctx, real(s[NORM2]));
    if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
  });
}

}  // namespace

KERNELS("swell.krylov.cg", VALUES(begin), SUMS(judge_first), VALUES(residual), VALUES(direction))
