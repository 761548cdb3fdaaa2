// Scalars on a GPU: float, double and swell's own complex types (scalar.hpp), so that kernels compile with plain NVRTC
// and swell's headers alone.
#pragma once
#define DEVICE __device__ __forceinline__
#define INLINE DEVICE
#define ALIGNED(bytes) alignas(bytes)      // one value is one 8- or 16-byte access
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
using int32_t = int;
using int64_t = long long;       // NVRTC has no stdint.h
#include "scalar.hpp"

DEVICE float fused(float a, float b, float c) { return fmaf(a, b, c); }        // a b + c
DEVICE double fused(double a, double b, double c) { return fma(a, b, c); }
template <class R> DEVICE complex<R> fused(complex<R> a, complex<R> b, complex<R> c) {
  return {fused(-a.im, b.im, fused(a.re, b.re, c.re)), fused(a.im, b.re, fused(a.re, b.im, c.im))};
}

// value + beta z[row] + gamma w[row]; gamma = 0 never reads w.
template <class T> DEVICE T with_vectors(T value, const T* z, T beta, const T* w, T gamma, long long row) {
  value = fused(beta, z[row], value);
  return gamma == T(0) ? value : fused(gamma, w[row], value);
}

// a b + c, rounded after each operation: the same bits as on a CPU without fused operations.
DEVICE float unfused(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
DEVICE double unfused(double a, double b, double c) { return __dadd_rn(__dmul_rn(a, b), c); }
template <class R> DEVICE complex<R> unfused(complex<R> a, complex<R> b, complex<R> c) {
  const R zero(0);
  return {unfused(R(1), unfused(-a.im, b.im, unfused(a.re, b.re, zero)), c.re),
          unfused(R(1), unfused(a.im, b.re, unfused(a.re, b.im, zero)), c.im)};
}
DEVICE float abs2(float a) { return a * a; }
DEVICE double abs2(double a) { return a * a; }
template <class R> DEVICE R abs2(complex<R> a) { return fused(a.re, a.re, a.im * a.im); }
template <class R> DEVICE R divided(R a, R b) { return a / b; }
template <class R> DEVICE complex<R> divided(complex<R> a, R b) { return {a.re / b, a.im / b}; }
DEVICE float conj_mul(float a, float b) { return a * b; }                       // conj(a) b
DEVICE double conj_mul(double a, double b) { return a * b; }
template <class R> DEVICE complex<R> conj_mul(complex<R> a, complex<R> b) {
  return {fused(a.re, b.re, a.im * b.im), fused(a.re, b.im, -(a.im * b.re))};
}
// conj(a) b + c in the accumulator's type
template <class T> DEVICE acc_t<T> conj_fused(T a, T b, acc_t<T> c) { return fused(conj(acc_t<T>(a)), acc_t<T>(b), c); }
DEVICE void split(double* v, double a) { v[0] = a; }              // an accumulator as plain doubles, for the reductions
DEVICE void split(double* v, complex<double> a) { v[0] = a.re; v[1] = a.im; }
DEVICE void join(double& a, const double* v) { a = v[0]; }
DEVICE void join(complex<double>& a, const double* v) { a = {v[0], v[1]}; }

// Load data that is read once: it bypasses L1 and leaves L2 first, so that the vectors stay in cache. CUDA's streaming
// load takes built-in types only, hence the Word of the same size.
template <int BYTES> struct Word;
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<4> { using type = unsigned; };
template <> struct Word<8> { using type = double; };
template <> struct Word<16> { using type = double2; };
template <class V> DEVICE V load_stream(const V* p) {
  auto word = __ldcs(reinterpret_cast<const typename Word<sizeof(V)>::type*>(p));
  return reinterpret_cast<V&>(word);
}

DEVICE float shuffle(float v, int lane) { return __shfl_sync(~0u, v, lane); }
DEVICE double shuffle(double v, int lane) { return __shfl_sync(~0u, v, lane); }
template <class R>
DEVICE complex<R> shuffle(complex<R> v, int lane) { return {shuffle(v.re, lane), shuffle(v.im, lane)}; }
DEVICE float shuffle_xor(float v, int o) { return __shfl_xor_sync(~0u, v, o); }
DEVICE double shuffle_xor(double v, int o) { return __shfl_xor_sync(~0u, v, o); }
template <class R>
DEVICE complex<R> shuffle_xor(complex<R> v, int o) { return {shuffle_xor(v.re, o), shuffle_xor(v.im, o)}; }
