// Scalars of both devices: swell's own complex types, and their arithmetic. A GPU includes it by scalar.cuh, which
// defines DEVICE and ALIGNED first.
#pragma once
#ifndef DEVICE
#include <math.h>
#include <stdint.h>
#define DEVICE inline
#define INLINE __attribute__((always_inline)) inline
#define ALIGNED(bytes)        // NumPy's complex arrays are aligned to their parts only
#endif

template <class R> struct ALIGNED(2 * sizeof(R)) complex {
  R re, im;
  complex() = default;
  DEVICE constexpr complex(R re, R im = R(0)) : re(re), im(im) {}
  template <class S> DEVICE explicit constexpr complex(complex<S> z) : re(R(z.re)), im(R(z.im)) {}
};

// sums of float are double
template <class T> struct scalar { using real = T; using acc = double; static constexpr int parts = 1; };
template <class R>
struct scalar<complex<R>> { using real = R; using acc = complex<double>; static constexpr int parts = 2; };
template <class T> using real_t = typename scalar<T>::real;
template <class T> using acc_t = typename scalar<T>::acc;

template <class R> DEVICE complex<R> operator+(complex<R> a, complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> DEVICE complex<R> operator-(complex<R> a, complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> DEVICE complex<R> operator-(complex<R> a) { return {-a.re, -a.im}; }
template <class R>
DEVICE complex<R> operator*(complex<R> a, complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> DEVICE complex<R> operator*(R a, complex<R> b) { return {a * b.re, a * b.im}; }
template <class R> DEVICE complex<R> operator*(complex<R> a, R b) { return b * a; }
template <class R> DEVICE complex<R>& operator+=(complex<R>& a, complex<R> b) { return a = a + b; }
template <class R> DEVICE complex<R>& operator-=(complex<R>& a, complex<R> b) { return a = a - b; }
template <class R> DEVICE bool operator==(complex<R> a, complex<R> b) { return a.re == b.re && a.im == b.im; }
template <class R> DEVICE bool operator!=(complex<R> a, complex<R> b) { return !(a == b); }
template <class R> DEVICE complex<R> operator/(complex<R> a, complex<R> b) {   // Smith: |b|^2 cannot overflow
  bool wide = fabs(b.re) >= fabs(b.im);
  R t = wide ? b.im / b.re : b.re / b.im, d = wide ? b.re + b.im * t : b.re * t + b.im;
  return wide ? complex<R>{(a.re + a.im * t) / d, (a.im - a.re * t) / d}
      : complex<R>{(a.re * t + a.im) / d, (a.im * t - a.re) / d};
}

DEVICE float conj(float a) { return a; }
DEVICE double conj(double a) { return a; }
template <class R> DEVICE complex<R> conj(complex<R> a) { return {a.re, -a.im}; }
DEVICE float real(float a) { return a; }
DEVICE double real(double a) { return a; }
template <class R> DEVICE R real(complex<R> a) { return a.re; }
