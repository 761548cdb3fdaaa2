// Sums over rows, with the same bits for any number of threads, any processor and any compiler.
//
// A sum has LANES partial sums: row i adds to lane i mod LANES. `Pack` is LANES consecutive values in registers, and
// complex<Pack<R>> that many complex ones. A body is written once for a pack (`i` is a Lanes) and for the rows that are
// left at the end (`i` is a Tail):
//
//     auto [xy, yy] = sums<acc_t<T>, double>(x.size, [=](auto i, auto& xy, auto& yy) {
//       const auto value = wide(load(y, i));
//       add(xy, i, conj(wide(load(x, i))) * value);
//       add(yy, i, abs2(value));
//     });
//
// `load` of all arrays before `store` to one: the arrays may then be the same. A Tail loads 0 past the end.
#pragma once
#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <tuple>

#include "../kernels/scalar.hpp"
#include "../kernels/array.hpp"
#include "threads.hpp"

constexpr int LANES = 16;
#if defined(__AVX__)
constexpr int WORD = 4;                // doubles of a register; changes no bit
#else
constexpr int WORD = 2;
#endif

template <int N> struct Rows { int64_t first; };       // N of them
using Lanes = Rows<LANES>;
struct Tail { int64_t first; int count; };

template <class R> struct Register;
template <> struct Register<double> { typedef double type __attribute__((vector_size(8 * WORD))); };
template <> struct Register<float> { typedef float type __attribute__((vector_size(4 * WORD))); };

// N values: a register, or two halves. (The compiler keeps an array of registers, indexed in a loop, in memory.)
template <class R, int N = LANES> struct Pack {
  Pack<R, N / 2> low, high;

  Pack() = default;
  INLINE explicit Pack(R value) : low(value), high(value) {}
  INLINE Pack(Pack<R, N / 2> low, Pack<R, N / 2> high) : low(low), high(high) {}
};
template <class R> struct Pack<R, WORD> {
  using Word = typename Register<R>::type;
  Word word;

  Pack() = default;
  INLINE explicit Pack(R value) : word(value - Word{}) {}
  INLINE Pack(Word word) : word(word) {}
};

#define OPERATION(op) \
  template <class R> INLINE Pack<R, WORD> operator op(Pack<R, WORD> a, Pack<R, WORD> b) { return a.word op b.word; } \
  template <class R, int N> INLINE Pack<R, N> operator op(Pack<R, N> a, Pack<R, N> b) { \
    return {a.low op b.low, a.high op b.high}; \
  }
