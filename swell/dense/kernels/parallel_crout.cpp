// Crout's method with elements in parallel, a column and a row or a front at a time, on a CPU; parallel_crout.cu is the
// GPU's version. The functions for fronts handle many matrices, which are n² elements apart.
//
// `lu`: matrices of n rows as a flat array; entry (i, j) is at `i row + j column`. L and U overwrite it. `first`: the
// steps before it have been subtracted. A front has the `size` rows and columns from `first` on. `pivot`, `tolerance`,
// `pivots`: as in crout.cpp. `tiles` and `blocks` give a number by their size only: size − 1. `x`: rows or columns of a
// tile on a GPU; `shared`, `cluster`, and in most kernels `threads`: the launch there.
#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"
#include "matrix.hpp"

namespace {

// Compute u[j, i] for `left` <= i < `end`. If l[j, j] = 0 it does not divide; the decomposition fails later.
template <class T> void complete_row(DenseMatrix<T> m, int64_t j, int64_t first, int64_t left, int64_t end) {
  complete(m, j, first, left, end);
  const T diagonal = m(j, j);
  if (diagonal != T(0)) for (int64_t i = left; i < end; ++i) m(j, i) = m(j, i) / diagonal;
}

// Compute l[i, j] for i >= j (1.11), in place.
template <class T>
void column_step(Array<T> lu, int64_t row, int64_t column, int64_t j, int64_t first, int64_t x, int64_t threads,
                 int64_t n, Array<const int32_t> tiles) {
  const DenseMatrix<T> m{lu.data, row, column};
  ranges(n - j, (n - j) * (j - first + 1), [=](int64_t begin, int64_t end) {
    complete(m.transposed(), j, first, j + begin, j + end);
  });
}

// Compute u[j, i] for `left` <= i < n (1.12), in place.
template <class T>
void row_step(Array<T> lu, int64_t row, int64_t column, int64_t j, int64_t first, int64_t left, int64_t x,
              int64_t threads, int64_t n, Array<const int32_t> tiles) {
  const DenseMatrix<T> m{lu.data, row, column};
  ranges(n - left, (n - left) * (j - first + 1), [=](int64_t begin, int64_t end) {
    complete_row(m, j, first, left + begin, left + end);
  });
}

// Complete columns `first` to `first + size` of L, and the front's diagonal block of U, with pivots, in all matrices.
template <class T>
void front(Array<T> lu, int64_t row, int64_t column, int64_t first, int64_t size, bool pivot, int64_t x,
           int64_t threads, int64_t shared, int64_t cluster, double tolerance, int64_t n, Array<int32_t> pivots,
           Array<const int32_t> blocks) {
  const int64_t count = (blocks.size - 1) / cluster;
  ranges(count, count * n * size, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const DenseMatrix<T> m{lu.data + k * n * n, row, column};
      for (int64_t j = first; j < first + size; ++j) {
        complete(m.transposed(), j, first, j, n);
        pivot_of_column(m, j, pivot, tolerance, n, pivots.data + k * n);
        complete_row(m, j, first, j + 1, first + size);
      }
    }
  });
}

// Complete the front's rows of U, columns `left` to `end`, in place, `threads` columns a tile. `tiles` counts the tiles
// of all matrices, one matrix after the other.
template <class T>
void beside(Array<T> lu, int64_t row, int64_t column, int64_t first, int64_t size, int64_t left, int64_t end,
            int64_t x, int64_t threads, int64_t n, Array<const int32_t> tiles) {
  const int64_t across = (end - left + threads - 1) / threads, count = tiles.size - 1;
  ranges(count, count * threads * size, [=](int64_t from, int64_t to) {
    for (int64_t tile = from; tile < to; ++tile) {
      const DenseMatrix<T> m{lu.data + tile / across * n * n, row, column};
      const int64_t begin = left + tile % across * threads;
      for (int64_t i = first; i < first + size; ++i)
        complete_row(m, i, first, begin, std::min(begin + threads, end));
    }
  });
}

}  // namespace

KERNELS("swell.dense.parallel_crout", VALUES(column_step), VALUES(row_step), VALUES(front), VALUES(beside))
