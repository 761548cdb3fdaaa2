// Tests of the dense iterations: has an iterate settled, and is a diagonal element usable (good)? A NaN is neither.
#pragma once
#include "scalar.cuh"

template <class R> DEVICE R modulus(R a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }
template <class T>
DEVICE bool settled(T now, T before, double tolerance) { return double(modulus(now - before)) <= tolerance; }
template <class T> DEVICE bool good(T l, double lower, double upper) {
  const double size = modulus(l);
  return lower < size && size <= upper;
}
