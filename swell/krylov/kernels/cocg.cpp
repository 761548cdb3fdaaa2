// Fused steps of COCG on a CPU; cocg.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by COCG of krylov/slots.py. The vectors have the names of
// krylov/cocg.py. `w`: weights of the tested norm², empty for all ones. `pc`, `rc`: the conjugates of p and r, empty if
// they are not needed. A kernel writes the left sides of its formulas in place.
#include "slots/swell/krylov/cocg.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// True if subtracting α q = (ρ/μ) q would leave no digit of r.
template <class A> bool drowns(Array<A> s) {
  return modulus(s[MU]) * sqrt(real(s[LAST_RR])) <= EPS * modulus(s[RHO]) * sqrt(real(s[QQ]));
}

// α = ρ/μ; 0 if the step would leave no digit of r: `direction` then ends the iteration.
template <class A> A step_length(Array<A> s) { return drowns(s) ? A(0) : s[RHO] / s[MU]; }

// p = z, pc = conj(p);  ρ = rᵀ z;  (r, r), (z, z), norm² = Σ w |r|².
template <class T>
void begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<T> pc,
           Array<acc_t<T>> s) {
  const auto [rho, rr, zz, norm2] = sums<acc_t<T>, double, double, double>(r.size,
      [=](auto i, auto& rho, auto& rr, auto& zz, auto& norm2) {
    const auto direction = load(z, i);
    const auto residual = wide(load(r, i));
    const auto square = abs2(residual);
    store(p, i, direction);
    if (pc.size) store(pc, i, conj(direction));
    add(rho, i, residual * wide(direction)), add(zz, i, abs2(wide(direction)));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[RHO] = rho, s[ZZ] = acc_t<T>(zz), s[NORM2] = acc_t<T>(norm2), s[LAST_RR] = acc_t<T>(rr);
}

// Test the first residual for convergence.
template <class A> void judge_first(Context* ctx, Array<const A> s) {
  judge_start(ctx, real(s[NORM2]));
  if (!over(ctx) && vanishes(s[RHO], real(s[LAST_RR]), real(s[ZZ]))) halt(ctx, BREAKDOWN);
}

// r −= α q, rc = conj(r);  norm² = Σ w |r|²;  next ρ = rᵀ r, right without M only: with M, M's product writes it again.
template <class T>
void residual(Context* ctx, Array<const T> q, Array<T> r, Array<T> rc, Array<const float> w, Array<acc_t<T>> s) {
  const T alpha(step_length(s));
  const auto [rho, rr, norm2] = sums<acc_t<T>, double, double>(r.size, [=](auto i, auto& rho, auto& rr, auto& norm2) {
    const auto value = load(r, i) - alpha * load(q, i);
    const auto square = abs2(wide(value));
    store(r, i, value);
    if (rc.size) store(rc, i, conj(value));
    add(rho, i, wide(value) * wide(value));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[NEXT_RHO] = rho, s[ZZ] = s[RR] = acc_t<T>(rr), s[NORM2] = acc_t<T>(norm2);
}

// x += α p;  β = next ρ / ρ;  p = z + β p, pc = conj(p); then test this iteration for convergence.
template <class T>
void direction(Context* ctx, Array<const T> z, Array<T> p, Array<T> pc, Array<T> x, Array<acc_t<T>> s) {
  const auto rho = s[NEXT_RHO];
  const T alpha(step_length(s)), beta(rho / s[RHO]);
  elements(p, [=](auto i) {
    const auto d = load(p, i), next = load(z, i) + beta * d;
    store(x, i, load(x, i) + alpha * d);
    store(p, i, next);
    if (pc.size) store(pc, i, conj(next));
  });
  const bool finite = isfinite(real(s[QQ])) && isfinite(real(s[ZZ]));
  const bool lost = drowns(s) || vanishes(rho, real(s[RR]), real(s[ZZ])) || !finite;
  s[RHO] = rho;
  s[LAST_RR] = s[RR];
  judge(ctx, real(s[NORM2]));
  if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
}

}  // namespace

KERNELS("swell.krylov.cocg", VALUES(begin), SUMS(judge_first), VALUES(residual), VALUES(direction))
