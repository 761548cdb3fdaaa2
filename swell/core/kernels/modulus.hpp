// Real part, imaginary part and modulus of a scalar, by operations that both devices round alike; modulus.cuh is for
// GPUs.
#pragma once
#ifdef __CUDACC__
#include "modulus.cuh"
#else
#include <math.h>

#include <algorithm>

#include "scalar.hpp"

template <class R> R real_of(complex<R> z) { return z.re; }
template <class R> R imaginary_of(complex<R> z) { return z.im; }

// |re + i im|; it neither overflows nor underflows.
template <class R> R modulus(R re, R im) {
  if (im == 0) return fabs(re);
  const R largest = std::max(fabs(re), fabs(im)), a = re / largest, b = im / largest;
  return largest * sqrt(a * a + b * b);
}
template <class R> R modulus(R z) { return fabs(z); }
template <class R> R modulus(complex<R> z) { return modulus(z.re, z.im); }
#endif
