// CUDA C++ for g++: what the sources of kernels use of it. Each kernel is a library of its own; emulated.h is what it knows of the
// runtime.
#pragma once
#include "emulated.h"

#define __CUDACC__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define alignas(...) __attribute__((aligned(__VA_ARGS__)))       // which may follow __shared__
#define __align__(n) alignas(n)
#define __shared__ static                  // one block at a time; the runtime exchanges it where several take turns
#define threadIdx (emulated_now->thread)
#define blockIdx (emulated_now->block)
#define blockDim emulated_threads
#define gridDim emulated_blocks
#define warpSize 32

extern "C" __attribute__((visibility("hidden"), no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {    // at every branch
  if (--emulated_budget < 0) emulated_preempt();
}

// -- types ---------------------------------------------------------------------------------------------------------------

namespace emulated {
template <class T> struct same { using type = T; };
template <class T> using same_t = typename same<T>::type;
template <class To, class From> inline To bits_as(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  __builtin_memcpy(&out, &v, sizeof v);
  return out;
}
template <class T> inline T rounded(T v) { asm("" : "+x"(v)); return v; }      // by itself, also where a b + c may be contracted
inline int lane() { return threadIdx.x % 32; }
template <class T> inline auto shuffled(unsigned mask, T v, int source) {
  using P = decltype(+v);                                              // as the built-in functions promote small integers
  P value = v, out;
  unsigned long long held = 0;
  __builtin_memcpy(&held, &value, sizeof value);
  held = emulated_warp(mask, SHUFFLE, held, source);
  __builtin_memcpy(&out, &held, sizeof out);
  return out;
}
template <class T, class F> inline T change(T* p, F how) {                // at once
  T old, next;
  __atomic_load(p, &old, __ATOMIC_SEQ_CST);
  do next = how(old); while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return old;
}
template <int... I> struct places {};
template <int N> using upto = places<__integer_pack(N)...>;
template <class... A> struct Parameters {
  static constexpr int sizes[] = {int(sizeof(A))..., 0}, count = sizeof...(A);
};
template <class... A> Parameters<A...> parameters_of(void (*)(A...));
template <class... A, int... I> inline void call(void (*kernel)(A...), void** p, places<I...>) { kernel(*(A*)p[I]...); }
}
#define VECTOR(T, N) struct alignas(2 * sizeof(T)) N##2 { T x, y; }; struct N##3 { T x, y, z; }; \
  struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) N##4 { T x, y, z, w; }; \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; } inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(double, double) VECTOR(float, float) VECTOR(int, int) VECTOR(long long, longlong) VECTOR(unsigned long long, ulonglong)
VECTOR(unsigned char, uchar) VECTOR(unsigned short, ushort)
#undef VECTOR
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
typedef decltype(sizeof 0) size_t;

inline float __uint_as_float(unsigned v) { return emulated::bits_as<float>(v); }
inline unsigned __float_as_uint(float v) { return emulated::bits_as<unsigned>(v); }
inline float __int_as_float(int v) { return emulated::bits_as<float>(v); }
inline int __float_as_int(float v) { return emulated::bits_as<int>(v); }
inline double __longlong_as_double(long long v) { return emulated::bits_as<double>(v); }
inline long long __double_as_longlong(double v) { return emulated::bits_as<long long>(v); }

// -- arithmetic ----------------------------------------------------------------------------------------------------------

#define ONE(name) inline float name(float a) { return __builtin_##name##f(a); } \
  inline double name(double a) { return __builtin_##name(a); } \
  inline float name##f(float a) { return __builtin_##name##f(a); }
#define TWO(name) inline float name(float a, float b) { return __builtin_##name##f(a, b); } \
  inline double name(double a, double b) { return __builtin_##name(a, b); } \
  inline float name##f(float a, float b) { return __builtin_##name##f(a, b); }
ONE(fabs) ONE(sqrt) ONE(exp) ONE(log) ONE(sin) ONE(cos) ONE(floor) ONE(ceil) ONE(rint) ONE(log2) ONE(exp2) ONE(cbrt) ONE(round)
TWO(hypot) TWO(fmax) TWO(fmin) TWO(pow) TWO(fmod) TWO(copysign) TWO(atan2)
#undef ONE
#undef TWO
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double frexp(double a, int* e) { return __builtin_frexp(a, e); }
inline double ldexp(double a, int e) { return __builtin_ldexp(a, e); }
inline float ldexp(float a, int e) { return __builtin_ldexpf(a, e); }
inline bool isfinite(double a) { return __builtin_isfinite(a); }
inline bool isfinite(float a) { return __builtin_isfinite(a); }
inline bool isnan(double a) { return __builtin_isnan(a); }
inline bool isnan(float a) { return __builtin_isnan(a); }
inline bool isinf(double a) { return __builtin_isinf(a); }
inline bool signbit(double a) { return __builtin_signbit(a); }
inline int abs(int a) { return a < 0 ? -a : a; }
inline long long abs(long long a) { return a < 0 ? -a : a; }
inline long long llabs(long long a) { return a < 0 ? -a : a; }

inline float __fadd_rn(float a, float b) { return emulated::rounded(a + b); }
inline float __fsub_rn(float a, float b) { return emulated::rounded(a - b); }
inline float __fmul_rn(float a, float b) { return emulated::rounded(a * b); }
inline float __fdiv_rn(float a, float b) { return emulated::rounded(a / b); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return emulated::rounded(a + b); }
inline double __dsub_rn(double a, double b) { return emulated::rounded(a - b); }
inline double __dmul_rn(double a, double b) { return emulated::rounded(a * b); }
inline double __ddiv_rn(double a, double b) { return emulated::rounded(a / b); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

#define LESSER(A, B, R) inline R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  inline R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
#define UNSIGNED(T) LESSER(T, T, T) LESSER(unsigned T, unsigned T, unsigned T) LESSER(T, unsigned T, unsigned T) \
  LESSER(unsigned T, T, unsigned T)
UNSIGNED(int) UNSIGNED(long) UNSIGNED(long long)
#undef UNSIGNED
#undef LESSER
inline float min(float a, float b) { return fmin(a, b); }
inline float max(float a, float b) { return fmax(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(double(a), b); }
inline double max(float a, double b) { return fmax(double(a), b); }
inline double min(double a, float b) { return fmin(a, double(b)); }
inline double max(double a, float b) { return fmax(a, double(b)); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
inline unsigned __brev(unsigned v) { unsigned r = 0; for (int k = 0; k < 32; ++k) r |= (v >> k & 1) << (31 - k); return r; }

// -- memory --------------------------------------------------------------------------------------------------------------

template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { asm volatile("" ::: "memory"); return *p; }
template <class T> inline void __stcg(T* p, emulated::same_t<T> v) { *p = v; asm volatile("" ::: "memory"); }
template <class T> inline void __stcs(T* p, emulated::same_t<T> v) { *p = v; }
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { asm volatile("" ::: "memory"); }
inline void __nanosleep(unsigned) { emulated_preempt(); }

template <class T> inline T atomicCAS(T* p, emulated::same_t<T> old, emulated::same_t<T> v) {
  __atomic_compare_exchange(p, &old, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return old;
}
#define ATOMIC(name, what) template <class T> inline T name(T* p, emulated::same_t<T> v) { \
  return emulated::change(p, [v](T old) -> T { return what; }); }
ATOMIC(atomicAdd, old + v) ATOMIC(atomicSub, old - v) ATOMIC(atomicExch, (void(old), v)) ATOMIC(atomicMin, min(old, v))
ATOMIC(atomicMax, max(old, v)) ATOMIC(atomicAnd, old & v) ATOMIC(atomicOr, old | v) ATOMIC(atomicXor, old ^ v)
#undef ATOMIC

// -- blocks and warps ----------------------------------------------------------------------------------------------------

#define __syncthreads() ((void)emulated_block(emulated::SYNC, 0))
inline int __syncthreads_count(int v) { return emulated_block(emulated::VOTE, v); }
inline int __syncthreads_or(int v) { return emulated_block(emulated::VOTE, v) != 0; }
inline int __syncthreads_and(int v) { return emulated_block(emulated::VOTE, !v) == 0; }
inline void __syncwarp(unsigned mask = ~0u) { emulated_warp(mask, emulated::SYNC, 0, 0); }
template <class T> inline auto __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return emulated::shuffled(mask, v, (emulated::lane() & -width) + (source & (width - 1)));
}
template <class T> inline auto __shfl_xor_sync(unsigned mask, T v, int o, int width = 32) {
  const int lane = emulated::lane(), source = lane ^ o;
  return emulated::shuffled(mask, v, (source & -width) > (lane & -width) ? lane : source);
}
template <class T> inline auto __shfl_up_sync(unsigned mask, T v, unsigned o, int width = 32) {
  const int lane = emulated::lane(), source = lane - int(o);
  return emulated::shuffled(mask, v, source < (lane & -width) ? lane : source);
}
template <class T> inline auto __shfl_down_sync(unsigned mask, T v, unsigned o, int width = 32) {
  const int lane = emulated::lane(), source = lane + int(o);
  return emulated::shuffled(mask, v, source > (lane | (width - 1)) ? lane : source);
}
inline unsigned __ballot_sync(unsigned mask, int v) { return unsigned(emulated_warp(mask, emulated::VOTE, v != 0, 0)); }
inline int __any_sync(unsigned mask, int v) { return __ballot_sync(mask, v) != 0; }
inline int __all_sync(unsigned mask, int v) {
  const unsigned long long both = emulated_warp(mask, emulated::VOTE, v != 0, 0);
  return unsigned(both) == unsigned(both >> 32);
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T v) {
  unsigned long long held = 0;
  __builtin_memcpy(&held, &v, sizeof v);
  return unsigned(emulated_warp(mask, emulated::MATCH, held, 0));
}
#define REDUCE(name, kind, T) inline T name(unsigned mask, T v) { return T(emulated_warp(mask, emulated::kind, (unsigned)v, 0)); }
REDUCE(__reduce_add_sync, ADD, int) REDUCE(__reduce_min_sync, LEAST, int) REDUCE(__reduce_max_sync, MOST, int)
REDUCE(__reduce_add_sync, UADD, unsigned) REDUCE(__reduce_min_sync, ULEAST, unsigned) REDUCE(__reduce_max_sync, UMOST, unsigned)
REDUCE(__reduce_and_sync, AND, unsigned) REDUCE(__reduce_or_sync, OR, unsigned) REDUCE(__reduce_xor_sync, XOR, unsigned)
#undef REDUCE

// -- the entry of a kernel, by the addresses of its parameters ------------------------------------------------------------

extern "C" __attribute__((visibility("hidden"))) char __bss_start, _end;
#define EMULATE(NAME, ...)                                                                              \
  using emulated_parameters = decltype(emulated::parameters_of(&__VA_ARGS__));                          \
  static void emulated_entry(void** p) {                                                                \
    emulated::call(&__VA_ARGS__, p, emulated::upto<emulated_parameters::count>());                      \
  }                                                                                                     \
  extern "C" __attribute__((visibility("default"))) emulated::Function emulated_function;               \
  emulated::Function emulated_function = {emulated_entry, NAME, &__bss_start, &_end,                    \
                                          emulated_parameters::count, emulated_parameters::sizes, 49152};
