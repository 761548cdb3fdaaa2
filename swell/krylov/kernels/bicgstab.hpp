// Fused steps of BiCGSTAB, for both devices; shadow.hpp has the start.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by BiCGSTAB of krylov/slots.py. The vectors have the names of
// krylov/bicgstab.py. `w`: weights of the tested norm², empty for all ones. `shadow`: r̂. `ph`, `sh`: p̂ = M p and ŝ =
// M s. A kernel writes the left sides of its formulas in place.
#include "step.hpp"

namespace {

template <class A> DEVICE A step_length(Array<A> s) { return quotient(s[RHO], s[GAMMA]); }
template <class A> DEVICE A omega_of(Array<A> s) { return quotient(conj(s[ST]), A(real(s[TT]))); }

// α = ρ / (r̂, v);  r −= α v: r then holds the s of BiCGSTAB.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T> KERNEL half(Context* ctx, Array<const T> v, Array<T> r, Array<acc_t<T>> s) {
  step(ctx, vectors(v, r), [=] {
    const T alpha(step_length(s));
    return [=](auto v, auto& r) { r = r - alpha * v; };
  });
}

// ω = (t, s)/(t, t);  x += α p̂ + ω ŝ;  r −= ω t, where r holds s on entry;  next ρ = (r̂, r), norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Array<const T> ph, Array<const T> sh, Array<const T> t, Array<const T> shadow,
              Array<const float> w, Array<T> x, Array<T> r, Array<acc_t<T>> s) {
  step<acc_t<T>, double, double>(ctx, vectors(ph, sh, t, shadow, weights<T>(w), x, r), [=] {
    const T alpha(step_length(s)), omega(omega_of(s));
    return [=](auto ph, auto sh, auto t, auto shadow, auto w, auto& x, auto& r, auto& rho, auto& rr, auto& norm2) {
      x = x + (alpha * ph + omega * sh);
      r = r - omega * t;
      const auto square = abs2(wide(r));
      rho += conj(wide(shadow)) * wide(r);
      rr += square;
      if (w.given) norm2 += w * square;
    };
  }, [=](auto rho, double rr, double norm2) { s[NEXT_RHO] = rho, s[RR] = rr, s[NORM2] = w.size ? norm2 : rr; });
}

// β = (next ρ / ρ) (α / ω);  p = r + β (p − ω v); then test this iteration for convergence.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL direction(Context* ctx, Array<const T> r, Array<const T> v, Array<T> p, Array<acc_t<T>> s) {
  using A = acc_t<T>;
  step(ctx, vectors(r, v, p), [=] {
    const A step = omega_of(s);
    const T omega(step), beta(quotient(s[NEXT_RHO], s[RHO]) * quotient(step_length(s), step));
    return [=](auto r, auto v, auto& p) { p = r + beta * (p - omega * v); };
  }, [=] {
    const double shadow2 = real(s[SHADOW2]);
    const bool lost = vanishes(s[GAMMA], shadow2, real(s[VV])) || omega_of(s) == A(0)
        || vanishes(s[NEXT_RHO], shadow2, real(s[RR]));
    const bool finite = isfinite(real(s[GAMMA])) && isfinite(real(s[TT]));
    s[RHO] = s[NEXT_RHO];
    judge(ctx, real(s[NORM2]));
    if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
  });
}

}  // namespace

KERNELS("swell.krylov.bicgstab", VALUES(half), VALUES(update), VALUES(direction))
