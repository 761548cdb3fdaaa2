// Joint access to vectors of two precisions: a basis V stored in a narrower type than the vectors u and w.
#pragma once
#include "scalar.cuh"

// S elements of any type, where S elements of V take 16 bytes: a pack of V, or the corresponding elements of u and w.
template <class T, int S> struct alignas(S * sizeof(T) < 16 ? S * sizeof(T) : 16) Strip {
  T at[S];
};
template <int S, class T> DEVICE Strip<T, S> load_strip(const T* p, int i, int n) {
  if ((i + 1ll) * S <= n) return reinterpret_cast<const Strip<T, S>*>(p)[i];
  Strip<T, S> out;
#pragma unroll
  for (int e = 0; e < S; ++e) out.at[e] = i * S + e < n ? p[i * S + e] : T(0);
  return out;
}
template <class T, int S> DEVICE void store_strip(T* p, int i, int n, const Strip<T, S>& in) {
  if ((i + 1ll) * S <= n) { reinterpret_cast<Strip<T, S>*>(p)[i] = in; return; }
#pragma unroll
  for (int e = 0; e < S; ++e) if (i * S + e < n) p[i * S + e] = in.at[e];
}
