// Fused steps of QMR on a CPU; qmr.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by QMR of krylov/slots.py. The vectors have the names of
// krylov/qmr.py. `weights`: of the tested norm², empty for all ones. `vh`: v̂ = M v. `Ap`, `Ad`: A p and A d. `MAq`: Mᴴ
// Aᴴ q. v and w are not scaled; ρ and ξ are their norms. A kernel writes the left sides of its formulas in place.
#include "slots/swell/krylov/qmr.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// β = ε/δ with δ = (w, v)/(ξ ρ); 0 if ε is only rounding error.
template <class A> A over_delta(Array<A> s) {
  if (vanishes(s[EPSILON], real(s[QQ]), real(s[AP2]))) return A(0);
  return sqrt(real(s[XI2])) * sqrt(real(s[RHO2])) * quotient(s[EPSILON], s[WV]);
}

// p = v̂/ρ;  q = w/ξ, (q, q);  d = A d = 0;  γ = 1, η = −1, θ = 0.
template <class T>
void first(Context* ctx, Array<const T> vh, Array<const T> w, Array<T> p, Array<T> q, Array<T> d, Array<T> Ad,
           Array<acc_t<T>> s) {
  using A = acc_t<T>;
  const real_t<T> of_v(quotient(1.0, sqrt(real(s[RHO2])))), of_w(quotient(1.0, sqrt(real(s[XI2]))));
  each(d.size, [=](int64_t i) { d[i] = Ad[i] = T(0); });
  const auto [qq] = sums<double>(p.size, [=](auto i, auto& qq) {
    const auto value = of_w * load(w, i);
    store(p, i, of_v * load(vh, i));
    store(q, i, value);
    add(qq, i, abs2(wide(value)));
  });
  s[QQ] = A(qq), s[ETA] = A(-1), s[THETA] = A(0), s[GAMMA] = A(1), s[ENDED] = A(JUDGED);
}

// v = A p − (β/ρ) v;  w = Mᴴ Aᴴ q − conj(β/ξ) w;  (v, v), (w, w) and (w, v). Across ranks, also test the previous
// iteration for convergence.
template <class T>
void lanczos(Context* ctx, Array<const T> Ap, Array<const T> MAq, Array<T> v, Array<T> w, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  const A beta = over_delta(s);
  const T of_v(quotient(beta, A(sqrt(real(s[RHO2]))))), of_w(conj(quotient(beta, A(sqrt(real(s[XI2]))))));
  const auto [wv, vv, ww] = sums<A, double, double>(v.size, [=](auto i, auto& wv, auto& vv, auto& ww) {
    const auto a = load(Ap, i) - of_v * load(v, i), b = load(MAq, i) - of_w * load(w, i);
    store(v, i, a), store(w, i, b);
    add(wv, i, conj(wide(b)) * wide(a)), add(vv, i, abs2(wide(a))), add(ww, i, abs2(wide(b)));
  });
  s[NEXT_WV] = wv, s[NEXT_RHO2] = A(vv), s[NEXT_XI2] = A(ww);
  judge_once(ctx, s.data, NORM2, ENDED);
}

// d = η p + c d, A d likewise;  x += d;  r −= A d;  norm²; then p and q of the next iteration, and (q, q). On a single
// rank, then test this iteration for convergence.
template <class T>
void update(Context* ctx, Array<const T> vh, Array<const T> w, Array<const T> Ap, Array<const float> weights,
            Array<T> p, Array<T> q, Array<T> d, Array<T> Ad, Array<T> x, Array<T> r, Array<acc_t<T>> s,
            bool single_rank) {
  using A = acc_t<T>;
  const A beta = over_delta(s), wv = s[NEXT_WV];
  const double rho = sqrt(real(s[NEXT_RHO2])), xi = sqrt(real(s[NEXT_XI2])), size = modulus(beta);
  const double theta = quotient(rho, real(s[GAMMA]) * size), gamma = 1 / sqrt(1 + theta * theta);
  const double ratio = gamma / real(s[GAMMA]), carried = real(s[THETA]) * gamma;
  const A step = ratio * ratio * (-s[ETA] * quotient(A(sqrt(real(s[RHO2]))), beta));
  const A factor = size > 0 ? quotient(quotient(wv, s[EPSILON]), A(rho * xi)) : A(0);                        // δ'/ε
  const T eta(step), of_p(xi * factor), of_q(conj(rho * factor));
  const real_t<T> carry(carried * carried), of_v(quotient(1.0, rho)), of_w(quotient(1.0, xi));
  const auto [qq, norm2] = sums<double, double>(r.size, [=](auto i, auto& qq, auto& norm2) {
    const auto old = load(p, i), move = eta * old + carry * load(d, i);
    store(d, i, move);
    store(x, i, load(x, i) + move);
    store(p, i, of_v * load(vh, i) - of_p * old);
    const auto image = eta * load(Ap, i) + carry * load(Ad, i), value = load(r, i) - image;
    store(Ad, i, image), store(r, i, value);
    add(norm2, i, weighted(weights, i, abs2(wide(value))));
    const auto next = of_w * load(w, i) - of_q * load(q, i);
    store(q, i, next);
    add(qq, i, abs2(wide(next)));
  });
  const bool finite = isfinite(real(s[AP2])) && isfinite(real(s[NEXT_RHO2])) && isfinite(real(s[NEXT_XI2]));
  const bool lost = size == 0 || vanishes(wv, real(s[NEXT_RHO2]), real(s[NEXT_XI2]));
  s[WV] = wv;
  s[QQ] = A(qq), s[NORM2] = A(norm2);
  s[ETA] = step, s[THETA] = A(theta), s[GAMMA] = A(gamma);
  s[XI2] = s[NEXT_XI2], s[RHO2] = s[NEXT_RHO2];
  s[ENDED] = A(iteration_code(finite, lost));
  if (single_rank) judge_once(ctx, s.data, NORM2, ENDED);
}

}  // namespace

KERNELS("swell.krylov.qmr", VALUES(first), VALUES(lanczos), VALUES(update))
