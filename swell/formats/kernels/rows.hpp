// Entries of a CSR row: where a column is, and sizes of values.
#pragma once
#include "../../core/kernels/scalar.hpp"
#include "../../core/kernels/array.hpp"

// |a| in the precision of a.
inline float size(float a) { return fabsf(a); }
inline double size(double a) { return fabs(a); }
inline float size(complex<float> a) { return hypotf(a.re, a.im); }
inline double size(complex<double> a) { return hypot(a.re, a.im); }

// The index of `column` in the ascending indices from `first` to last − 1, by bisection; `last` if missing.
template <class I> int64_t place_of(Array<const I> indices, int64_t first, int64_t last, int64_t column) {
  const int64_t end = last;
  while (first < last) {
    const int64_t middle = (first + last) / 2;
    const bool before = indices[middle] < column;
    first = before ? middle + 1 : first, last = before ? last : middle;      // without a branch, which would be guessed
  }
  return first < end && indices[first] == column ? first : end;
}
