// BiCGSTAB, preconditioned on the right, for a batch, for both devices: a team solves a system (batch.hpp).
#include "batch.hpp"
#include "breakdown.hpp"

namespace {

// Iterate from x with the residual r, until there is a verdict; return it. s is in r; p̂ is p, and ŝ is s, without M.
template <class T>
DEVICE int cycle(Team& team, const System<T>& A, const Preconditioner<T>& M, Judge& judge, const T* rh, T* x, T* r,
                 T* p, T* v, T* t, T* ph, T* sh) {
  const Index n = A.n;
  auto [rho, rr, shadow2] = team.each(n, [=](Index i) { p[i] = r[i]; },    // p = r
                                      dot(rh, r), norm2(r), norm2(rh));    // ρ = (r̂, r);  ‖r‖²;  ‖r̂‖²
  if (vanishes(rho, shadow2, rr)) return BREAKDOWN;
  for (;;) {
    apply(team, A, M, p, ph);                                              // p̂ = M p
    const auto [gamma, vv] = team.product(A, ph, v, dot(rh, v), norm2(v)); // v = A p̂;  γ = (r̂, v);  ‖v‖²
    if (!isfinite(vv)) return NONFINITE;
    if (vanishes(gamma, shadow2, vv)) return BREAKDOWN;
    const acc_t<T> of_alpha = quotient(rho, gamma);
    const T alpha(of_alpha);
    team.each(n, [=](Index i) { r[i] -= alpha * v[i]; });                  // s = r − α v
    apply(team, A, M, r, sh);                                              // ŝ = M s
    const auto [ts, tt] = team.product(A, sh, t, dot(t, r), norm2(t));     // t = A ŝ;  (t, s);  ‖t‖²
    const acc_t<T> of_omega = quotient(ts, acc_t<T>(tt));                  // ω = (t, s)/(t, t)
    const T omega(of_omega);
    const auto [next_rho, next_rr] = team.each(n, [=](Index i) {
      x[i] += alpha * ph[i] + omega * sh[i];                               // x = x + α p̂ + ω ŝ
      r[i] -= omega * t[i];                                                // r = s − ω t
    }, dot(rh, r), norm2(r));                                              // ρ' = (r̂, r);  ‖r‖²
    if (const int verdict = judge.after(next_rr); verdict != RUNNING) return verdict;
    if (of_omega == acc_t<T>(0) || vanishes(next_rho, shadow2, next_rr)) return BREAKDOWN;
    const T beta(quotient(next_rho, rho) * quotient(of_alpha, of_omega));  // β = (ρ'/ρ)(α/ω)
    rho = next_rho;
    team.each(n, [=](Index i) { p[i] = r[i] + beta * (p[i] - omega * v[i]); });        // p = r + β (p − ω v)
  }
}

// x = A⁻¹ b for each system. Arguments as in cg.hpp, and `shadow`: shadow vectors r̂, one after the other, one for each
// attempt in turn.
// launch: a block of threads threads for each row of values, shared bytes shared
template <class T, int HELD>
KERNEL bicgstab(Device device, Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
                Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
                Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
                Array<const T> shadow, int size, int columns, int lanes, int kind, int block, int held, int guess,
                int maxiter, double rtol, double atol, int threads, int shared) {
  const Batch<T> batch{indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record,
                       size, columns, lanes, kind, block, guess, maxiter, rtol, atol};
  each_system(device, values, [=](Team& team, int64_t s) {
    const System<T> A = system_of<HELD>(team, batch, s);
    const Preconditioner<T> M = prepare(team, batch, A);
    T *const x = team.take<T>(size), *const r = team.take<T>(size), *const p = team.take<T>(size),
      *const v = team.take<T>(size), *const t = team.take<T>(size);
    T *const ph = kind == PLAIN ? p : team.take<T>(size), *const sh = kind == PLAIN ? r : team.take<T>(size);
    solve(team, batch, s, A, M.exists, x, r, [&](Judge& judge, int attempt) {
      const T* rh = shadow.data + attempt % int(shadow.size / size) * size;
      return cycle(team, A, M, judge, rh, x, r, p, v, t, ph, sh);
    });
  });
}

}  // namespace

KERNELS("swell.batch.bicgstab", SYSTEMS(bicgstab))
