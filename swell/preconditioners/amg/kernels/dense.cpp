// The dense inverse of the coarsest level on a CPU; see coarsest.py one folder up.
#include <algorithm>

#include "../../../core/native/launcher.hpp"

namespace {

// dense = D A D as a full matrix, row after row, with D = diag(scales).
template <class T, class I>
void scatter(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const double> scales,
             Array<T> dense) {
  const int64_t n = scales.size;
  for (int64_t i = 0; i < n; ++i) {
    const Array<T> row = dense.from(i * n);
    std::fill(row.data, row.data + n, T(0));
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) row[indices[k]] = scales[i] * data[k] * scales[indices[k]];
  }
}

// Invert a symmetric row-major matrix in place, by symmetric sweeps: one for each pivot, without exchanges. Row and
// column k become zero if pivot k is at most `singular` times the original diagonal entry. worst[0] = the least such
// ratio, 1 at most. Work arrays: `pivots` and `rows`, n numbers each (a GPU needs more); `record` is a GPU's.
void invert(Array<double> matrix, Array<double> pivots, Array<double> rows, double singular, Array<double> worst,
            Array<const int64_t> record) {
  const int64_t n = pivots.size;
  double least = 1;
  for (int64_t k = 0; k < n; ++k) pivots[k] = matrix[k * n + k];
  for (int64_t k = 0; k < n; ++k) {
    std::copy(matrix.data + k * n, matrix.data + k * n + n, rows.data);
    const double pivot = rows[k], ratio = pivots[k] > 0 ? pivot / pivots[k] : std::min(pivot, 0.0);
    least = std::min(least, ratio);
    const double inverse = ratio > singular ? 1 / pivot : 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const Array<double> own = matrix.from(i * n);
      const double factor = rows[i];
      if (i == k) {
        for (int64_t j = 0; j < n; ++j) own[j] = rows[j] * inverse;
        own[k] = -inverse;
      } else if (inverse == 0) {
        own[k] = 0;
      } else {
        for (int64_t j = 0; j < n; ++j) own[j] -= factor * rows[j] * inverse;  // symmetric to the bit
        own[k] = factor * inverse;
      }
    }
  }
  for (int64_t i = 0; i < n * n; ++i) matrix[i] = -matrix[i];
  worst[0] = least;
}

}  // namespace

KERNELS("swell.preconditioners.amg.dense", INSTANCE(scatter, double, int32_t),
        INSTANCE(scatter, double, int64_t), INSTANCE(scatter, complex<double>, int32_t),
        INSTANCE(scatter, complex<double>, int64_t), PLAIN(invert))
