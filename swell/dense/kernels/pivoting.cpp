// The choice of a pivot and the swap of two rows, on a CPU; pivoting.cu is the GPU's version.
//
// `lu`: a matrix of n rows as a flat array; entry (i, j) is at `i row + j column`.
#include "../../core/native/launcher.hpp"
#include "matrix.hpp"

namespace {

// Set pivots[j] to the row of column j's pivot, or −1; see `choose_pivot`.
template <class T>
void pick_pivot(Array<const T> lu, int64_t row, int64_t column, int64_t j, double tolerance, int64_t n,
                Array<int32_t> pivots) {
  choose_pivot<T>({lu.data, row, column}, j, tolerance, n, pivots.data);
}

// Swap row j with its pivot's row pivots[j]; −1: no swap.
template <class T>
void swap_rows(Array<T> lu, int64_t row, int64_t column, int64_t j, int64_t n, Array<const int32_t> pivots) {
  swap_with_pivot<T>({lu.data, row, column}, j, n, pivots.data);
}

// Do the swaps `pivots` of each matrix in its row of `order`, in place; both have shape (matrices, n).
void reorder(Table<const int32_t> pivots, Table<int64_t> order) {
  for (int64_t m = 0; m < order.rows; ++m)
    for (int64_t j = 0; j < order.columns; ++j)
      if (const int64_t p = pivots[m][j]; p > j) std::swap(order[m][j], order[m][p]);
}

}  // namespace

KERNELS("swell.dense.pivoting", VALUES(pick_pivot), VALUES(swap_rows), PLAIN(reorder))
