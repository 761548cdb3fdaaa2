// When an iterate of the dense iterations has settled, and when an element of a diagonal is good: a NaN is neither.
#pragma once
#include "scalar.cuh"

template <class R> DEVICE R modulus(R a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }
template <class T> DEVICE bool settled(T now, T before, double tolerance) { return double(modulus(now - before)) <= tolerance; }
template <class T> DEVICE bool good(T l, double lower, double upper) {
  const double size = modulus(l);
  return lower < size && size <= upper;
}
