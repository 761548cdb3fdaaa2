// BiCGSTAB, preconditioned on the right, for a batch, on a CPU; bicgstab.cu is the GPU's version.
//
// Arguments as in cg.cpp, and `shadow`: shadow vectors r̂, one after the other, one for each attempt in turn.
#include "slots/swell/batch/bicgstab.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/launcher.hpp"
#include "system.hpp"

namespace {

// Iterate from x with the residual r, until there is a verdict; return it. s is in r.
template <class T>
int cycle(const System<T>& A, const Preconditioner<T>& M, Judge& judge, Array<const T> rh, Array<T> x, Array<T> r,
          Array<T> p, Array<T> v, Array<T> t, Array<T> ph, Array<T> sh) {
  using A2 = acc_t<T>;
  const int64_t n = r.size;
  std::copy(r.data, r.data + n, p.data);                                   // p = r
  const double shadow2 = norm2(rh);
  A2 rho = dot<T>(rh, r);                                                  // ρ = (r̂, r)
  if (vanishes(rho, shadow2, norm2<T>(r))) return BREAKDOWN;
  for (;;) {
    M.apply(A, p, ph);                                                     // p̂ = M p
    product<T>(A, ph, v);                                                  // v = A p̂
    const A2 gamma = dot<T>(rh, v);                                        // γ = (r̂, v)
    const double vv = norm2<T>(v);
    if (!isfinite(vv)) return NONFINITE;
    if (vanishes(gamma, shadow2, vv)) return BREAKDOWN;
    const A2 of_alpha = quotient(rho, gamma);
    const T alpha(of_alpha);
    for (int64_t i = 0; i < n; ++i) r[i] -= alpha * v[i];                  // s = r − α v
    M.apply(A, r, sh);                                                     // ŝ = M s
    product<T>(A, sh, t);                                                  // t = A ŝ
    const A2 of_omega = quotient(dot<T>(t, r), A2(norm2<T>(t)));           // ω = (t, s)/(t, t)
    const T omega(of_omega);
    for (int64_t i = 0; i < n; ++i) {
      x[i] += alpha * ph[i] + omega * sh[i];                               // x = x + α p̂ + ω ŝ
      r[i] -= omega * t[i];                                                // r = s − ω t
    }
    const A2 next_rho = dot<T>(rh, r);                                     // ρ' = (r̂, r)
    const double rr = norm2<T>(r);
    if (const int verdict = judge.after(rr); verdict != RUNNING) return verdict;
    if (of_omega == A2(0) || vanishes(next_rho, shadow2, rr)) return BREAKDOWN;
    const T beta(quotient(next_rho, rho) * quotient(of_alpha, of_omega));  // β = (ρ'/ρ)(α/ω)
    rho = next_rho;
    for (int64_t i = 0; i < n; ++i) p[i] = r[i] + beta * (p[i] - omega * v[i]);      // p = r + β (p − ω v)
  }
}

// x = A⁻¹ b for each system.
template <class T>
void bicgstab(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
              Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
              Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
              Array<const T> shadow, int64_t size, int64_t columns, int64_t lanes, int64_t kind, int64_t block,
              int64_t held, int64_t guess, int64_t maxiter, double rtol, double atol, int64_t threads,
              int64_t shared) {
  const Batch<T> batch{indptr, indices, diagonal, values, b, x, record, columns, rtol, atol};
  solve_all(batch, kind, block, guess, maxiter, 5,
            [=](const System<T>& A, const Preconditioner<T>& M, Judge& judge, Table<T> v, int attempt) {
    const Array<const T> rh{shadow.data + attempt % (shadow.size / size) * size, size};
    return cycle(A, M, judge, rh, v[X], v[R], v[MORE], v[MORE + 1], v[MORE + 2], v[MORE + 3], v[MORE + 4]);
  });
}

}  // namespace

KERNELS("swell.batch.bicgstab", VALUES(bicgstab))
