// Packs: neighbouring values in the registers of one GPU thread, and arithmetic with them, value by value.
#pragma once
#include "scalar.cuh"

// By default 16 bytes, the widest access of one thread. Vectors start at multiples of 16 bytes; n may cut the last pack
// short.
template <class T, int N = 16 / sizeof(T)> struct alignas(N * sizeof(T)) Pack {
  static constexpr int size = N;
  T at[N];
};
template <class T, class I> DEVICE I packs_of(I n) { return (n + Pack<T>::size - 1) / Pack<T>::size; }
template <class T, class I> DEVICE Pack<T> load(const T* p, I i, I n) {
  constexpr int S = Pack<T>::size;
  if ((i + 1) * S <= n) return reinterpret_cast<const Pack<T>*>(p)[i];
  Pack<T> out;
#pragma unroll
  for (int e = 0; e < S; ++e) out.at[e] = i * S + e < n ? p[i * S + e] : T(0);
  return out;
}
template <class T, class I> DEVICE void store(T* p, I i, I n, const Pack<T>& in) {
  constexpr int S = Pack<T>::size;
  if ((i + 1) * S <= n) { reinterpret_cast<Pack<T>*>(p)[i] = in; return; }
#pragma unroll
  for (int e = 0; e < S; ++e) if (i * S + e < n) p[i * S + e] = in.at[e];
}

// The pack of f(each value).
template <class T, int N, class F> DEVICE auto mapped(const Pack<T, N>& a, F f) {
  Pack<decltype(f(a.at[0])), N> out;
#pragma unroll
  for (int e = 0; e < N; ++e) out.at[e] = f(a.at[e]);
  return out;
}
#define OPERATION(op) \
  template <class A, class B, int N> DEVICE auto operator op(const Pack<A, N>& a, const Pack<B, N>& b) { \
    Pack<decltype(a.at[0] op b.at[0]), N> out; \
    _Pragma("unroll") for (int e = 0; e < N; ++e) out.at[e] = a.at[e] op b.at[e]; \
    return out; \
  }
OPERATION(+)
OPERATION(-)
OPERATION(*)
#undef OPERATION
template <class A, class B, int N> DEVICE auto operator*(A a, const Pack<B, N>& b) {
  return mapped(b, [=](B value) { return a * value; });
}
template <class A, int N> DEVICE auto operator-(const Pack<A, N>& a) { return mapped(a, [](A v) { return -v; }); }
template <class A, int N> DEVICE auto conj(const Pack<A, N>& a) { return mapped(a, [](A v) { return conj(v); }); }
template <class A, int N> DEVICE auto real(const Pack<A, N>& a) { return mapped(a, [](A v) { return real(v); }); }
template <class A, int N> DEVICE auto abs2(const Pack<A, N>& a) { return mapped(a, [](A v) { return abs2(v); }); }

// The same values in the type of their sums.
template <class A> DEVICE acc_t<A> wide(A a) { return acc_t<A>(a); }
template <class A, int N> DEVICE auto wide(const Pack<A, N>& a) { return mapped(a, [](A v) { return acc_t<A>(v); }); }
