// A dense matrix during its decomposition, and the sums of Crout's method. All sums are in the order of their terms, so
// that both memory orders give the same bits.
#pragma once
#include <algorithm>
#include <utility>

#include "../../core/kernels/scalar.hpp"
#include "../../core/kernels/array.hpp"
#include "../../formats/kernels/rows.hpp"

// A matrix; entry (i, j) is at i row + j column, where one of the two is 1.
template <class T> struct DenseMatrix {
  T* data;
  int64_t row, column;

  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
  DenseMatrix from(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
  DenseMatrix transposed() const { return {data, column, row}; }
  operator DenseMatrix<const T>() const { return {data, row, column}; }
};

// m(j, t) −= Σ m(j, k) m(k, t) over k from `first` to j − 1, for N columns from t on.
template <int N, class T> inline void complete_columns(DenseMatrix<T> m, int64_t j, int64_t first, int64_t t) {
  T sums[N] = {};
  for (int64_t k = first; k < j; ++k) {
    const T l = m(j, k);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) sums[r] += l * m(k, t + r);
  }
  for (int r = 0; r < N; ++r) m(j, t + r) -= sums[r];
}

// The same for the columns from `begin` to `end`: the part of row j that earlier steps contribute. In the transposed
// matrix it is that part of a column. Without contiguous rows, several sums at once overlap.
template <class T> void complete(DenseMatrix<T> m, int64_t j, int64_t first, int64_t begin, int64_t end) {
  constexpr int64_t WIDTH = 128, AT_ONCE = 8 / scalar<T>::parts;
  if (m.column != 1) {
    for (; begin + AT_ONCE <= end; begin += AT_ONCE) complete_columns<AT_ONCE>(m, j, first, begin);
    for (; begin < end; ++begin) complete_columns<1>(m, j, first, begin);
    return;
  }
  T sums[WIDTH];
  for (; begin < end; begin += WIDTH) {
    const int64_t count = std::min(WIDTH, end - begin);
    std::fill(sums, sums + count, T(0));
    for (int64_t k = first; k < j; ++k) {
      const T l = m(j, k), *const u = &m(k, begin);
#pragma GCC ivdep
      for (int64_t t = 0; t < count; ++t) sums[t] += l * u[t];
    }
    T* const out = &m(j, begin);
    for (int64_t t = 0; t < count; ++t) out[t] -= sums[t];
  }
}

// Set pivots[j] to the first row with the largest |m(i, j)|, i >= j (1.13); to −1 if |m(j, j)| is above `tolerance`. A
// NaN counts as infinity.
template <class T>
void choose_pivot(DenseMatrix<const T> m, int64_t j, double tolerance, int64_t n, int32_t* pivots) {
  double largest = -1;
  int64_t chosen = -1;
  if (!(size(m(j, j)) > tolerance))
    for (int64_t i = j; i < n; ++i) {
      double of_i = size(m(i, j));
      if (!(of_i >= 0)) of_i = INFINITY;
      if (of_i > largest) largest = of_i, chosen = i;
    }
  pivots[j] = int32_t(chosen);
}

// Swap row j with its pivot's row pivots[j]; −1: no swap.
template <class T> void swap_with_pivot(DenseMatrix<T> m, int64_t j, int64_t n, const int32_t* pivots) {
  const int64_t p = pivots[j];
  if (p > j) for (int64_t k = 0; k < n; ++k) std::swap(m(j, k), m(p, k));
}

// If `pivot`, choose the pivot of column j and swap rows.
template <class T>
void pivot_of_column(DenseMatrix<T> m, int64_t j, bool pivot, double tolerance, int64_t n, int32_t* pivots) {
  if (!pivot) return;
  choose_pivot<T>(m, j, tolerance, n, pivots);
  swap_with_pivot(m, j, n, pivots);
}
