// Two sums of products a x in registers, whose coefficients a are neighbours in memory: of the even and the odd entries
// of a CSR row, or of two rows of a SELL slice.
//
// A complex sum is (Σ aʳxʳ, Σ aʳxⁱ) and (Σ aⁱxʳ, Σ aⁱxⁱ); one register has the first pairs of both sums, one the
// second.
#pragma once
#include <stdint.h>
#include <string.h>

#include "../../core/kernels/scalar.hpp"

template <class T> struct TwoSums {
  T sums[2] = {T(0), T(0)};
  inline void add(const T* a, const T& x, const T& y) { sums[0] += a[0] * x, sums[1] += a[1] * y; }
  inline void add_one(const T* a, const T& x) { sums[0] += a[0] * x; }
  inline T value(int k) const { return sums[k]; }
  inline T sum() const { return sums[0] + sums[1]; }
};

template <class R> struct Four;
template <> struct Four<double> {
  typedef double pair __attribute__((vector_size(16)));
  typedef double type __attribute__((vector_size(32)));
};
template <> struct Four<float> {
  typedef float pair __attribute__((vector_size(8)));
  typedef float type __attribute__((vector_size(16)));
};

template <class R> struct TwoSums<complex<R>> {
  typename Four<R>::type by_real{}, by_imaginary{};
  inline void add(const complex<R>* a, const complex<R>& x, const complex<R>& y) {
    typename Four<R>::type left;
    typename Four<R>::pair first, second;
    memcpy(&left, a, sizeof left), memcpy(&first, &x, sizeof first), memcpy(&second, &y, sizeof second);
    const typename Four<R>::type right = __builtin_shufflevector(first, second, 0, 1, 2, 3);
    by_real += __builtin_shufflevector(left, left, 0, 0, 2, 2) * right;
    by_imaginary += __builtin_shufflevector(left, left, 1, 1, 3, 3) * right;
  }
  inline void add_one(const complex<R>* a, const complex<R>& x) {
    const typename Four<R>::type right{x.re, x.im, 0, 0};
    by_real += a->re * right;
    by_imaginary += a->im * right;
  }
  inline complex<R> value(int k) const {
    return {by_real[2 * k] - by_imaginary[2 * k + 1], by_real[2 * k + 1] + by_imaginary[2 * k]};
  }
  inline complex<R> sum() const { return value(0) + value(1); }
};

// The even and the odd sums of a row's products with four vectors.
template <class T> struct FourColumns {
  typename Four<T>::type even{}, odd{};
  inline void add(const T* a, const T* const (&x)[4], int64_t i, int64_t j) {
    even += a[0] * typename Four<T>::type{x[0][i], x[1][i], x[2][i], x[3][i]};
    odd += a[1] * typename Four<T>::type{x[0][j], x[1][j], x[2][j], x[3][j]};
  }
  inline void add_one(const T* a, const T* const (&x)[4], int64_t i) {
    even += a[0] * typename Four<T>::type{x[0][i], x[1][i], x[2][i], x[3][i]};
  }
  inline void put(T (&out)[4]) const {
    const typename Four<T>::type sums = even + odd;
    memcpy(out, &sums, sizeof out);
  }
};
template <class R> struct FourColumns<complex<R>> {
  TwoSums<complex<R>> a, b, c, d;      // no array: the compiler would keep it in memory
  inline void add(const complex<R>* v, const complex<R>* const (&x)[4], int64_t i, int64_t j) {
    a.add(v, x[0][i], x[0][j]), b.add(v, x[1][i], x[1][j]), c.add(v, x[2][i], x[2][j]), d.add(v, x[3][i], x[3][j]);
  }
  inline void add_one(const complex<R>* v, const complex<R>* const (&x)[4], int64_t i) {
    a.add_one(v, x[0][i]), b.add_one(v, x[1][i]), c.add_one(v, x[2][i]), d.add_one(v, x[3][i]);
  }
  inline void put(complex<R> (&out)[4]) const {
    out[0] = a.sum(), out[1] = b.sum(), out[2] = c.sum(), out[3] = d.sum();
  }
};

// Σ data[k] x[indices[k]] over the entries k = begin to end − 1. Two independent sums, of even and of odd entries, let
// additions overlap.
template <class T, class I>
inline T row_product(const I* indices, const T* data, const T* x, int64_t begin, int64_t end) {
  TwoSums<T> sums;
  int64_t k = begin;
  for (; k + 1 < end; k += 2) sums.add(data + k, x[indices[k]], x[indices[k + 1]]);
  if (k < end) sums.add_one(data + k, x[indices[k]]);
  return sums.sum();
}

// The part of (w, y) that one row gives, and of (y, y), in the types of the sums.
template <class T> acc_t<T> conj_product(T w, T y) { return conj(acc_t<T>(w)) * acc_t<T>(y); }
inline double square(double y) { return y * y; }
template <class R> double square(complex<R> y) { return double(y.re) * y.re + double(y.im) * y.im; }
