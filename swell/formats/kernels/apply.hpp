// The products of a matrix in any layout, threads sharing its units: slices, tiles or block rows.
//
// A layout A has units(), their number, and multiply(x, n, first, last, put), which calls put(row, value) for the
// products of A with x in the rows of units `first` to `last` − 1; A has n rows in all.
#pragma once
#include "../../core/native/lanes.hpp"
#include "sums.hpp"

// y = alpha A x + beta y; beta = 0 never reads y.
template <class A, class T> void apply(const A& matrix, Array<const T> x, Array<T> y, T alpha, T beta) {
  ranges(matrix.units(), y.size, [=](int64_t first, int64_t last) {
    matrix.multiply(x, y.size, first, last, [=](int64_t row, T value) {
      y[row] = beta == T(0) ? alpha * value : alpha * value + beta * y[row];
    });
  });
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class A, class T>
void apply_dots(const A& matrix, Array<const T> x, Array<T> y, Array<const T> w, Array<acc_t<T>> dots) {
  const auto [wy, yy] = in_order<acc_t<T>, double>(y.size, matrix.units(), [=](int64_t first, int64_t last) {
    acc_t<T> wy(0);
    double yy = 0;
    matrix.multiply(x, y.size, first, last, [&](int64_t row, T value) {
      y[row] = value;
      wy += conj_product(w[row], value);
      yy += square(value);
    });
    return std::tuple(wy, yy);
  });
  dots[0] = wy, dots[1] = acc_t<T>(yy);
}
