// Tests for breakdown, for both devices: is an inner product only rounding error?
#pragma once
#include "scalar.hpp"

constexpr double EPS = 0x1p-52;        // an inner product below it, relative to the norms, is noise

DEVICE double modulus(double a) { return fabs(a); }
DEVICE double modulus(complex<double> a) { return hypot(a.re, a.im); }

// a/b, or 0 where b = 0.
template <class A> DEVICE A quotient(A a, A b) { return b != A(0) ? a / b : A(0); }

// True if `product`, an inner product of vectors with squared norms a2 and b2, is only rounding error.
template <class A>
DEVICE bool vanishes(A product, double a2, double b2) { return modulus(product) <= EPS * sqrt(a2) * sqrt(b2); }

// A power of two near √a2, so that dividing by it is exact; 1 if a2 is zero, infinite or NaN.
DEVICE double magnitude(double a2) {
  if (!(a2 > 0 && isfinite(a2))) return 1;
  int exponent;
  frexp(a2, &exponent);
  return ldexp(1.0, exponent >> 1);
}
