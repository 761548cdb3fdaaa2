// Restarted GMRES(m), preconditioned on the right, for a batch, on a CPU; gmres.cu is the GPU's version.
//
// Arguments as in cg.cpp, and `restart`: m. Classical Gram–Schmidt is done twice.
#include "slots/swell/batch/gmres.hpp"

#include "../../core/native/launcher.hpp"
#include "system.hpp"

namespace {

constexpr double USELESS = 64;         // times eps: the new part of a column of R, relative to the rest: rounding

// h[i] = (V_i, w) for i <= j; then w −= V h, and total[i] += h[i].
template <class T> void orthogonalise(Table<const T> V, Array<T> w, acc_t<T>* h, acc_t<T>* total, int64_t j) {
  std::fill(h, h + j + 1, acc_t<T>(0));
  add_row_products<false>(V, 0, j + 1, 0, w.size, w.data, w.data, h, h);
  for (int64_t i = 0; i <= j; ++i) {
    const T scale(h[i]), *const v = V[i].data;
    for (int64_t k = 0; k < w.size; ++k) w[k] -= scale * v[k];
    total[i] += h[i];
  }
}

// Iterate from x with the residual V[0]; return a verdict, RUNNING after m steps.
template <class T>
int cycle(const System<T>& A, const Preconditioner<T>& M, Judge& judge, Array<T> x, Table<T> V, Array<T> w,
          Array<T> z) {
  using A2 = acc_t<T>;
  using R = real_t<T>;
  const int64_t m = V.rows - 1, n = x.size;
  const double epsilon = epsilon_of(T());
  std::vector<A2> small((m + 1) * (m + 4));
  std::vector<double> cosine(m);
  const Table<A2> H{small.data(), m + 1, m + 1, m + 1};                    // the last row is not used
  A2 *const g = small.data() + (m + 1) * (m + 1), *const h = g + m + 1, *const sine = h + m + 1;
  const double beta = sqrt(norm2<T>(V[0]));
  for (int64_t i = 0; i < n; ++i) V[0][i] = R(1 / beta) * V[0][i];         // v₁ = r/‖r‖
  g[0] = A2(beta);                                                         // g = ‖r‖ e₁
  int64_t j = 0;
  int found = RUNNING;
  while (j < m && found == RUNNING) {
    const Array<T> next = V[j + 1];
    A2* const column = H[j].data;
    std::fill(column, column + m + 1, A2(0));
    M.apply(A, V[j], z);                                                   // z = M v_j
    product<T>(A, z, next);                                                // w = A z
    const double before = sqrt(norm2<T>(next));
    orthogonalise<T>(V, next, h, column, j);                               // w = w − V Vᴴ w, twice
    orthogonalise<T>(V, next, h, column, j);
    double length = sqrt(norm2<T>(next));
    const bool ended = !(length > epsilon * before);                       // the space is invariant
    if (ended) length = 0;
    else for (int64_t i = 0; i < n; ++i) next[i] = R(1 / length) * next[i];
    double earlier = 0;
    for (int64_t i = 0; i < j; ++i) {                                      // Givens rotations of the new column
      const A2 up = column[i], down = column[i + 1];
      column[i] = cosine[i] * up + sine[i] * down;
      column[i + 1] = cosine[i] * down - conj(sine[i]) * up;
      earlier += square(column[i]);
    }
    const double d = size(column[j]), both = hypot(d, length);
    if (!isfinite(before)) {
      ++judge.done;
      return NONFINITE;
    }
    if (j > 0 && both <= USELESS * epsilon * sqrt(earlier)) {              // only rounding is new in this column
      found = BREAKDOWN;
      break;
    }
    const A2 phase = d > 0 ? divided(column[j], d) : A2(1);
    cosine[j] = both > 0 ? d / both : 0;                                   // a zero column reduces nothing
    sine[j] = both > 0 ? phase * (length / both) : phase;
    column[j] = phase * both;
    g[j + 1] = -conj(sine[j]) * g[j];
    g[j] = cosine[j] * g[j];
    found = judge.after(square(g[j + 1]));
    ++j;
    if (ended && found == RUNNING) found = BREAKDOWN;
  }
  for (int64_t i = j; i--;) {                                              // R y = g
    A2 total = g[i];
    for (int64_t k = i + 1; k < j; ++k) total -= H[k][i] * h[k];
    h[i] = H[i][i] != A2(0) ? total / H[i][i] : 0.0 * total;
  }
  std::fill(w.data, w.data + n, T(0));
  for (int64_t i = 0; i < j; ++i) {
    const T y(h[i]), *const v = V[i].data;
    for (int64_t k = 0; k < n; ++k) w[k] += y * v[k];                      // w = V y
  }
  M.apply(A, w, z);
  for (int64_t k = 0; k < n; ++k) x[k] += z[k];                            // x = x + M V y
  return found;
}

// x = A⁻¹ b for each system.
template <class T>
void gmres(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
           Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
           Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
           int64_t size, int64_t columns, int64_t lanes, int64_t kind, int64_t block, int64_t held, int64_t guess,
           int64_t maxiter, double rtol, double atol, int64_t restart, int64_t threads, int64_t shared) {
  const Batch<T> batch{indptr, indices, diagonal, values, b, x, record, columns, rtol, atol};
  // r is the first basis vector, not yet scaled.
  solve_all(batch, kind, block, guess, maxiter, restart + 2,
            [=](const System<T>& A, const Preconditioner<T>& M, Judge& judge, Table<T> v, int attempt) {
    return cycle(A, M, judge, v[X], Table<T>{v[R].data, restart + 1, size, size}, v[MORE + restart],
                 v[MORE + restart + 1]);
  });
}

}  // namespace

KERNELS("swell.batch.gmres", VALUES(gmres))
