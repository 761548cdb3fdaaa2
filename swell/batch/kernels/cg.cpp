// Preconditioned conjugate gradients for a batch, on a CPU: a thread solves a system; cg.cu is the GPU's version.
//
// `indptr`, `indices`, `diagonal`, `values`, `b`, `x`, `record`, `columns`: a Batch of system.hpp. `kind`, `block`: its
// preconditioner. `ell`: the columns of the first entries of all rows, then of the second, …; `lower`, `upper`,
// `order`: ILU(0)'s levels; `lanes`, `held`, `threads`, `shared`: the launch (placement.py); all these on a GPU only.
#include "slots/swell/batch/cg.hpp"

#include "../../core/native/launcher.hpp"
#include "system.hpp"

namespace {

// Iterate from x with the residual r, until there is a verdict; return it.
template <class T>
int cycle(const System<T>& A, const Preconditioner<T>& M, Judge& judge, Array<T> x, Array<T> r, Array<T> p, Array<T> q,
          Array<T> z) {
  using R = real_t<T>;
  const int64_t n = r.size;
  M.apply(A, r, z);                                                        // z = M r
  std::copy(z.data, z.data + n, p.data);                                   // p = z
  double rho = real_dot<T>(r, z);                                          // ρ = (r, z)
  for (;;) {
    product<T>(A, p, q);                                                   // q = A p
    const double sigma = real_dot<T>(p, q);                                // σ = (p, q)
    if (!(sigma > 0) || !(rho > 0)) return isfinite(sigma) && isfinite(rho) ? INDEFINITE : NONFINITE;
    const R alpha = R(rho / sigma);
    for (int64_t i = 0; i < n; ++i) {
      x[i] += alpha * p[i];                                                // x = x + α p
      r[i] -= alpha * q[i];                                                // r = r − α q
    }
    M.apply(A, r, z);                                                      // z = M r
    const double next_rho = real_dot<T>(r, z);                             // ρ' = (r, z)
    if (const int verdict = judge.after(norm2<T>(r)); verdict != RUNNING) return verdict;
    const R beta = R(next_rho / rho);
    rho = next_rho;
    for (int64_t i = 0; i < n; ++i) p[i] = z[i] + beta * p[i];             // p = z + (ρ'/ρ) p
  }
}

// x = A⁻¹ b for each system.
template <class T>
void cg(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
        Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
        Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
        int64_t size, int64_t columns, int64_t lanes, int64_t kind, int64_t block, int64_t held, int64_t guess,
        int64_t maxiter, double rtol, double atol, int64_t threads, int64_t shared) {
  const Batch<T> batch{indptr, indices, diagonal, values, b, x, record, columns, rtol, atol};
  solve_all(batch, kind, block, guess, maxiter, 3,
            [](const System<T>& A, const Preconditioner<T>& M, Judge& judge, Table<T> v, int attempt) {
    return cycle(A, M, judge, v[X], v[R], v[MORE], v[MORE + 1], v[MORE + 2]);
  });
}

}  // namespace

KERNELS("swell.batch.cg", VALUES(cg))
