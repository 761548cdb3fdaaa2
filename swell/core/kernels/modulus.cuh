// Real part, imaginary part and modulus of a scalar in double precision, by operations that a CPU rounds alike.
#pragma once
#include "scalar.cuh"

DEVICE double real_of(double a) { return a; }
DEVICE double real_of(float a) { return a; }
template <class R> DEVICE double real_of(complex<R> a) { return a.re; }
DEVICE double imaginary_of(double) { return 0; }
DEVICE double imaginary_of(float) { return 0; }
template <class R> DEVICE double imaginary_of(complex<R> a) { return a.im; }

// |a + i b|; it neither overflows nor underflows.
DEVICE double modulus(double a, double b) {
  if (b == 0) return fabs(a);
  const double largest = fmax(fabs(a), fabs(b));
  a /= largest, b /= largest;
  return largest * sqrt(__dadd_rn(__dmul_rn(a, a), __dmul_rn(b, b)));
}
template <class T> DEVICE double modulus(T z) { return modulus(real_of(z), imaginary_of(z)); }
