// Fused steps of COCG, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by COCG of krylov/slots.py. The vectors have the names of
// krylov/cocg.py. `w`: weights of the tested norm², empty for all ones. `pc`, `rc`: the conjugates of p and r, empty if
// they are not needed. A kernel writes the left sides of its formulas in place.
#include "step.hpp"

namespace {

// True if subtracting α q = (ρ/μ) q would leave no digit of r.
template <class A> DEVICE bool drowns(Array<A> s) {
  return modulus(s[MU]) * sqrt(real(s[LAST_RR])) <= EPS * modulus(s[RHO]) * sqrt(real(s[QQ]));
}

// α = ρ/μ; 0 if the step would leave no digit of r: `direction` then ends the iteration.
template <class A> DEVICE A step_length(Array<A> s) { return drowns(s) ? A(0) : s[RHO] / s[MU]; }

// p = z, pc = conj(p);  ρ = rᵀ z;  (r, r), (z, z), norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<T> pc,
             Array<acc_t<T>> s) {
  step<acc_t<T>, double, double, double>(ctx, vectors(r, z, weights<T>(w), out(p), out(pc)), [=] {
    return [=](auto r, auto z, auto w, auto& p, auto& pc, auto& rho, auto& rr, auto& zz, auto& norm2) {
      p = z, pc = conj(z);
      rho += wide(r) * wide(z);
      rr += abs2(wide(r)), zz += abs2(wide(z));
      norm2 += w * abs2(wide(r));
    };
  }, [=](auto rho, double rr, double zz, double norm2) {
    s[RHO] = rho, s[LAST_RR] = rr, s[ZZ] = zz, s[NORM2] = norm2;
  });
}

// Test the first residual for convergence.
// launch: one block of 32 threads
template <class A> KERNEL judge_first(Context* ctx, Array<const A> s) {
  once(ctx, [=] {
    judge_start(ctx, real(s[NORM2]));
    if (!over(ctx) && vanishes(s[RHO], real(s[LAST_RR]), real(s[ZZ]))) halt(ctx, BREAKDOWN);
  });
}

// r −= α q, rc = conj(r);  norm² = Σ w |r|²;  next ρ = rᵀ r, right without M only: with M, M's product writes it again.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL residual(Context* ctx, Array<const T> q, Array<T> r, Array<T> rc, Array<const float> w, Array<acc_t<T>> s) {
  step<acc_t<T>, double, double>(ctx, vectors(q, r, out(rc), weights<T>(w)), [=] {
    const T alpha(step_length(s));
    return [=](auto q, auto& r, auto& rc, auto w, auto& rho, auto& rr, auto& norm2) {
      r = r - alpha * q, rc = conj(r);
      const auto square = abs2(wide(r));
      rho += wide(r) * wide(r);
      rr += square;
      if (w.given) norm2 += w * square;
    };
  }, [=](auto rho, double rr, double norm2) {
    s[NEXT_RHO] = rho, s[ZZ] = s[RR] = rr, s[NORM2] = w.size ? norm2 : rr;
  });
}

// x += α p;  β = next ρ / ρ;  p = z + β p, pc = conj(p); then test this iteration for convergence.
// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL direction(Context* ctx, Array<const T> z, Array<T> p, Array<T> pc, Array<T> x, Array<acc_t<T>> s) {
  step(ctx, vectors(z, p, out(pc), x), [=] {
    const T alpha(step_length(s)), beta(s[NEXT_RHO] / s[RHO]);
    return [=](auto z, auto& p, auto& pc, auto& x) {
      x = x + alpha * p;
      p = z + beta * p, pc = conj(p);
    };
  }, [=] {
    const bool finite = isfinite(real(s[QQ])) && isfinite(real(s[ZZ]));
    const bool lost = drowns(s) || vanishes(s[NEXT_RHO], real(s[RR]), real(s[ZZ])) || !finite;
    s[RHO] = s[NEXT_RHO], s[LAST_RR] = s[RR];
    judge(ctx, real(s[NORM2]));
    if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
  });
}

}  // namespace

KERNELS("swell.krylov.cocg", VALUES(begin), SUMS(judge_first), VALUES(residual), VALUES(direction))
