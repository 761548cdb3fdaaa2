// Fused steps of MINRES, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by MINRES of krylov/slots.py. The vectors have the names of
// krylov/minres.py. `w`: weights of the tested norm², empty for all ones. `q`: A z. v and d are not scaled: kernels
// divide by β and γ. A kernel writes the left sides of its formulas in place.
#include "step.hpp"

namespace {

constexpr double TRUSTED = 0.01;       // largest trusted drift of r from b − A x, relative to ‖r‖

struct Rotated { double alpha, delta, bar; };

// α is the diagonal entry of T in the new column. The last Givens rotation turns the entry above it into δ, and α into
// γ̄.
template <class A> DEVICE Rotated rotated(Array<A> s) {
  const double alpha = real(s[ALPHA]) / real(s[BETA2]), c = real(s[COS]), sine = real(s[SIN]), d = real(s[DELTA]);
  return {alpha, c * d + sine * alpha, sine * d - c * alpha};
}

// v = r;  v_old = d = d_old = 0;  β² = (r, z), (z, z), (r, r);  norm² = Σ w |r|²;  the other scalars are reset.
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> v, Array<T> v_old,
             Array<T> d, Array<T> d_old, Array<acc_t<T>> s) {
  const auto arrays = vectors(r, z, weights<T>(w), out(v), out(v_old), out(d), out(d_old));
  step<double, double, double, double>(ctx, arrays, [=] {
    return [=](auto r, auto z, auto w, auto& v, auto& v_old, auto& d, auto& d_old, auto& rz, auto& zz, auto& rr,
               auto& norm2) {
      v = r, v_old = d = d_old = {};
      rz += real(conj(wide(r)) * wide(z)), zz += abs2(wide(z)), rr += abs2(wide(r));
      norm2 += w * abs2(wide(r));
    };
  }, [=](double rz, double zz, double rr, double norm2) {
    s[BETA2] = rz, s[ZZ] = zz, s[RR] = rr, s[NORM2] = norm2;
    s[LAST_BETA2] = s[SIN] = s[DELTA] = s[EPSILON] = s[COLUMN] = s[A2] = s[DRIFT] = 0;
    s[COS] = -1;
    s[GAMMA] = s[LAST_GAMMA] = 1;
    s[ENDED] = JUDGED;
  });
}

// Test the first residual for convergence;  φ = β.
// launch: one block of 32 threads
template <class A> KERNEL judge_first(Context* ctx, Array<A> s) {
  once(ctx, [=] {
    const double beta2 = real(s[BETA2]);
    s[PHI] = sqrt(max(beta2, 0.0));
    judge_start(ctx, real(s[NORM2]));
    if (!over(ctx) && !(beta2 > 0)) halt(ctx, isfinite(beta2) ? INDEFINITE : NONFINITE);
  });
}

// v_next = q/β − (α/β) v − (β/β_old) v_old;  d_next = z/β − (δ/γ) d − (ε/γ_old) d_old.
//
// On entry v_next and d_next hold v_old and d_old. Also (d_next, d_next) and (v_next, v_next), which is the next β²
// without M. Across ranks, also test the previous iteration for convergence.
// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL lanczos(Context* ctx, Array<const T> q, Array<const T> z, Array<const T> v, Array<T> v_next, Array<const T> d,
               Array<T> d_next, Array<acc_t<T>> s) {
  using R = real_t<T>;
  step<double, double>(ctx, vectors(q, z, v, v_next, d, d_next), [=] {
    const Rotated t = rotated(s);
    const double beta = sqrt(real(s[BETA2])), last = sqrt(real(s[LAST_BETA2]));
    const R of_z(1 / beta), of_v(t.alpha / beta), of_old(quotient(beta, last));
    const R of_d(t.delta / real(s[GAMMA])), of_older(real(s[EPSILON]) / real(s[LAST_GAMMA]));
    return [=](auto q, auto z, auto v, auto& v_next, auto d, auto& d_next, auto& vv, auto& dd) {
      v_next = of_z * q - of_v * v - of_old * v_next;
      d_next = of_z * z - of_d * d - of_older * d_next;
      vv += abs2(wide(v_next)), dd += abs2(wide(d_next));
    };
  }, [=](double vv, double dd) {
    s[A2] = max(real(s[A2]), quotient(real(s[QQ]), real(s[ZZ])));
    s[VV] = s[NEXT_BETA2] = s[ZZ] = vv;
    s[DD] = dd;
    judge_once(ctx, s, NORM2, ENDED);
  });
}

