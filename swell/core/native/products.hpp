// Loops over a tile of several vectors, the rows of tables: each load of a vector serves several others. Every result
// has the same bits for any processor, as in lanes.hpp.
#pragma once
#include <utility>
#include <vector>

#include "lanes.hpp"

// N values in the type of their sums.
template <int N> INLINE Pack<double, N> some(const double* p) { return Memory<N>::load(p); }
template <int N> INLINE Pack<double, N> some(const float* p) { return wide(Memory<N>::load(p)); }
template <int N, class R> INLINE complex<Pack<double, N>> some(const complex<R>* p) {
  Pack<R, N> re, im;
  Memory<N>::split(&p->re, re, im);
  return {wide(re), wide(im)};
}

template <class P> INLINE P conj_times(P a, P b) { return a * b; }
template <class P> INLINE complex<P> conj_times(P a, complex<P> b) { return {a * b.re, a * b.im}; }
template <class P> INLINE complex<P> conj_times(complex<P> a, complex<P> b) {
  return {a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re};
}

template <int N> inline double total(Pack<double, N> a) {
  double lane[N];
  Memory<N>::store(lane, a);
  for (int apart = N / 2; apart; apart /= 2)
    for (int k = 0; k < apart; ++k) lane[k] += lane[k + apart];
  return lane[0];
}
template <int N> inline complex<double> total(complex<Pack<double, N>> a) { return {total(a.re), total(a.im)}; }

template <class A, int N> struct Lane_sums { using type = Pack<double, N>; };
template <class A, int N> struct Lane_sums<complex<A>, N> { using type = complex<Pack<double, N>>; };
template <class F, int N, int> INLINE F none() {
  if constexpr (std::is_same_v<F, Pack<double, N>>) return F(0.0);
  else return F{Pack<double, N>(0.0), Pack<double, N>(0.0)};
}

template <class F, class V> INLINE void add_both(F& of_x, F& of_y, V v, F x, F y) {
  of_x = of_x + conj_times(v, x), of_y = of_y + conj_times(v, y);
}

// xs[k] += (v_k, x) and, if TWO, ys[k] += (v_k, y), over n values, for the rows v_k of `V` given by `K`. A sum has N
// lanes.
template <bool TWO, int N, int... K, class S, class T, class A>
inline void add_products(std::integer_sequence<int, K...>, const S* const* V, const T* x, const T* y, int64_t n, A* xs,
                         A* ys) {
  using F = typename Lane_sums<A, N>::type;
  const S* const v[] = {V[K]...};
  F of_x[] = {none<F, N, K>()...}, of_y[] = {none<F, N, K>()...};
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto xi = some<N>(x + i);
    if constexpr (TWO) {
      const auto yi = some<N>(y + i);
      (add_both(of_x[K], of_y[K], some<N>(v[K] + i), xi, yi), ...);
    } else {
      ((of_x[K] = of_x[K] + conj_times(some<N>(v[K] + i), xi)), ...);
    }
  }
  ((xs[K] += total(of_x[K])), ...);
  if constexpr (TWO) ((ys[K] += total(of_y[K])), ...);
  for (; i < n; ++i) {
    ((xs[K] += conj_times(wide(v[K][i]), wide(x[i]))), ...);
    if constexpr (TWO) ((ys[K] += conj_times(wide(v[K][i]), wide(y[i]))), ...);
  }
}

// The same for all rows of V from `begin` to `end`, n values from `lo` on: MOST rows at once, whose sums fit in the
// registers, then the others with as many sums in more lanes.
template <bool TWO, int MOST = 0, class S, class T, class A>
inline void add_row_products(Table<const S> V, int64_t begin, int64_t end, int64_t lo, int64_t n, const T* x,
                             const T* y, A* xs, A* ys) {
  constexpr int FIT = 8 / (scalar<A>::parts * (TWO ? 2 : 1)), ROWS = MOST ? MOST : FIT < 4 ? FIT : 4;
  int64_t k = begin;
  for (; k + ROWS <= end; k += ROWS) {
    const S* rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = V[k + r].data + lo;
    add_products<TWO, 4 * FIT / ROWS>(std::make_integer_sequence<int, ROWS>(), rows, x, y, n, xs + (k - begin),
                                      ys + (k - begin));
  }
  if constexpr (ROWS > 1)
    if (k < end) add_row_products<TWO, ROWS / 2>(V, k, end, lo, n, x, y, xs + (k - begin), ys + (k - begin));
}

