// Fused steps of MINRES on a CPU; minres.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by MINRES of krylov/slots.py. The vectors have the names of
// krylov/minres.py. `w`: weights of the tested norm², empty for all ones. `q`: A z. v and d are not scaled: kernels
// divide by β and γ. A kernel writes the left sides of its formulas in place.
#include "slots/swell/krylov/minres.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

constexpr double TRUSTED = 0.01;       // largest trusted drift of r from b − A x, relative to ‖r‖

struct Rotated { double alpha, delta, bar; };

// α is the diagonal entry of T in the new column. The last Givens rotation turns the entry above it into δ, and α into
// γ̄.
template <class A> Rotated rotated(Array<A> s) {
  const double alpha = real(s[ALPHA]) / real(s[BETA2]), c = real(s[COS]), sine = real(s[SIN]), d = real(s[DELTA]);
  return {alpha, c * d + sine * alpha, sine * d - c * alpha};
}

// v = r;  v_old = d = d_old = 0;  β² = (r, z), (z, z), (r, r);  norm² = Σ w |r|²;  the other scalars are reset.
template <class T>
void begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> v, Array<T> v_old,
           Array<T> d, Array<T> d_old, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  each(v.size, [=](int64_t i) { v_old[i] = d[i] = d_old[i] = T(0); });
  const auto [rz, zz, rr, norm2] = sums<double, double, double, double>(r.size,
      [=](auto i, auto& rz, auto& zz, auto& rr, auto& norm2) {
    const auto residual = load(r, i);
    const auto image = wide(load(z, i));
    const auto square = abs2(wide(residual));
    store(v, i, residual);
    add(rz, i, real(conj(wide(residual)) * image)), add(zz, i, abs2(image));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[BETA2] = A(rz), s[ZZ] = A(zz), s[RR] = A(rr), s[NORM2] = A(norm2);
  s[LAST_BETA2] = s[SIN] = s[DELTA] = s[EPSILON] = s[COLUMN] = s[A2] = s[DRIFT] = A(0);
  s[COS] = A(-1);
  s[GAMMA] = s[LAST_GAMMA] = A(1);
  s[ENDED] = A(JUDGED);
}

// Test the first residual for convergence;  φ = β.
template <class A> void judge_first(Context* ctx, Array<A> s) {
  const double beta2 = real(s[BETA2]);
  s[PHI] = A(sqrt(max(beta2, 0.0)));
  judge_start(ctx, real(s[NORM2]));
  if (!over(ctx) && !(beta2 > 0)) halt(ctx, isfinite(beta2) ? INDEFINITE : NONFINITE);
}

// v_next = q/β − (α/β) v − (β/β_old) v_old;  d_next = z/β − (δ/γ) d − (ε/γ_old) d_old.
//
// On entry v_next and d_next hold v_old and d_old. Also (d_next, d_next) and (v_next, v_next), which is the next β²
// without M. Across ranks, also test the previous iteration for convergence.
template <class T>
void lanczos(Context* ctx, Array<const T> q, Array<const T> z, Array<const T> v, Array<T> v_next, Array<const T> d,
             Array<T> d_next, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  using R = real_t<T>;
  const Rotated t = rotated(s);
  const double beta = sqrt(real(s[BETA2])), last = sqrt(real(s[LAST_BETA2]));
  const R of_z(1 / beta), of_v(t.alpha / beta), of_old(quotient(beta, last));
  const R of_d(t.delta / real(s[GAMMA])), of_older(real(s[EPSILON]) / real(s[LAST_GAMMA]));
  const auto [vv, dd] = sums<double, double>(v.size, [=](auto i, auto& vv, auto& dd) {
    const auto v_new = of_z * load(q, i) - of_v * load(v, i) - of_old * load(v_next, i);
    const auto d_new = of_z * load(z, i) - of_d * load(d, i) - of_older * load(d_next, i);
    store(v_next, i, v_new), store(d_next, i, d_new);
    add(vv, i, abs2(wide(v_new))), add(dd, i, abs2(wide(d_new)));
  });
  s[A2] = A(max(real(s[A2]), quotient(real(s[QQ]), real(s[ZZ]))));
  s[VV] = s[NEXT_BETA2] = s[ZZ] = A(vv);
  s[DD] = A(dd);
  judge_once(ctx, s.data, NORM2, ENDED);
}

// Rotate the next β out of T;  x += (c φ/γ) d;  r = s² r − (s c φ/β) v;  (r, r), norm²;  the scalars of the next step.
//
// x and r stay if A r vanishes, if the drift of r from b − A x exceeds TRUSTED ‖r‖, or if M is not definite. `v`, `d`:
// the new vectors. `eps`: machine precision. On a single rank, then test this iteration for convergence.
template <class T>
void update(Context* ctx, Array<const T> v, Array<const T> d, Array<const float> w, Array<T> x, Array<T> r,
            Array<acc_t<T>> s, double eps, bool single_rank) {
  using A = acc_t<T>;
  using R = real_t<T>;
  const Rotated t = rotated(s);
  const double beta2 = real(s[NEXT_BETA2]), phi = real(s[PHI]), last_c = real(s[COS]);
  const bool finite = isfinite(t.alpha) && isfinite(beta2), definite = beta2 > 0 || real(s[VV]) == 0;
  const double beta = sqrt(max(beta2, 0.0)), gamma = hypot(t.bar, beta);
  const double cos = quotient(t.bar, gamma), sin = quotient(beta, gamma);
  const double column = max(real(s[COLUMN]), hypot(hypot(real(s[EPSILON]), t.delta), gamma));
  const double step = quotient(cos * phi, gamma), length = fabs(step) * sqrt(real(s[DD]));
  const double drift = real(s[DRIFT]) + eps * sqrt(real(s[A2])) * length;
  const bool annihilated = hypot(t.bar, last_c * beta) <= EPS * column;            // ‖A r‖/‖r‖, in M's norms
  const bool lost = annihilated || drift > TRUSTED * sqrt(real(s[RR])), stays = lost || !definite;
  const R of_d(stays ? 0.0 : step), of_r(stays ? 1.0 : sin * sin), of_v(stays ? 0.0 : quotient(sin * cos * phi, beta));
  const auto [rr, norm2] = sums<double, double>(r.size, [=](auto i, auto& rr, auto& norm2) {
    const auto value = of_r * load(r, i) - of_v * load(v, i);
    const auto square = abs2(wide(value));
    store(x, i, load(x, i) + of_d * load(d, i));
    store(r, i, value);
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[RR] = A(rr), s[NORM2] = A(norm2);
  s[EPSILON] = A(real(s[SIN]) * beta);
  s[DELTA] = A(-last_c * beta);
  s[COS] = A(cos), s[SIN] = A(sin), s[PHI] = A(sin * phi);
  s[LAST_GAMMA] = s[GAMMA];
  s[GAMMA] = A(gamma > 0 ? gamma : 1.0);
  s[LAST_BETA2] = s[BETA2];
  s[BETA2] = A(beta2 > 0 ? beta2 : 1.0);
  s[COLUMN] = A(column), s[DRIFT] = A(drift);
  s[ENDED] = A(finite && !definite ? INDEFINITE : iteration_code(finite, lost));
  if (single_rank) judge_once(ctx, s.data, NORM2, ENDED);
}

}  // namespace

KERNELS("swell.krylov.minres", VALUES(begin), SUMS(judge_first), VALUES(lanczos), VALUES(update))
