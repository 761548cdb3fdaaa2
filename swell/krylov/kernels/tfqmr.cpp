// Fused steps of TFQMR on a CPU; tfqmr.cu has the same kernels for a GPU, shadow.cpp the start.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by TFQMR of krylov/slots.py. The vectors have the names of
// krylov/tfqmr.py. `weights`: of the tested norm², empty for all ones. `shadow`: r̂. `yh`: ŷ = M y. `odd`, `even`, `u`:
// A ŷ of the odd step, of the even step, and of the current step. A kernel writes the left sides of its formulas in
// place.
#include "slots/swell/krylov/tfqmr.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// c² = 1/(1 + θ²) with θ² = ‖w‖²/τ²: the weight of w in the next residual.
double share(double tau2, double w2) { return tau2 > 0 ? tau2 / (tau2 + w2) : 0; }

template <class A> A step_length(Array<A> s) { return quotient(s[RHO], s[SIGMA]); }

// y = r;  v = even = d = 0;  θ = η = 0. τ = ‖r‖ is already in s.
template <class T>
void clear(Context* ctx, Array<const T> r, Array<T> y, Array<T> v, Array<T> even, Array<T> d, Array<acc_t<T>> s) {
  each(r.size, [=](int64_t i) { y[i] = r[i], v[i] = even[i] = d[i] = T(0); });
  s[CARRY] = s[BETA] = acc_t<T>(0);
  s[ENDED] = acc_t<T>(JUDGED);
}

// v = odd + β (even + β v);  σ = (r̂, v);  (v, v).
template <class T>
void direction(Context* ctx, Array<const T> odd, Array<const T> even, Array<const T> shadow, Array<T> v,
               Array<acc_t<T>> s) {
  const T beta(s[BETA]);
  const auto [sigma, vv] = sums<acc_t<T>, double>(v.size, [=](auto i, auto& sigma, auto& vv) {
    const auto value = load(odd, i) + beta * (load(even, i) + beta * load(v, i));
    store(v, i, value);
    add(sigma, i, conj(wide(load(shadow, i))) * wide(value)), add(vv, i, abs2(wide(value)));
  });
  s[SIGMA] = sigma, s[VV] = acc_t<T>(vv);
}

// α = ρ/σ;  d = ŷ + (θ² η / α) d;  y −= α v;  w −= α u;  ‖w‖². Across ranks, also test the previous iteration for
// convergence.
template <class T>
void odd(Context* ctx, Array<const T> yh, Array<const T> v, Array<const T> u, Array<T> d, Array<T> y, Array<T> w,
         Array<acc_t<T>> s) {
  const acc_t<T> step = step_length(s);
  const T alpha(step), carry(quotient(s[CARRY], step));
  const auto [ww] = sums<double>(w.size, [=](auto i, auto& ww) {
    const auto value = load(w, i) - alpha * load(u, i);
    const auto next = load(yh, i) + carry * load(d, i);                    // ŷ may be y
    store(y, i, load(y, i) - alpha * load(v, i));
    store(d, i, next), store(w, i, value);
    add(ww, i, abs2(wide(value)));
  });
  s[ODD2] = acc_t<T>(ww);
  judge_once(ctx, s.data, NORM2, ENDED);
}

// w −= α u;  ‖w‖²;  next ρ = (r̂, w).
template <class T>
void even(Context* ctx, Array<const T> u, Array<const T> shadow, Array<T> w, Array<acc_t<T>> s) {
  const T alpha(step_length(s));
  const auto [rho, ww] = sums<acc_t<T>, double>(w.size, [=](auto i, auto& rho, auto& ww) {
    const auto value = load(w, i) - alpha * load(u, i);
    store(w, i, value);
    add(rho, i, conj(wide(load(shadow, i))) * wide(value)), add(ww, i, abs2(wide(value)));
  });
  s[EVEN2] = acc_t<T>(ww), s[NEXT_RHO] = rho;
}

// Two steps of x and r: x += η d;  r = (1 − c²) r + c² w. Between them d = ŷ + (θ² η/α) d. Then y = w + β y.
//
// w is already the second step's; the first step uses w + α u. On a single rank, then test this iteration for
// convergence.
template <class T>
void update(Context* ctx, Array<const T> yh, Array<const T> u, Array<const T> w, Array<const float> weights, Array<T> d,
            Array<T> x, Array<T> r, Array<T> y, Array<acc_t<T>> s, bool single_rank) {
  using A = acc_t<T>;
  using R = real_t<T>;
  const A step = step_length(s), rho = s[NEXT_RHO], next_beta = quotient(rho, s[RHO]);
  const double before2 = real(s[TAU2]), c1 = share(before2, real(s[ODD2]));
  const double tau2 = before2 * (1 - c1), c2 = share(tau2, real(s[EVEN2]));            // tau2: (τ θ c)²
  const T alpha(step), beta(next_beta), eta1(c1 * step), eta2(c2 * step);
  const R own1(1 - c1), own2(1 - c2), new1(c1), new2(c2);
  const auto [norm2] = sums<double>(w.size, [=](auto i, auto& norm2) {
    const auto first = load(d, i), second = load(yh, i) + own1 * first, of_w = load(w, i);
    const auto value = own2 * (own1 * load(r, i) + new1 * (of_w + alpha * load(u, i))) + new2 * of_w;
    const auto next = of_w + beta * load(y, i);
    store(d, i, second);
    store(x, i, load(x, i) + (eta1 * first + eta2 * second));
    store(r, i, value), store(y, i, next);
    add(norm2, i, weighted(weights, i, abs2(wide(value))));
  });
  const double shadow2 = real(s[SHADOW2]);
  const bool finite = isfinite(real(s[VV])) && isfinite(real(s[EVEN2]));
  const bool lost = vanishes(s[SIGMA], shadow2, real(s[VV])) || vanishes(rho, shadow2, real(s[EVEN2]));
  s[RHO] = rho;
  s[NORM2] = A(norm2), s[TAU2] = A(tau2 * (1 - c2)), s[CARRY] = (1 - c2) * step, s[BETA] = next_beta;
  s[ENDED] = A(iteration_code(finite, lost));
  if (single_rank) judge_once(ctx, s.data, NORM2, ENDED);
}

}  // namespace

KERNELS("swell.krylov.tfqmr", VALUES(clear), VALUES(direction), VALUES(odd), VALUES(even), VALUES(update))
