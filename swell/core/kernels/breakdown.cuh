// Tests for breakdown: is an inner product only rounding error? breakdown.py is the CPU version.
#pragma once
#include "scalar.cuh"

constexpr double EPS = 0x1p-52;

DEVICE double modulus(double a) { return fabs(a); }
DEVICE double modulus(complex<double> a) { return hypot(a.re, a.im); }
template <class A> DEVICE A quotient(A a, A b) { return b != A(0) ? a / b : A(0); }
template <class A>
DEVICE bool vanishes(A product, double a2, double b2) { return modulus(product) <= EPS * sqrt(a2) * sqrt(b2); }
DEVICE double magnitude(double a2) {
  if (!(a2 > 0 && isfinite(a2))) return 1;
  int exponent;
  frexp(a2, &exponent);
  return ldexp(1.0, exponent >> 1);
}
