// Pivots of incomplete factorisations, for both devices: which are bad, what replaces them, and the record of them.
#pragma once
#include "breakdown.hpp"

DEVICE float modulus(float a) { return fabsf(a); }
DEVICE float modulus(complex<float> a) { return hypotf(a.re, a.im); }

// True if the pivot is finite and larger in modulus than `tiny` × `scale`.
template <class T> DEVICE bool is_good(T pivot, double scale, double tiny) {
  const double size = modulus(pivot);
  return tiny * scale < size && isfinite(size);
}

// The replacement of a tiny pivot: `scale` × `replacement`, with the pivot's sign (or complex phase). 1 is the sign of
// a zero pivot. Infinite where the replacement underflows to zero, by which nothing can be divided.
template <class T> DEVICE T replaced(T pivot, double scale, double replacement) {
  const real_t<T> size = modulus(pivot);
  const double wanted = scale * replacement;
  const T sign = size > 0 && isfinite(size) ? divided(pivot, size) : T(1);
  return T((wanted > 0 ? wanted : 1 / fabs(wanted)) * acc_t<T>(sign));
}

// Record a bad pivot of `row`: bad[0] is the first such row, bad[1] their number. Other threads may record theirs.
DEVICE void record(int64_t* bad, int64_t row) {
#ifdef __CUDACC__
  atomicMin(bad, row);
  atomicAdd((unsigned long long*)(bad + 1), 1ull);
#else
  for (int64_t held = __atomic_load_n(bad, __ATOMIC_RELAXED); held > row;)
    if (__atomic_compare_exchange_n(bad, &held, row, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
  __atomic_fetch_add(bad + 1, 1, __ATOMIC_RELAXED);
#endif
}
