// Crout's method and Gaussian elimination on a CPU: sequential in a matrix, many matrices in parallel.
//
// `lu`: matrices of n rows as a flat array; entry (i, j) is at `i row + j column`; matrix k begins at k n². L and U
// overwrite it. `pivot`: true if rows are swapped; `tolerance`: choose a pivot where the diagonal element is at most
// this; pivots[j]: the row that row j was swapped with, −1 if none. `matrices` gives their number by its size only:
// size − 1.
#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"
#include "matrix.hpp"

namespace {

// Decompose a matrix by Crout's method: column j of L (1.11), its pivot (1.13), row j of U (1.12); stop at a zero
// pivot.
template <class T> void crout_one(DenseMatrix<T> m, bool pivot, double tolerance, int64_t n, int32_t* pivots) {
  for (int64_t j = 0; j < n; ++j) {
    complete(m.transposed(), j, 0, j, n);
    pivot_of_column(m, j, pivot, tolerance, n, pivots);
    const T diagonal = m(j, j);
    if (diagonal == T(0)) return;
    complete(m, j, 0, j + 1, n);
    for (int64_t i = j + 1; i < n; ++i) m(j, i) = m(j, i) / diagonal;
  }
}

// m(i, k) −= m(i, j) m(j, k) for i, k > j; the rows are contiguous.
template <class T> void subtract_step(DenseMatrix<T> m, int64_t j, int64_t n) {
  for (int64_t i = j + 1; i < n; ++i) {
    T* const row = &m(i, 0);
    const T factor = row[j], *const pivot = &m(j, 0);
#pragma GCC ivdep
    for (int64_t k = j + 1; k < n; ++k) row[k] -= factor * pivot[k];
  }
}

// Decompose a matrix by Gaussian elimination: subtract multiples of row j from the rows below it. Stop at a zero pivot.
template <class T> void eliminate_one(DenseMatrix<T> m, bool pivot, double tolerance, int64_t n, int32_t* pivots) {
  for (int64_t j = 0; j < n; ++j) {
    pivot_of_column(m, j, pivot, tolerance, n, pivots);
    const T diagonal = m(j, j);
    if (diagonal == T(0)) return;
    for (int64_t i = j + 1; i < n; ++i) m(i, j) = m(i, j) / diagonal;
    subtract_step(m.column == 1 ? m : m.transposed(), j, n);     // the update of the transposed matrix is the same
  }
}

// decompose(matrix, its pivots) for all matrices.
template <class T, class F>
void each_matrix(Array<T> lu, int64_t row, int64_t column, int64_t n, Array<int32_t> pivots, int64_t count,
                 const F& decompose) {
  ranges(count, lu.size, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      decompose(DenseMatrix<T>{lu.data + k * n * n, row, column}, pivots.data + k * n);
  });
}

// Decompose all matrices in place by Crout's method.
template <class T>
void crout(Array<T> lu, int64_t row, int64_t column, bool pivot, double tolerance, int64_t n, Array<int32_t> pivots,
           Array<const int32_t> matrices) {
  each_matrix(lu, row, column, n, pivots, matrices.size - 1, [=](DenseMatrix<T> m, int32_t* own) {
    crout_one(m, pivot, tolerance, n, own);
  });
}

// Decompose all matrices in place by Gaussian elimination. The multipliers are L, which has the unit diagonal.
template <class T>
void eliminate(Array<T> lu, int64_t row, int64_t column, bool pivot, double tolerance, int64_t n,
               Array<int32_t> pivots, Array<const int32_t> matrices) {
  each_matrix(lu, row, column, n, pivots, matrices.size - 1, [=](DenseMatrix<T> m, int32_t* own) {
    eliminate_one(m, pivot, tolerance, n, own);
  });
}

}  // namespace

KERNELS("swell.dense.crout", VALUES(crout), VALUES(eliminate))
