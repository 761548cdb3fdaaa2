// Fused steps of COCR on a CPU; cocr.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by COCR of krylov/slots.py. The vectors have the names of
// krylov/cocr.py. `w`: weights of the tested norm², empty for all ones. `zc`, `qc`: the conjugates of z and q, empty if
// they are not needed. ρ' is ρ of this iteration. A kernel writes the left sides of its formulas in place.
#include "slots/swell/krylov/cocr.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "weights.hpp"

namespace {

// True if μ is only rounding error.
template <class A> bool flat(Array<A> s) { return vanishes(s[MU], real(s[QQ]), real(s[TT])); }

// p = q = 0;  zc = conj(z);  (z, z), norm² = Σ w |r|².
template <class T>
void begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<T> q, Array<T> zc,
           Array<acc_t<T>> s) {
  each(p.size, [=](int64_t i) { p[i] = q[i] = T(0); });
  const auto [zz, norm2] = sums<double, double>(r.size, [=](auto i, auto& zz, auto& norm2) {
    const auto image = load(z, i);
    if (zc.size) store(zc, i, conj(image));
    add(zz, i, abs2(wide(image)));
    add(norm2, i, weighted(w, i, abs2(wide(load(r, i)))));
  });
  s[RHO] = acc_t<T>(0), s[ZZ] = acc_t<T>(zz), s[NORM2] = acc_t<T>(norm2), s[ENDED] = acc_t<T>(JUDGED);
}

// Test the first residual for convergence.
template <class A> void judge_first(Context* ctx, Array<const A> s) { judge_start(ctx, real(s[NORM2])); }

// β = ρ'/ρ;  p = z + β p;  q = A z + β q, qc = conj(q);  (q, q);  μ = qᵀ q, right without M only: with M, M's product
// writes it again. `az`: A z. Across ranks, also test the previous iteration for convergence.
template <class T>
void direction(Context* ctx, Array<const T> z, Array<const T> az, Array<T> p, Array<T> q, Array<T> qc,
               Array<acc_t<T>> s) {
  const T beta(quotient(s[NEXT_RHO], s[RHO]));
  const auto [mu, qq] = sums<acc_t<T>, double>(p.size, [=](auto i, auto& mu, auto& qq) {
    const auto image = load(az, i) + beta * load(q, i);
    store(p, i, load(z, i) + beta * load(p, i));
    store(q, i, image);
    if (qc.size) store(qc, i, conj(image));
    add(mu, i, wide(image) * wide(image)), add(qq, i, abs2(wide(image)));
  });
  s[MU] = mu, s[TT] = s[QQ] = acc_t<T>(qq);
  judge_once(ctx, s.data, NORM2, ENDED);
}

// α = ρ'/μ, or 0 if μ is only rounding error;  x += α p;  r −= α q;  z −= α t, zc = conj(z);  (z, z), norm² = Σ w |r|².
//
// `t`: M q. Without M, `z` is empty, and r counts as z. On a single rank, then test this iteration for convergence.
template <class T>
void residual(Context* ctx, Array<const T> p, Array<const T> q, Array<const T> t, Array<const float> w, Array<T> x,
              Array<T> r, Array<T> z, Array<T> zc, Array<acc_t<T>> s, bool single_rank) {
  const T alpha(flat(s) ? acc_t<T>(0) : s[NEXT_RHO] / s[MU]);
  const auto [zz, norm2] = sums<double, double>(r.size, [=](auto i, auto& zz, auto& norm2) {
    const auto value = load(r, i) - alpha * load(q, i);
    auto image = value;
    if (z.size) image = load(z, i) - alpha * load(t, i), store(z, i, image);
    if (zc.size) store(zc, i, conj(image));
    store(x, i, load(x, i) + alpha * load(p, i));
    store(r, i, value);
    add(norm2, i, weighted(w, i, abs2(wide(value)))), add(zz, i, abs2(wide(image)));
  });
  const bool finite = isfinite(real(s[AZ2])) && isfinite(real(s[TT]));
  const bool lost = vanishes(s[NEXT_RHO], real(s[ZZ]), real(s[AZ2])) || flat(s);
  s[RHO] = s[NEXT_RHO];
  s[ZZ] = acc_t<T>(zz), s[NORM2] = acc_t<T>(norm2);
  s[ENDED] = acc_t<T>(iteration_code(finite, lost));
  if (single_rank) judge_once(ctx, s.data, NORM2, ENDED);
}

}  // namespace

KERNELS("swell.krylov.cocr", VALUES(begin), SUMS(judge_first), VALUES(direction), VALUES(residual))
