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
template <int N, class T, class I> DEVICE auto load(const T* p, I i, I n) {
  Pack<T, N> out;
  if ((i + 1) * N <= n) return reinterpret_cast<const Pack<T, N>*>(p)[i];
#pragma unroll
  for (int e = 0; e < N; ++e) out.at[e] = i * N + e < n ? p[i * N + e] : T(0);
  return out;
}
template <class T, class I> DEVICE Pack<T> load(const T* p, I i, I n) { return load<Pack<T>::size>(p, i, n); }
template <class T, class I, int N> DEVICE void store(T* p, I i, I n, const Pack<T, N>& in) {
  if ((i + 1) * N <= n) { reinterpret_cast<Pack<T, N>*>(p)[i] = in; return; }
#pragma unroll
  for (int e = 0; e < N; ++e) if (i * N + e < n) p[i * N + e] = in.at[e];
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

// alpha in every place of a pack like the first one.
template <class T, int N> DEVICE auto filled(const Pack<T, N>& like, T alpha) {
  return mapped(like, [=](T) { return alpha; });
}

// The same values in the type of their sums.
template <class A> DEVICE acc_t<A> wide(A a) { return acc_t<A>(a); }
template <class A, int N> DEVICE auto wide(const Pack<A, N>& a) { return mapped(a, [](A v) { return acc_t<A>(v); }); }