// Write `count` sums over n rows to `out`: add(lo, rows, sums) adds what the tile of `rows` rows from `lo` on gives.
template <class A, class F> void tile_sums(int64_t n, int64_t tile, int64_t count, Array<A> out, const F& add) {
  const int64_t tiles = (n + tile - 1) / tile, parts = std::min(tiles, CHUNKS);
  std::vector<A> partial(parts * count, A(0));
  A* const all = partial.data();
  parallel_for(n, parts, [=](int64_t part) {
    for (int64_t k = chunk_begin(tiles, part, parts); k < chunk_begin(tiles, part + 1, parts); ++k)
      add(k * tile, std::min(n, (k + 1) * tile) - k * tile, all + part * count);
  });
  for (int64_t j = 0; j < count; ++j) {
    out[j] = A(0);
    for (int64_t part = 0; part < parts; ++part) out[j] += all[part * count + j];
  }
}

// body(lo, hi) for tiles of `tile` rows that cover 0 to rows − 1.
template <class F> void tiles(int64_t rows, int64_t tile, const F& body) {
  ranges((rows + tile - 1) / tile, rows, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) body(k * tile, std::min(rows, (k + 1) * tile));
  });
}

// body(i) for all rows; `i` is a Lanes or a Tail for complex numbers too, unlike in `elements`: a body that loops over
// vectors is no loop that the compiler could vectorise.
template <class F> void packs(int64_t rows, const F& body) {
  ranges((rows + LANES - 1) / LANES, rows, [body, rows](int64_t begin, int64_t end) {
    int64_t i = LANES * begin;
    for (; i + LANES <= std::min(rows, LANES * end); i += LANES) body(Lanes{i});
    if (i < LANES * end) body(Tail{i, int(rows - i)});
  });
}

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// body(i) for the rows from 0 to n − 1 of a tile of vectors of T, as in `elements`. The vectors do not overlap.
template <class T, class F> INLINE void tile_elements(int64_t n, const F& body) {
  if constexpr (scalar<T>::parts > 1) {
    INDEPENDENT
    for (int64_t i = 0; i < n; ++i) body(i);
  } else {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) body(Lanes{i});
    if (i < n) body(Tail{i, int(n - i)});
  }
}

// Values of type B in the type T.
template <class T, class B, class P> INLINE auto as(const P& value) {
  if constexpr (std::is_same_v<T, B>) return value;
  else return wide(value);
}

// FourRows rows of V from row k on; row end − 1 replaces those from `end` on, and its coefficients are then 0.
template <class T, class B> struct FourRows {
  Array<const B> v[4];
  FourRows(Table<const B> V, int64_t k, int64_t end, int64_t lo)
      : v{V[k].from(lo), V[std::min(k + 1, end - 1)].from(lo), V[std::min(k + 2, end - 1)].from(lo),
          V[std::min(k + 3, end - 1)].from(lo)} {}
};
template <class T> struct Coefficients {
  T c[4];
  template <class A> Coefficients(Array<const A> from, int64_t k, int64_t end) {
    for (int r = 0; r < 4; ++r) c[r] = k + r < end ? T(from[k + r]) : T(0);
  }
};
template <class T, class B, class I> INLINE auto combined(const FourRows<T, B>& rows, const Coefficients<T>& by, I i) {
  return (by.c[0] * as<T, B>(load(rows.v[0], i)) + by.c[1] * as<T, B>(load(rows.v[1], i)))
      + (by.c[2] * as<T, B>(load(rows.v[2], i)) + by.c[3] * as<T, B>(load(rows.v[3], i)));
}