OPERATION(+)
OPERATION(-)
OPERATION(*)
#undef OPERATION
template <class R, int N> INLINE Pack<R, N> operator-(Pack<R, N> a) { return Pack<R, N>(R(-1)) * a; }
template <class R, int N> INLINE Pack<R, N> operator*(R a, Pack<R, N> b) { return Pack<R, N>(a) * b; }
template <class R, int N> INLINE Pack<R, N> conj(Pack<R, N> a) { return a; }
template <class R, int N> INLINE Pack<R, N> real(Pack<R, N> a) { return a; }
template <class R> INLINE complex<Pack<R>> operator*(R a, complex<Pack<R>> b) { return {a * b.re, a * b.im}; }
template <class R> INLINE complex<Pack<R>> operator*(complex<R> a, complex<Pack<R>> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// alpha in every lane of a value like the first one.
template <class T> INLINE T filled(T, T alpha) { return alpha; }
template <class R, int N> INLINE Pack<R, N> filled(Pack<R, N>, R alpha) { return Pack<R, N>(alpha); }
template <class R, int N> INLINE complex<Pack<R, N>> filled(complex<Pack<R, N>>, complex<R> alpha) {
  return {Pack<R, N>(alpha.re), Pack<R, N>(alpha.im)};
}

// The same values in the type of their sums.
inline double wide(double a) { return a; }
inline double wide(float a) { return a; }
template <class R> inline complex<double> wide(complex<R> a) { return {wide(a.re), wide(a.im)}; }
template <int N> INLINE Pack<double, N> wide(Pack<double, N> a) { return a; }
INLINE Pack<double, WORD> wide(Pack<float, WORD> a) {
#if defined(__AVX__)
  return _mm256_cvtps_pd(a.word);      // of __builtin_convertvector GCC 12 makes six instructions
#else
  return __builtin_convertvector(a.word, Pack<double, WORD>::Word);
#endif
}
template <int N> INLINE Pack<double, N> wide(Pack<float, N> a) { return {wide(a.low), wide(a.high)}; }
template <class R> INLINE complex<Pack<double>> wide(complex<Pack<R>> a) { return {wide(a.re), wide(a.im)}; }

inline double abs2(double a) { return a * a; }
inline float abs2(float a) { return a * a; }
template <class R> inline R divided(R a, R b) { return a / b; }
template <class R> inline complex<R> divided(complex<R> a, R b) { return {a.re / b, a.im / b}; }
template <int N> INLINE Pack<double, N> abs2(Pack<double, N> a) { return a * a; }
template <class R> INLINE R abs2(complex<R> a) { return a.re * a.re + a.im * a.im; }

// LANES values from p on, and as many to p; of complex values, real and imaginary parts lie alternately.
template <int N> struct Memory {
  template <class R> INLINE static Pack<R, N> load(const R* p) {
    return {Memory<N / 2>::load(p), Memory<N / 2>::load(p + N / 2)};
  }
  template <class R> INLINE static void store(R* p, Pack<R, N> a) {
    Memory<N / 2>::store(p, a.low), Memory<N / 2>::store(p + N / 2, a.high);
  }
  template <class R> INLINE static void split(const R* p, Pack<R, N>& even, Pack<R, N>& odd) {
    Memory<N / 2>::split(p, even.low, odd.low), Memory<N / 2>::split(p + N, even.high, odd.high);
  }
  template <class R> INLINE static void join(R* p, Pack<R, N> even, Pack<R, N> odd) {
    Memory<N / 2>::join(p, even.low, odd.low), Memory<N / 2>::join(p + N, even.high, odd.high);
  }
};
template <> struct Memory<WORD> {
  template <class R> INLINE static Pack<R, WORD> load(const R* p) {
    Pack<R, WORD> out;
    memcpy(&out.word, p, sizeof out.word);
    return out;
  }
  template <class R> INLINE static void store(R* p, Pack<R, WORD> a) { memcpy(p, &a.word, sizeof a.word); }
  template <class R> INLINE static void split(const R* p, Pack<R, WORD>& even, Pack<R, WORD>& odd) {
    const auto a = load(p).word, b = load(p + WORD).word;
#if defined(__AVX__)
    even.word = __builtin_shufflevector(a, b, 0, 2, 4, 6), odd.word = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#else
    even.word = __builtin_shufflevector(a, b, 0, 2), odd.word = __builtin_shufflevector(a, b, 1, 3);
#endif
  }
  template <class R> INLINE static void join(R* p, Pack<R, WORD> even, Pack<R, WORD> odd) {
    const auto a = even.word, b = odd.word;
#if defined(__AVX__)
    store(p, Pack<R, WORD>(__builtin_shufflevector(a, b, 0, 4, 1, 5)));
    store(p + WORD, Pack<R, WORD>(__builtin_shufflevector(a, b, 2, 6, 3, 7)));
#else
    store(p, Pack<R, WORD>(__builtin_shufflevector(a, b, 0, 2)));
    store(p + WORD, Pack<R, WORD>(__builtin_shufflevector(a, b, 1, 3)));
#endif
  }
};
template <int N = LANES, class R> INLINE Pack<R, N> load_pack(const R* p) { return Memory<N>::load(p); }
template <int N = LANES, class R> INLINE complex<Pack<R, N>> load_pack(const complex<R>* p) {
  complex<Pack<R, N>> out;
  Memory<N>::split(&p->re, out.re, out.im);
  return out;
}
template <class R, int N> INLINE void store_pack(R* p, Pack<R, N> a) { Memory<N>::store(p, a); }
template <class R, int N> INLINE void store_pack(complex<R>* p, complex<Pack<R, N>> z) {
  Memory<N>::join(&p->re, z.re, z.im);
}

template <class T> using bare = std::remove_const_t<T>;
template <class T, int N> INLINE auto load(Array<T> x, Rows<N> i) { return load_pack<N>(x.data + i.first); }
template <class T> inline auto load(Array<T> x, Tail i) {
  bare<T> held[LANES] = {};
  for (int k = 0; k < i.count; ++k) held[k] = x.data[i.first + k];
  return load_pack(held);
}
template <class T, int N, class P> INLINE void store(Array<T> x, Rows<N> i, P value) {
  store_pack(x.data + i.first, value);
}
template <class T, class P> inline void store(Array<T> x, Tail i, const P& value) {
  T held[LANES];
  store_pack(held, value);
  for (int k = 0; k < i.count; ++k) x.data[i.first + k] = held[k];
}

// The partial sums of a double or a complex<double>.
template <class A> struct Sum;
template <> struct Sum<double> {
  Pack<double> lanes{0.0};
  double value() const {
    double lane[LANES];
    store_pack(lane, lanes);
    for (int apart = LANES / 2; apart; apart /= 2)
      for (int k = 0; k < apart; ++k) lane[k] += lane[k + apart];
    return lane[0];
  }
};
template <> struct Sum<complex<double>> {
  Sum<double> re, im;
  complex<double> value() const { return {re.value(), im.value()}; }
};
INLINE void add(Sum<double>& sum, Lanes, Pack<double> value) { sum.lanes = sum.lanes + value; }
inline void add(Sum<double>& sum, Tail i, Pack<double> value) {
  double lane[LANES], more[LANES];
  store_pack(lane, sum.lanes), store_pack(more, value);
  for (int k = 0; k < i.count; ++k) lane[k] += more[k];
  sum.lanes = load_pack(lane);
}
template <class I> INLINE void add(Sum<complex<double>>& sum, I i, complex<Pack<double>> value) {
  add(sum.re, i, value.re), add(sum.im, i, value.im);
}

// Return the sum of part(begin, end), tuples of A..., over ranges that cover 0 to units − 1, added in their order. A
// unit is some rows; `rows` counts them all.
template <class... A, class F> inline std::tuple<A...> in_order(int64_t rows, int64_t units, const F& part) {
  const int64_t chunks = chunks_of(rows);
  std::tuple<A...> parts[CHUNKS], total{A(0)...};
  parallel_for(rows, chunks, [&parts, &part, units, chunks](int64_t chunk) {
    parts[chunk] = part(chunk_begin(units, chunk, chunks), chunk_begin(units, chunk + 1, chunks));
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    std::apply([&](auto&... sum) {
      std::apply([&](const auto&... more) { ((sum += more), ...); }, parts[chunk]);
    }, total);
  return total;
}

// Return sums over rows, of types A...: body(i, sums...) adds what rows i, a Lanes or a Tail, give.
template <class... A, class F> inline std::tuple<A...> sums(int64_t rows, const F& body) {
  return in_order<A...>(rows, (rows + LANES - 1) / LANES, [&body, rows](int64_t begin, int64_t end) {
    const F own = body;
    std::tuple<Sum<A>...> lanes;
    return std::apply([&](auto&... sum) {
      int64_t i = LANES * begin;
      for (; i + LANES <= std::min(rows, LANES * end); i += LANES) own(Lanes{i}, sum...);
      if (i < LANES * end) own(Tail{i, int(rows - i)}, sum...);
      return std::tuple<A...>(sum.value()...);
    }, lanes);
  });
}

// Return sums over rows, of types A...: body(i, sums...) adds what row i gives to the numbers `sums`, row after row.
template <class... A, class F> inline std::tuple<A...> row_sums(int64_t rows, const F& body) {
  return in_order<A...>(rows, rows, [&body](int64_t begin, int64_t end) {
    const F own = body;
    std::tuple<A...> total{A(0)...};
    std::apply([&](auto&... sum) { for (int64_t i = begin; i < end; ++i) own(i, sum...); }, total);
    return total;
  });
}

template <class T> INLINE bare<T> load(Array<T> x, int64_t i) { return x[i]; }
template <class T> INLINE void store(Array<T> x, int64_t i, T value) { x[i] = value; }

// body(i) for all elements of `out`. For real numbers `i` is some Rows, few enough that a body keeps its vectors in
// registers, or the Tail. For complex ones it is a row, as the compiler makes better loops of interleaved numbers.
template <class T, class F> inline void elements(Array<T> out, const F& body) {
  constexpr int FEW = 2 * WORD;
  const int64_t rows = out.size;
  if constexpr (scalar<bare<T>>::parts > 1) each(rows, body);
  else ranges((rows + LANES - 1) / LANES, rows, [body, rows](int64_t begin, int64_t end) {
    int64_t i = LANES * begin;
    for (; i + FEW <= std::min(rows, LANES * end); i += FEW) body(Rows<FEW>{i});
    if (i < std::min(rows, LANES * end)) body(Tail{i, int(rows - i)});
  });
}
