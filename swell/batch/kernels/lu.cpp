// Dense LU with partial pivoting for a batch, on a CPU; lu.cu is the GPU's version, which has a second kernel.
//
// Arguments as in cg.hpp; `places`: row · 2¹⁶ + column of each entry, on a GPU only. The iterations of the record are
// 1, or 2 where the solution was refined.
#include "slots/swell/batch/lu.hpp"

#include "batch.hpp"

namespace {

// P A = L U in place in D, with the inverse of U's diagonal; source[j]: the row swapped with row j. False if a pivot
// vanishes.
template <class T> bool factor(Table<T> D, int64_t* source) {
  const int64_t n = D.rows;
  for (int64_t j = 0; j < n; ++j) {
    int64_t p = j;
    real_t<T> most = size(D[j][j]);
    for (int64_t i = j + 1; i < n; ++i)
      if (const real_t<T> of_i = size(D[i][j]); of_i > most) p = i, most = of_i;
    source[j] = p;
    if (D[p][j] == T(0)) return false;
    T *const pivot = D[j].data;
    std::swap_ranges(pivot, pivot + (p == j ? 0 : n), D[p].data);
    pivot[j] = T(1) / pivot[j];
    for (int64_t i = j + 1; i < n; ++i) {
      T* const row = D[i].data;
      const T scale = row[j] = row[j] * pivot[j];
      for (int64_t k = j + 1; k < n; ++k) row[k] -= scale * pivot[k];
    }
  }
  return true;
}

// y = U⁻¹ L⁻¹ P y.
template <class T> void substitute(Table<const T> D, const int64_t* source, Array<T> y) {
  for (int64_t j = 0; j < y.size; ++j) std::swap(y[j], y[source[j]]);
  for (int64_t i = 0; i < y.size; ++i) {                           // L z = P y
    T total = y[i];
    for (int64_t k = 0; k < i; ++k) total -= D[i][k] * y[k];
    y[i] = total;
  }
  for (int64_t i = y.size; i--;) {                                 // U x = z
    T total = y[i];
    for (int64_t k = i + 1; k < y.size; ++k) total -= D[i][k] * y[k];
    y[i] = total * D[i][i];
  }
}

// x = A⁻¹ b for each system.
template <class T>
void lu(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
        Array<const int32_t> diagonal, Array<const uint32_t> places, Table<const T> values, Table<const T> b,
        Table<T> x, Table<double> record, int64_t size, int64_t columns, int64_t lanes, double rtol, double atol,
        int64_t threads, int64_t shared) {
  ranges(values.rows, values.rows * values.columns, [=](int64_t begin, int64_t end) {
    const int64_t n = size;
    Team team;
    std::vector<T> held((n + 3) * n);
    std::vector<int64_t> source(n);
    const Table<T> D{held.data(), n, n, n}, v{held.data() + n * n, 3, n, n};
    const Array<T> xs = v[0], better = v[1], r = v[2];
    for (int64_t s = begin; s < end; ++s) {
      const System<T> A{indptr.data, indices.data, diagonal.data, ell.data, values[s].data, int(n), 1};
      std::fill(D.data, D.data + n * n, T(0));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) D[i][indices[k]] = A.a[k];
      const bool found = factor(D, source.data());
      for (int64_t c = 0; c < columns; ++c) {
        const Column<const T> of_b{b[s].data + c, int(columns)};
        for (int64_t i = 0; i < n; ++i) xs[i] = T(0), r[i] = of_b[i];
        Norms now{};
        double threshold = 0;
        int64_t done = 0;
        for (int attempt = 0; attempt < 2; ++attempt) {            // the second one refines
          if (found) substitute<T>(D, source.data(), r);
          for (int64_t i = 0; i < n; ++i) better[i] = found ? xs[i] + r[i] : xs[i];
          Norms then = true_residual(team, A, of_b, better.data, r.data, false);
          threshold = fmax(rtol * then.rhs, atol);
          then = confirmed(team, A, of_b, better.data, r.data, then, threshold);
          if (attempt == 0 || then.norm < now.norm) {
            now = then, done = attempt + 1;
            std::copy(better.data, better.data + n, xs.data);
          }
          if (!found || !isfinite(then.norm) || then.norm <= threshold) break;
        }
        const int code = judged(found ? int(CONVERGED) : int(SINGULAR), now, threshold, epsilon_of(T()));
        for (int64_t i = 0; i < n; ++i) x[s][i * columns + c] = xs[i];
        leave(team, record[s].data + c * PLACES, now, int(done), code);
      }
    }
  });
}

// The verdict of the batch kernels on a residual norm, for tests.
int64_t verdict(int64_t reason, double norm, double rhs, double terms, double threshold, double epsilon) {
  return judged(int(reason), Norms{norm, rhs, 0.0, terms}, threshold, epsilon);
}

}  // namespace

KERNELS("swell.batch.lu", VALUES(lu), PLAIN(verdict))
