// Fused steps of BiCGSTAB on a CPU; bicgstab.cu has the same kernels for a GPU, shadow.cpp the start.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by BiCGSTAB of krylov/slots.py. The vectors have the names of
// krylov/bicgstab.py. `w`: weights of the tested norm², empty for all ones. `shadow`: r̂. `ph`, `sh`: p̂ = M p and ŝ =
// M s. A kernel writes the left sides of its formulas in place.
#include "slots/swell/krylov/bicgstab.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

template <class A> A step_length(Array<A> s) { return quotient(s[RHO], s[GAMMA]); }
template <class A> A omega_of(Array<A> s) { return quotient(conj(s[ST]), A(real(s[TT]))); }

// α = ρ / (r̂, v);  r −= α v: r then holds the s of BiCGSTAB.
template <class T> void half(Context* ctx, Array<const T> v, Array<T> r, Array<acc_t<T>> s) {
  const T alpha(step_length(s));
  elements(r, [=](auto i) { store(r, i, load(r, i) - alpha * load(v, i)); });
}

// ω = (t, s)/(t, t);  x += α p̂ + ω ŝ;  r −= ω t, where r holds s on entry;  next ρ = (r̂, r), norm² = Σ w |r|².
template <class T>
void update(Context* ctx, Array<const T> ph, Array<const T> sh, Array<const T> t, Array<const T> shadow,
            Array<const float> w, Array<T> x, Array<T> r, Array<acc_t<T>> s) {
  const T alpha(step_length(s)), omega(omega_of(s));
  const auto [rho, rr, norm2] = sums<acc_t<T>, double, double>(r.size, [=](auto i, auto& rho, auto& rr, auto& norm2) {
    const auto value = load(r, i) - omega * load(t, i);
    const auto square = abs2(wide(value));
    store(x, i, load(x, i) + (alpha * load(ph, i) + omega * load(sh, i)));
    store(r, i, value);
    add(rho, i, conj(wide(load(shadow, i))) * wide(value));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[NEXT_RHO] = rho, s[NORM2] = acc_t<T>(norm2), s[RR] = acc_t<T>(rr);
}

// β = (next ρ / ρ) (α / ω);  p = r + β (p − ω v); then test this iteration for convergence.
template <class T>
void direction(Context* ctx, Array<const T> r, Array<const T> v, Array<T> p, Array<acc_t<T>> s) {
  const auto next_rho = s[NEXT_RHO], step = omega_of(s);
  const T omega(step), beta(quotient(next_rho, s[RHO]) * quotient(step_length(s), step));
  elements(p, [=](auto i) { store(p, i, load(r, i) + beta * (load(p, i) - omega * load(v, i))); });
  const double shadow2 = real(s[SHADOW2]);
  const bool lost = vanishes(s[GAMMA], shadow2, real(s[VV])) || step == acc_t<T>(0)
      || vanishes(next_rho, shadow2, real(s[RR]));
  const bool finite = isfinite(real(s[GAMMA])) && isfinite(real(s[TT]));
  s[RHO] = next_rho;
  judge(ctx, real(s[NORM2]));
  if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
}

}  // namespace

KERNELS("swell.krylov.bicgstab", VALUES(half), VALUES(update), VALUES(direction))
