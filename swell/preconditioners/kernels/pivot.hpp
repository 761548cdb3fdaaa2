// Pivots of incomplete LU factorisations on a CPU.
#pragma once
#include <math.h>

#include "../../core/native/lanes.hpp"

inline double modulus(double a) { return fabs(a); }
inline float modulus(float a) { return fabsf(a); }
inline double modulus(complex<double> a) { return hypot(a.re, a.im); }
inline float modulus(complex<float> a) { return hypotf(a.re, a.im); }

// True if the pivot is finite and larger in modulus than `tiny` × `scale`.
template <class T> bool is_good(T pivot, double scale, double tiny) {
  const double size = modulus(pivot);
  return tiny * scale < size && size < INFINITY;
}

// The replacement of a tiny pivot: `scale` × `replacement`, with the pivot's sign (or complex phase). 1 is the sign of
// a zero pivot. Infinite where the replacement underflows to zero, by which nothing can be divided.
template <class T> T replaced(T pivot, double scale, double replacement) {
  const real_t<T> size = modulus(pivot);
  const double wanted = scale * replacement;
  const T sign = size > 0 && size < INFINITY ? divided(pivot, size) : T(1);
  return T((wanted > 0 ? wanted : INFINITY) * acc_t<T>(sign));
}

// The bad pivots of some rows: the first such row, and their number.
struct Bad {
  int64_t first = INT64_MAX, count = 0;

  void add(int64_t row, int64_t pivots = 1) {
    if (pivots) first = std::min(first, row), count += pivots;
  }
  void add_to(Array<int64_t> bad) const { bad[0] = std::min(bad[0], first), bad[1] += count; }
};
