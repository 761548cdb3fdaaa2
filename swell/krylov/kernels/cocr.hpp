// Fused steps of COCR, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by COCR of krylov/slots.py. The vectors have the names of
// krylov/cocr.py. `w`: weights of the tested norm², empty for all ones. `zc`, `qc`: the conjugates of z and q, empty if
// they are not needed. ρ' is ρ of this iteration. A kernel writes the left sides of its formulas in place.
#include "step.hpp"

namespace {

// True if μ is only rounding error.
template <class A> DEVICE bool flat(Array<A> s) { return vanishes(s[MU], real(s[QQ]), real(s[TT])); }

// p = q = 0;  zc = conj(z);  (z, z), norm² = Σ w |r|².
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<T> q,
             Array<T> zc, Array<acc_t<T>> s) {
  step<double, double>(ctx, vectors(r, z, weights<T>(w), out(p), out(q), out(zc)), [=] {
    return [=](auto r, auto z, auto w, auto& p, auto& q, auto& zc, auto& zz, auto& norm2) {
      p = q = {};
      zc = conj(z);
      zz += abs2(wide(z));
      norm2 += w * abs2(wide(r));
    };
  }, [=](double zz, double norm2) { s[RHO] = 0, s[ZZ] = zz, s[NORM2] = norm2, s[ENDED] = JUDGED; });
}

// Test the first residual for convergence.
// launch: one block of 32 threads
template <class A> KERNEL judge_first(Context* ctx, Array<const A> s) {
  once(ctx, [=] { judge_start(ctx, real(s[NORM2])); });
}

// β = ρ'/ρ;  p = z + β p;  q = A z + β q, qc = conj(q);  (q, q);  μ = qᵀ q, right without M only: with M, M's product
// writes it again. `az`: A z. Across ranks, also test the previous iteration for convergence.
// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL direction(Context* ctx, Array<const T> z, Array<const T> az, Array<T> p, Array<T> q, Array<T> qc,
                 Array<acc_t<T>> s) {
  step<acc_t<T>, double>(ctx, vectors(z, az, p, q, out(qc)), [=] {
    const T beta(quotient(s[NEXT_RHO], s[RHO]));
    return [=](auto z, auto az, auto& p, auto& q, auto& qc, auto& mu, auto& qq) {
      p = z + beta * p;
      q = az + beta * q, qc = conj(q);
      mu += wide(q) * wide(q), qq += abs2(wide(q));
    };
  }, [=](auto mu, double qq) {
    s[MU] = mu, s[TT] = s[QQ] = qq;
    judge_once(ctx, s, NORM2, ENDED);
  });
}

// α = ρ'/μ, or 0 if μ is only rounding error;  x += α p;  r −= α q;  z −= α t, zc = conj(z);  (z, z), norm² = Σ w |r|².
//
// `t`: M q. Without M, `z` is empty, and r counts as z. On a single rank, then test this iteration for convergence.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL residual(Context* ctx, Array<const T> p, Array<const T> q, Array<const T> t, Array<const float> w, Array<T> x,
                Array<T> r, Array<T> z, Array<T> zc, Array<acc_t<T>> s, bool single_rank) {
  step<double, double>(ctx, vectors(p, q, t, weights<T>(w), x, r, optional(z), out(zc)), [=] {
    const T alpha(flat(s) ? acc_t<T>(0) : s[NEXT_RHO] / s[MU]);
    const bool preconditioned = z.size > 0;
    return [=](auto p, auto q, auto t, auto w, auto& x, auto& r, auto& z, auto& zc, auto& zz, auto& norm2) {
      x = x + alpha * p;
      r = r - alpha * q;
      z = preconditioned ? z - alpha * t : r, zc = conj(z);
      zz += abs2(wide(z));
      norm2 += w * abs2(wide(r));
    };
  }, [=](double zz, double norm2) {
    const bool finite = isfinite(real(s[AZ2])) && isfinite(real(s[TT]));
    const bool lost = vanishes(s[NEXT_RHO], real(s[ZZ]), real(s[AZ2])) || flat(s);
    s[RHO] = s[NEXT_RHO], s[ZZ] = zz, s[NORM2] = norm2;
    s[ENDED] = iteration_code(finite, lost);
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  });
}

}  // namespace

KERNELS("swell.krylov.cocr", VALUES(begin), SUMS(judge_first), VALUES(direction), VALUES(residual))