// The Givens rotation that takes the next β out of T. `step`: of x along d.
struct Rotation { double beta2, beta, gamma, cos, sin, column, step, drift; bool finite, definite, lost; };

template <class A> DEVICE Rotation rotation(Array<A> s, double eps) {
  const Rotated t = rotated(s);
  const double beta2 = real(s[NEXT_BETA2]), beta = sqrt(max(beta2, 0.0)), gamma = hypot(t.bar, beta);
  const double cos = quotient(t.bar, gamma), step = quotient(cos * real(s[PHI]), gamma);
  const double column = max(real(s[COLUMN]), hypot(hypot(real(s[EPSILON]), t.delta), gamma));
  const double drift = real(s[DRIFT]) + eps * sqrt(real(s[A2])) * (fabs(step) * sqrt(real(s[DD])));
  const bool annihilated = hypot(t.bar, real(s[COS]) * beta) <= EPS * column;      // ‖A r‖/‖r‖, in M's norms
  return {beta2, beta, gamma, cos, quotient(beta, gamma), column, step, drift,
          isfinite(t.alpha) && isfinite(beta2), beta2 > 0 || real(s[VV]) == 0,
          annihilated || drift > TRUSTED * sqrt(real(s[RR]))};
}

// Rotate the next β out of T;  x += (c φ/γ) d;  r = s² r − (s c φ/β) v;  (r, r), norm²;  the scalars of the next step.
//
// x and r stay if A r vanishes, if the drift of r from b − A x exceeds TRUSTED ‖r‖, or if M is not definite. `v`, `d`:
// the new vectors. `eps`: machine precision. On a single rank, then test this iteration for convergence.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Array<const T> v, Array<const T> d, Array<const float> w, Array<T> x, Array<T> r,
              Array<acc_t<T>> s, double eps, bool single_rank) {
  using R = real_t<T>;
  Rotation g;
  step<double, double>(ctx, vectors(v, d, weights<T>(w), x, r), [&] {
    g = rotation(s, eps);
    const bool stays = g.lost || !g.definite;
    const R of_d(stays ? 0.0 : g.step), of_r(stays ? 1.0 : g.sin * g.sin);
    const R of_v(stays ? 0.0 : quotient(g.sin * g.cos * real(s[PHI]), g.beta));
    return [=](auto v, auto d, auto w, auto& x, auto& r, auto& rr, auto& norm2) {
      x = x + of_d * d;
      r = of_r * r - of_v * v;
      const auto square = abs2(wide(r));
      rr += square;
      if (w.given) norm2 += w * square;
    };
  }, [&](double rr, double norm2) {
    s[RR] = rr, s[NORM2] = w.size ? norm2 : rr;
    s[EPSILON] = real(s[SIN]) * g.beta;
    s[DELTA] = -real(s[COS]) * g.beta;
    s[COS] = g.cos, s[SIN] = g.sin, s[PHI] = g.sin * real(s[PHI]);
    s[LAST_GAMMA] = s[GAMMA];
    s[GAMMA] = g.gamma > 0 ? g.gamma : 1.0;
    s[LAST_BETA2] = s[BETA2];
    s[BETA2] = g.beta2 > 0 ? g.beta2 : 1.0;
    s[COLUMN] = g.column, s[DRIFT] = g.drift;
    s[ENDED] = g.finite && !g.definite ? INDEFINITE : iteration_code(g.finite, g.lost);
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  });
}

}  // namespace

KERNELS("swell.krylov.minres", VALUES(begin), SUMS(judge_first), VALUES(lanczos), VALUES(update))
