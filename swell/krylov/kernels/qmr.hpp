// Fused steps of QMR, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by QMR of krylov/slots.py. The vectors have the names of
// krylov/qmr.py. `weights`: of the tested norm², empty for all ones. `vh`: v̂ = M v. `Ap`, `Ad`: A p and A d. `MAq`: Mᴴ
// Aᴴ q. v and w are not scaled; ρ and ξ are their norms. A kernel writes the left sides of its formulas in place.
#include "step.hpp"

namespace {

// β = ε/δ with δ = (w, v)/(ξ ρ); 0 if ε is only rounding error.
template <class A> DEVICE A over_delta(Array<A> s) {
  if (vanishes(s[EPSILON], real(s[QQ]), real(s[AP2]))) return A(0);
  return sqrt(real(s[XI2])) * sqrt(real(s[RHO2])) * quotient(s[EPSILON], s[WV]);
}

// p = v̂/ρ;  q = w/ξ, (q, q);  d = A d = 0;  γ = 1, η = −1, θ = 0.
// launch: elements of p, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL first(Context* ctx, Array<const T> vh, Array<const T> w, Array<T> p, Array<T> q, Array<T> d, Array<T> Ad,
             Array<acc_t<T>> s) {
  step<double>(ctx, vectors(vh, w, out(p), out(q), out(d), out(Ad)), [=] {
    const real_t<T> of_v(quotient(1.0, sqrt(real(s[RHO2])))), of_w(quotient(1.0, sqrt(real(s[XI2]))));
    return [=](auto vh, auto w, auto& p, auto& q, auto& d, auto& Ad, auto& qq) {
      p = of_v * vh;
      q = of_w * w;
      d = Ad = {};
      qq += abs2(wide(q));
    };
  }, [=](double qq) { s[QQ] = qq, s[ETA] = -1, s[THETA] = 0, s[GAMMA] = 1, s[ENDED] = JUDGED; });
}

// v = A p − (β/ρ) v;  w = Mᴴ Aᴴ q − conj(β/ξ) w;  (v, v), (w, w) and (w, v). Across ranks, also test the previous
// iteration for convergence.
// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL lanczos(Context* ctx, Array<const T> Ap, Array<const T> MAq, Array<T> v, Array<T> w, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  step<A, double, double>(ctx, vectors(Ap, MAq, v, w), [=] {
    const A beta = over_delta(s);
    const T of_v(quotient(beta, A(sqrt(real(s[RHO2]))))), of_w(conj(quotient(beta, A(sqrt(real(s[XI2]))))));
    return [=](auto Ap, auto MAq, auto& v, auto& w, auto& wv, auto& vv, auto& ww) {
      v = Ap - of_v * v;
      w = MAq - of_w * w;
      wv += conj(wide(w)) * wide(v), vv += abs2(wide(v)), ww += abs2(wide(w));
    };
  }, [=](auto wv, double vv, double ww) {
    s[NEXT_WV] = wv, s[NEXT_RHO2] = vv, s[NEXT_XI2] = ww;
    judge_once(ctx, s, NORM2, ENDED);
  });
}

// The rotation of the new column, with θ and γ, and the coefficients η and `carry` of p and d. `factor`: δ'/ε over ρ ξ.
template <class A> struct Rotation { double rho, xi, size, theta, gamma, carry; A eta, factor; };

template <class A> DEVICE Rotation<A> rotation(Array<A> s) {
  const A beta = over_delta(s);
  const double rho = sqrt(real(s[NEXT_RHO2])), xi = sqrt(real(s[NEXT_XI2])), size = modulus(beta);
  const double theta = quotient(rho, real(s[GAMMA]) * size), gamma = 1 / sqrt(1 + theta * theta);
  const double ratio = gamma / real(s[GAMMA]), carried = real(s[THETA]) * gamma;
  return {rho, xi, size, theta, gamma, carried * carried,
          ratio * ratio * (-s[ETA] * quotient(A(sqrt(real(s[RHO2]))), beta)),
          size > 0 ? quotient(quotient(s[NEXT_WV], s[EPSILON]), A(rho * xi)) : A(0)};
}

// d = η p + c d, A d likewise;  x += d;  r −= A d;  norm²; then p and q of the next iteration, and (q, q). On a single
// rank, then test this iteration for convergence.
// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Array<const T> vh, Array<const T> w, Array<const T> Ap, Array<const float> weights,
              Array<T> p, Array<T> q, Array<T> d, Array<T> Ad, Array<T> x, Array<T> r, Array<acc_t<T>> s,
              bool single_rank) {
  using R = real_t<T>;
  Rotation<acc_t<T>> g;
  step<double, double>(ctx, vectors(vh, w, Ap, ::weights<T>(weights), p, q, d, Ad, x, r), [&] {
    g = rotation(s);
    const T eta(g.eta), of_p(g.xi * g.factor), of_q(conj(g.rho * g.factor));
    const R carry(g.carry), of_v(quotient(1.0, g.rho)), of_w(quotient(1.0, g.xi));
    return [=](auto vh, auto w, auto Ap, auto weights, auto& p, auto& q, auto& d, auto& Ad, auto& x, auto& r,
               auto& qq, auto& norm2) {
      d = eta * p + carry * d;
      x = x + d;
      p = of_v * vh - of_p * p;
      Ad = eta * Ap + carry * Ad;
      r = r - Ad;
      q = of_w * w - of_q * q;
      norm2 += weights * abs2(wide(r)), qq += abs2(wide(q));
    };
  }, [&](double qq, double norm2) {
    const bool finite = isfinite(real(s[AP2])) && isfinite(real(s[NEXT_RHO2])) && isfinite(real(s[NEXT_XI2]));
    const bool lost = g.size == 0 || vanishes(s[NEXT_WV], real(s[NEXT_RHO2]), real(s[NEXT_XI2]));
    s[WV] = s[NEXT_WV];
    s[QQ] = qq, s[NORM2] = norm2;
    s[ETA] = g.eta, s[THETA] = g.theta, s[GAMMA] = g.gamma;
    s[XI2] = s[NEXT_XI2], s[RHO2] = s[NEXT_RHO2];
    s[ENDED] = iteration_code(finite, lost);
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  });
}

}  // namespace

KERNELS("swell.krylov.qmr", VALUES(first), VALUES(lanczos), VALUES(update))
