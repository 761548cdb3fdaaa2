// Products of dense size × size blocks, row-major, with vectors: the blocks of BSR, and of block factors. The compiler
// knows sizes up to UNROLLED; then the sums of a block row stay in registers.
#pragma once
#include <type_traits>

#include "sums.hpp"

constexpr int UNROLLED = 8;

// MOST values of a row of a block in a register, and as many of x. Those after the first N are zero.
template <class R> struct Piece {
  static constexpr int MOST = 4;
  using Word = typename Four<R>::type;
  using X = Word;
  template <int N> static inline Word load(const R* p) {
    Word word{};
    if constexpr (N == MOST) memcpy(&word, p, sizeof word);
    else if constexpr (N == 3) word = Word{p[0], p[1], p[2], 0};
    else if constexpr (N == 2) word = Word{p[0], p[1], 0, 0};
    else word = Word{p[0], 0, 0, 0};
    return word;
  }
  template <int N> static inline X load_x(const R* p) { return load<N>(p); }
  static inline Word times(Word a, X x) { return a * x; }
  static inline R sum(Word a) { return (a[0] + a[2]) + (a[1] + a[3]); }
};
template <class R> struct Piece<complex<R>> {
  static constexpr int MOST = 2;
  using Word = typename Four<R>::type;
  struct X { Word x, turned; };        // turned: i x
  template <int N> static inline Word load(const complex<R>* p) {
    Word word{};
    if constexpr (N == MOST) memcpy(&word, p, sizeof word);
    else word = Word{p->re, p->im, 0, 0};
    return word;
  }
  template <int N> static inline X load_x(const complex<R>* p) {
    const Word x = load<N>(p);
    return {x, __builtin_shufflevector(x, x, 1, 0, 3, 2) * Word{-1, 1, -1, 1}};
  }
  static inline Word times(Word a, X x) {
    return __builtin_shufflevector(a, a, 0, 0, 2, 2) * x.x + __builtin_shufflevector(a, a, 1, 1, 3, 3) * x.turned;
  }
  static inline complex<R> sum(Word a) { return {a[0] + a[2], a[1] + a[3]}; }
};

// The sums of a block row, of blocks of SIZE rows.
template <int SIZE, class T> struct BlockSums {
  using P = Piece<T>;
  static constexpr int MOST = P::MOST, WHOLE = SIZE / MOST, REST = SIZE % MOST;
  typename P::Word sums[SIZE] = {};

  // += B x for one block B.
  inline void add(const T* block, const T* x) {
    typename P::X xs[WHOLE + 1];
#pragma GCC unroll 8
    for (int k = 0; k < WHOLE; ++k) xs[k] = P::template load_x<MOST>(x + k * MOST);
    if constexpr (REST) xs[WHOLE] = P::template load_x<REST>(x + WHOLE * MOST);
#pragma GCC unroll 8
    for (int r = 0; r < SIZE; ++r) {
      const T* row = block + r * SIZE;
      typename P::Word sum = first(row, xs);
#pragma GCC unroll 8
      for (int k = 1; k < WHOLE; ++k) sum += P::times(P::template load<MOST>(row + k * MOST), xs[k]);
      if constexpr (WHOLE && REST) sum += P::times(P::template load<REST>(row + WHOLE * MOST), xs[WHOLE]);
      sums[r] += sum;
    }
  }
  inline T value(int r) const { return P::sum(sums[r]); }

 private:
  static inline typename P::Word first(const T* row, const typename P::X (&xs)[WHOLE + 1]) {
    return P::times(P::template load < WHOLE ? MOST : REST > (row), xs[0]);
  }
};
template <class T> struct BlockSums<1, T> {
  T sum = T(0);
  inline void add(const T* block, const T* x) { sum += block[0] * x[0]; }
  inline T value(int) const { return sum; }
};

// sums += B x for one block B of any size, of which `width` columns count.
template <class T> void add_block(const T* block, const T* x, int64_t size, int64_t width, T* sums) {
  using P = Piece<T>;
  for (int64_t r = 0; r < size; ++r, block += size) {
    typename P::Word sum{};
    int64_t c = 0;
    for (; c + P::MOST <= width; c += P::MOST)
      sum += P::times(P::template load<P::MOST>(block + c), P::template load_x<P::MOST>(x + c));
    T total = P::sum(sum);
    for (; c < width; ++c) total += block[c] * x[c];
    sums[r] += total;
  }
}

// body(S), S a compile-time constant: the size, or 0 for sizes above UNROLLED.
template <class F> auto of_size(int64_t size, const F& body) {
  switch (size) {
    case 1: return body(std::integral_constant<int, 1>());
    case 2: return body(std::integral_constant<int, 2>());
    case 3: return body(std::integral_constant<int, 3>());
    case 4: return body(std::integral_constant<int, 4>());
    case 5: return body(std::integral_constant<int, 5>());
    case 6: return body(std::integral_constant<int, 6>());
    case 7: return body(std::integral_constant<int, 7>());
    case 8: return body(std::integral_constant<int, 8>());
    default: return body(std::integral_constant<int, 0>());
  }
}
