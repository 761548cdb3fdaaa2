// Preconditioned conjugate gradients for a batch, for both devices: a team solves a system (core/kernels/batch.hpp).
#include "batch.hpp"

namespace {

// Iterate from x with the residual r, until there is a verdict; return it. z lies in q, or is r without M.
template <class T>
DEVICE int cycle(Team& team, const System<T>& A, const Preconditioner<T>& M, Judge& judge, T* x, T* r, T* p, T* q) {
  const Index n = A.n;
  T* const z = M.kind == PLAIN ? r : q;
  auto [rho] = apply(team, A, M, r, z, real_dot(r, z));                    // z = M r;  ρ = (r, z)
  team.each(n, [=](Index i) { p[i] = z[i]; });                             // p = z
  for (;;) {
    const auto [sigma] = team.product(A, p, q, real_dot(p, q));            // q = A p;  σ = (p, q)
    if (!(sigma > 0) || !(rho > 0)) return isfinite(sigma) && isfinite(rho) ? INDEFINITE : NONFINITE;
    const real_t<T> alpha(rho / sigma);
    team.each(n, [=](Index i) {
      x[i] += alpha * p[i];                                                // x = x + α p
      r[i] -= alpha * q[i];                                                // r = r − α q
    });
    const auto [next_rho, rr] = apply(team, A, M, r, z, real_dot(r, z), norm2(r));     // z = M r;  ρ' = (r, z);  ‖r‖²
    if (const int verdict = judge.after(rr); verdict != RUNNING) return verdict;
    const real_t<T> beta(next_rho / rho);
    rho = next_rho;
    team.each(n, [=](Index i) { p[i] = z[i] + beta * p[i]; });             // p = z + (ρ'/ρ) p
  }
}

// x = A⁻¹ b for each system. The arguments up to `record`, and `columns` to `atol`: a `Batch`, with `size` unknowns.
// `held`, `threads`, `shared`: the launch on a GPU (placement.py).
// launch: a block of threads threads for each row of values, shared bytes shared
template <class T, int HELD>
KERNEL cg(Device device, Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
          Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
          Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
          int size, int columns, int lanes, int kind, int block, int held, int guess, int maxiter, double rtol,
          double atol, int threads, int shared) {
  const Batch<T> batch{indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record,
                       size, columns, lanes, kind, block, guess, maxiter, rtol, atol};
  each_system(device, values, [=](Team& team, int64_t s) {
    const System<T> A = system_of<HELD>(team, batch, s);
    const Preconditioner<T> M = prepare(team, batch, A);
    T *const x = team.take<T>(size), *const r = team.take<T>(size), *const p = team.take<T>(size),
      *const q = team.take<T>(size);
    solve(team, batch, s, A, M.exists, x, r, [&](Judge& judge, int) { return cycle(team, A, M, judge, x, r, p, q); });
  });
}

}  // namespace

KERNELS("swell.batch.cg", SYSTEMS(cg))
