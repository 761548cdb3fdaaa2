// First kernels of methods with a shadow vector, for both devices. `ctx` is the judge's record. `s`: scalars, indexed
// by Shadow of krylov/slots.py. `shadow`: r̂. `w`: weights, empty for all ones.
#include "step.hpp"

namespace {

// p = r;  ρ = (r̂, r);  (r̂, r̂);  (r, r);  norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL begin(Context* ctx, Array<const T> r, Array<const T> shadow, Array<const float> w, Array<T> p,
             Array<acc_t<T>> s) {
  step<acc_t<T>, double, double, double>(ctx, vectors(r, shadow, weights<T>(w), out(p)), [=] {
    return [=](auto r, auto shadow, auto w, auto& p, auto& rho, auto& shadow2, auto& rr, auto& norm2) {
      p = r;
      rho += conj(wide(shadow)) * wide(r), shadow2 += abs2(wide(shadow));
      rr += abs2(wide(r)), norm2 += w * abs2(wide(r));
    };
  }, [=](auto rho, double shadow2, double rr, double norm2) {
    s[RHO] = rho, s[SHADOW2] = shadow2, s[RR] = rr, s[NORM2] = norm2;
  });
}

// Test the first residual for convergence.
// launch: one block of 32 threads
template <class A> KERNEL judge_first(Context* ctx, Array<const A> s) {
  once(ctx, [=] {
    judge_start(ctx, real(s[NORM2]));
    if (!over(ctx) && vanishes(s[RHO], real(s[SHADOW2]), real(s[RR]))) halt(ctx, BREAKDOWN);
  });
}

}  // namespace

KERNELS("swell.krylov.shadow", VALUES(begin), SUMS(judge_first))
