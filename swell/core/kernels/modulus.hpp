// The modulus of a scalar by operations that a GPU rounds alike; see modulus.cuh.
#pragma once
#include <math.h>

#include <algorithm>

#include "scalar.hpp"

// |z|; it neither overflows nor underflows.
template <class R> R modulus(R z) { return fabs(z); }
template <class R> R modulus(complex<R> z) {
  if (z.im == 0) return fabs(z.re);
  const R largest = std::max(fabs(z.re), fabs(z.im)), a = z.re / largest, b = z.im / largest;
  return largest * sqrt(a * a + b * b);
}
