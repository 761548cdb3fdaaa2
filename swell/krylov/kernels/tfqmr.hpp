// Fused steps of TFQMR, for both devices; shadow.hpp has the start.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by TFQMR of krylov/slots.py. The vectors have the names of
// krylov/tfqmr.py. `weights`: of the tested norm², empty for all ones. `shadow`: r̂. `yh`: ŷ = M y; it may be y. `odd`,
// `even`, `u`: A ŷ of the odd step, of the even step, and of the current step. A kernel writes the left sides of its
// formulas in place.
#include "step.hpp"

namespace {

// c² = 1/(1 + θ²) with θ² = ‖w‖²/τ²: the weight of w in the next residual.
DEVICE double share(double tau2, double w2) { return tau2 > 0 ? tau2 / (tau2 + w2) : 0.0; }

template <class A> DEVICE A step_length(Array<A> s) { return quotient(s[RHO], s[SIGMA]); }

// y = r;  v = even = d = 0;  θ = η = 0. τ = ‖r‖ is already in s.
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL clear(Context* ctx, Array<const T> r, Array<T> y, Array<T> v, Array<T> even, Array<T> d, Array<acc_t<T>> s) {
  step(ctx, vectors(r, out(y), out(v), out(even), out(d)), [=] {
    return [=](auto r, auto& y, auto& v, auto& even, auto& d) { y = r, v = even = d = {}; };
  }, [=] { s[CARRY] = s[BETA] = 0, s[ENDED] = JUDGED; });
}

// v = odd + β (even + β v);  σ = (r̂, v);  (v, v).
// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL direction(Context* ctx, Array<const T> odd, Array<const T> even, Array<const T> shadow, Array<T> v,
                 Array<acc_t<T>> s) {
  step<acc_t<T>, double>(ctx, vectors(odd, even, shadow, v), [=] {
    const T beta(s[BETA]);
    return [=](auto odd, auto even, auto shadow, auto& v, auto& sigma, auto& vv) {
      v = odd + beta * (even + beta * v);
      sigma += conj(wide(shadow)) * wide(v), vv += abs2(wide(v));
    };
  }, [=](auto sigma, double vv) { s[SIGMA] = sigma, s[VV] = vv; });
}

// α = ρ/σ;  d = ŷ + (θ² η / α) d;  y −= α v;  w −= α u;  ‖w‖². Across ranks, also test the previous iteration for
// convergence.
// launch: elements of w, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL odd(Context* ctx, Array<const T> yh, Array<const T> v, Array<const T> u, Array<T> d, Array<T> y, Array<T> w,
           Array<acc_t<T>> s) {
  step<double>(ctx, vectors(yh, v, u, d, y, w), [=] {
    const acc_t<T> step = step_length(s);
    const T alpha(step), carry(quotient(s[CARRY], step));
    return [=](auto yh, auto v, auto u, auto& d, auto& y, auto& w, auto& ww) {
      d = yh + carry * d;
      y = y - alpha * v;
      w = w - alpha * u;
      ww += abs2(wide(w));
    };
  }, [=](double ww) {
    s[ODD2] = ww;
    judge_once(ctx, s, NORM2, ENDED);
  });
}

// w −= α u;  ‖w‖²;  next ρ = (r̂, w).
// launch: elements of w, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL even(Context* ctx, Array<const T> u, Array<const T> shadow, Array<T> w, Array<acc_t<T>> s) {
  step<acc_t<T>, double>(ctx, vectors(u, shadow, w), [=] {
    const T alpha(step_length(s));
    return [=](auto u, auto shadow, auto& w, auto& rho, auto& ww) {
      w = w - alpha * u;
      rho += conj(wide(shadow)) * wide(w), ww += abs2(wide(w));
    };
  }, [=](auto rho, double ww) { s[EVEN2] = ww, s[NEXT_RHO] = rho; });
}

// α, the next β, c² of both steps, and (τ θ c)² after them.
template <class A> struct Steps { A alpha, beta; double c1, c2, tau2; };

template <class A> DEVICE Steps<A> steps(Array<A> s) {
  const double c1 = share(real(s[TAU2]), real(s[ODD2])), between2 = real(s[TAU2]) * (1 - c1);
  const double c2 = share(between2, real(s[EVEN2]));
  return {step_length(s), quotient(s[NEXT_RHO], s[RHO]), c1, c2, between2 * (1 - c2)};
}

// Two steps of x and r: x += η d;  r = (1 − c²) r + c² w. Between them d = ŷ + (θ² η/α) d. Then y = w + β y.
//
// w is already the second step's; the first step uses w + α u. On a single rank, then test this iteration for
// convergence.
// launch: elements of w, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Array<const T> yh, Array<const T> u, Array<const T> w, Array<const float> weights,
              Array<T> d, Array<T> x, Array<T> r, Array<T> y, Array<acc_t<T>> s, bool single_rank) {
  using R = real_t<T>;
  Steps<acc_t<T>> t;
  step<double>(ctx, vectors(yh, u, w, ::weights<T>(weights), d, x, r, y), [&] {
    t = steps(s);
    const T alpha(t.alpha), beta(t.beta), eta1(t.c1 * t.alpha), eta2(t.c2 * t.alpha);
    const R own1(1 - t.c1), own2(1 - t.c2), new1(t.c1), new2(t.c2);
    return [=](auto yh, auto u, auto w, auto weights, auto& d, auto& x, auto& r, auto& y, auto& norm2) {
      const auto first = d;
      d = yh + own1 * first;
      x = x + (eta1 * first + eta2 * d);
      r = own2 * (own1 * r + new1 * (w + alpha * u)) + new2 * w;
      y = w + beta * y;
      norm2 += weights * abs2(wide(r));
    };
  }, [&](double norm2) {
    const double shadow2 = real(s[SHADOW2]);
    const bool finite = isfinite(real(s[VV])) && isfinite(real(s[EVEN2]));
    const bool lost = vanishes(s[SIGMA], shadow2, real(s[VV])) || vanishes(s[NEXT_RHO], shadow2, real(s[EVEN2]));
    s[RHO] = s[NEXT_RHO];
    s[NORM2] = norm2, s[TAU2] = t.tau2, s[CARRY] = (1 - t.c2) * t.alpha, s[BETA] = t.beta;
    s[ENDED] = iteration_code(finite, lost);
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  });
}

}  // namespace

KERNELS("swell.krylov.tfqmr", VALUES(clear), VALUES(direction), VALUES(odd), VALUES(even), VALUES(update))
