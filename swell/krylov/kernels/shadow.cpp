// First kernels of methods with a shadow vector, on a CPU; shadow.cu has the same kernels for a GPU. `ctx` is the
// judge's record. `s`: scalars, indexed by Shadow of krylov/slots.py. `shadow`: r̂. `w`: weights, empty for all ones.
#include "slots/swell/krylov/shadow.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// p = r;  ρ = (r̂, r);  (r̂, r̂);  (r, r);  norm² = Σ w |r|².
template <class T>
void begin(Context* ctx, Array<const T> r, Array<const T> shadow, Array<const float> w, Array<T> p,
           Array<acc_t<T>> s) {
  const auto [rho, shadow2, rr, norm2] = sums<acc_t<T>, double, double, double>(r.size,
      [=](auto i, auto& rho, auto& shadow2, auto& rr, auto& norm2) {
    const auto residual = load(r, i);
    const auto own = wide(load(shadow, i));
    const auto square = abs2(wide(residual));
    store(p, i, residual);
    add(rho, i, conj(own) * wide(residual)), add(shadow2, i, abs2(own));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[RHO] = rho, s[SHADOW2] = acc_t<T>(shadow2), s[RR] = acc_t<T>(rr), s[NORM2] = acc_t<T>(norm2);
}

// Test the first residual for convergence.
template <class A> void judge_first(Context* ctx, Array<const A> s) {
  judge_start(ctx, real(s[NORM2]));
  if (!over(ctx) && vanishes(s[RHO], real(s[SHADOW2]), real(s[RR]))) halt(ctx, BREAKDOWN);
}

}  // namespace

KERNELS("swell.krylov.shadow", VALUES(begin), SUMS(judge_first))
