// Scalars: float, double and our own complex of both, so that kernels compile with plain NVRTC and no header but ours.
#pragma once

template <class R> struct alignas(2 * sizeof(R)) complex {   // aligned: one value is one 8- or 16-byte load
  R re, im;
  complex() = default;
  __device__ constexpr complex(R re, R im = R(0)) : re(re), im(im) {}
  template <class S> __device__ explicit constexpr complex(complex<S> z) : re(R(z.re)), im(R(z.im)) {}
};

template <class T> struct scalar { using real = T; using acc = double; static constexpr int parts = 1; };   // float accumulates in double
template <class R> struct scalar<complex<R>> { using real = R; using acc = complex<double>; static constexpr int parts = 2; };
template <class T> using real_t = typename scalar<T>::real;
template <class T> using acc_t = typename scalar<T>::acc;

#define DEVICE __device__ __forceinline__

template <class R> DEVICE complex<R> operator+(complex<R> a, complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> DEVICE complex<R> operator-(complex<R> a, complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> DEVICE complex<R> operator-(complex<R> a) { return {-a.re, -a.im}; }
template <class R> DEVICE complex<R> operator*(complex<R> a, complex<R> b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
template <class R> DEVICE complex<R> operator*(R a, complex<R> b) { return {a * b.re, a * b.im}; }
template <class R> DEVICE complex<R> operator*(complex<R> a, R b) { return {a.re * b, a.im * b}; }
template <class R> DEVICE complex<R>& operator+=(complex<R>& a, complex<R> b) { a.re += b.re; a.im += b.im; return a; }
template <class R> DEVICE complex<R>& operator-=(complex<R>& a, complex<R> b) { a.re -= b.re; a.im -= b.im; return a; }
template <class R> DEVICE bool operator==(complex<R> a, complex<R> b) { return a.re == b.re && a.im == b.im; }
template <class R> DEVICE bool operator!=(complex<R> a, complex<R> b) { return !(a == b); }
template <class R> DEVICE complex<R> operator/(complex<R> a, complex<R> b) {   // Smith: no overflow in |b|^2
  bool wide = fabs(b.re) >= fabs(b.im);
  R t = wide ? b.im / b.re : b.re / b.im, d = wide ? b.re + b.im * t : b.re * t + b.im;
  return wide ? complex<R>{(a.re + a.im * t) / d, (a.im - a.re * t) / d} : complex<R>{(a.re * t + a.im) / d, (a.im * t - a.re) / d};
}

DEVICE float fused(float a, float b, float c) { return fmaf(a, b, c); }      // a b + c in fused steps, whatever -fmad says
DEVICE double fused(double a, double b, double c) { return fma(a, b, c); }
template <class R> DEVICE complex<R> fused(complex<R> a, complex<R> b, complex<R> c) {
  return {fused(-a.im, b.im, fused(a.re, b.re, c.re)), fused(a.im, b.re, fused(a.re, b.im, c.im))};
}
DEVICE float conj(float a) { return a; }
DEVICE double conj(double a) { return a; }
template <class R> DEVICE complex<R> conj(complex<R> a) { return {a.re, -a.im}; }
DEVICE float real(float a) { return a; }
DEVICE double real(double a) { return a; }
template <class R> DEVICE R real(complex<R> a) { return a.re; }
DEVICE float abs2(float a) { return a * a; }
DEVICE double abs2(double a) { return a * a; }
template <class R> DEVICE R abs2(complex<R> a) { return fused(a.re, a.re, a.im * a.im); }
template <class T> DEVICE T conj_mul(T a, T b) { return a * b; }                                             // conj(a) b
template <class R> DEVICE complex<R> conj_mul(complex<R> a, complex<R> b) {
  return {fused(a.re, b.re, a.im * b.im), fused(a.re, b.im, -(a.im * b.re))};
}
template <class A, class T> DEVICE A conj_fused(T a, T b, A c) { return fused(A(a), A(b), c); }              // conj(a) b + c, accumulated in A
template <class A, class R> DEVICE A conj_fused(complex<R> a, complex<R> b, A c) { A wide(a); return fused(conj(wide), A(b), c); }

// 16 bytes of scalars: the widest access of one thread.
template <class T> struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

// The matrix is read once a product: it passes by L1 and leaves L2 first, so that the vectors stay there.
DEVICE unsigned long long policy_stream() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
DEVICE unsigned long long policy_keep() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
template <int BYTES> struct Word;
template <> struct Word<2> { using type = unsigned short;
  static DEVICE type load(const void* p, unsigned long long policy) { type v; asm("ld.global.nc.L1::no_allocate.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(v) : "l"(p), "l"(policy)); return v; } };
template <> struct Word<4> { using type = unsigned;
  static DEVICE type load(const void* p, unsigned long long policy) { type v; asm("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(v) : "l"(p), "l"(policy)); return v; } };
template <> struct Word<8> { using type = unsigned long long;
  static DEVICE type load(const void* p, unsigned long long policy) { type v; asm("ld.global.nc.L1::no_allocate.L2::cache_hint.u64 %0, [%1], %2;" : "=l"(v) : "l"(p), "l"(policy)); return v; } };
template <> struct Word<16> { using type = ulonglong2;
  static DEVICE type load(const void* p, unsigned long long policy) { type v; asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;" : "=l"(v.x), "=l"(v.y) : "l"(p), "l"(policy)); return v; } };
template <class V> DEVICE V load_hint(const V* p, unsigned long long policy) {
  typename Word<sizeof(V)>::type word = Word<sizeof(V)>::load(p, policy);
  return reinterpret_cast<V&>(word);
}
template <class V> DEVICE V load_stream(const V* p) {
  using W = typename Word<sizeof(V)>::type;
  W word = __ldcs(reinterpret_cast<const W*>(p));
  return reinterpret_cast<V&>(word);
}

DEVICE float shuffle(float v, int lane) { return __shfl_sync(~0u, v, lane); }
DEVICE double shuffle(double v, int lane) { return __shfl_sync(~0u, v, lane); }
template <class R> DEVICE complex<R> shuffle(complex<R> v, int lane) { return {shuffle(v.re, lane), shuffle(v.im, lane)}; }
DEVICE float shuffle_xor(float v, int o) { return __shfl_xor_sync(~0u, v, o); }
DEVICE double shuffle_xor(double v, int o) { return __shfl_xor_sync(~0u, v, o); }
template <class R> DEVICE complex<R> shuffle_xor(complex<R> v, int o) { return {shuffle_xor(v.re, o), shuffle_xor(v.im, o)}; }
