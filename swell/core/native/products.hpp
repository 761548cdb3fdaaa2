// Loops over a tile of several vectors, the rows of tables: each load of a vector serves several others. Every result
// has the same bits for any processor, as those of lanes.hpp.
#pragma once
#include <utility>

#include "lanes.hpp"

// Four values in the type of their sums; a register holds as many sums as a loop needs.
INLINE Pack<double, 4> four(const double* p) { return Memory<4>::load(p); }
INLINE Pack<double, 4> four(const float* p) { return wide(Memory<4>::load(p)); }
template <class R> INLINE complex<Pack<double, 4>> four(const complex<R>* p) {
  Pack<R, 4> re, im;
  Memory<4>::split(&p->re, re, im);
  return {wide(re), wide(im)};
}

template <class P> INLINE P conj_times(P a, P b) { return a * b; }
template <class P> INLINE complex<P> conj_times(P a, complex<P> b) { return {a * b.re, a * b.im}; }
template <class P> INLINE complex<P> conj_times(complex<P> a, complex<P> b) {
  return {a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re};
}

inline double total(Pack<double, 4> a) {
  double lane[4];
  Memory<4>::store(lane, a);
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}
inline complex<double> total(complex<Pack<double, 4>> a) { return {total(a.re), total(a.im)}; }

template <class A> struct fours { using type = Pack<double, 4>; };
template <class A> struct fours<complex<A>> { using type = complex<Pack<double, 4>>; };
template <class F, int> INLINE F none() {
  if constexpr (std::is_same_v<F, Pack<double, 4>>) return F(0.0);
  else return F{Pack<double, 4>(0.0), Pack<double, 4>(0.0)};
}

template <class F, class V> INLINE void add_both(F& of_x, F& of_y, V v, F x, F y) {
  of_x = of_x + conj_times(v, x), of_y = of_y + conj_times(v, y);
}

// xs[k] += (v_k, x) and, unless y is null, ys[k] += (v_k, y), over n values, for the rows v_k of `V` given by `K`.
template <bool TWO, int... K, class S, class T, class A>
inline void add_products(std::integer_sequence<int, K...>, const S* const* V, const T* x, const T* y, int64_t n, A* xs,
                         A* ys) {
  using F = typename fours<A>::type;
  const S* const v[] = {V[K]...};
  F of_x[] = {none<F, K>()...}, of_y[] = {none<F, K>()...};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const auto xi = four(x + i);
    if constexpr (TWO) {
      const auto yi = four(y + i);
      (add_both(of_x[K], of_y[K], four(v[K] + i), xi, yi), ...);
    } else {
      ((of_x[K] = of_x[K] + conj_times(four(v[K] + i), xi)), ...);
    }
  }
  ((xs[K] += total(of_x[K])), ...);
  if constexpr (TWO) ((ys[K] += total(of_y[K])), ...);
  for (; i < n; ++i) {
    ((xs[K] += conj_times(wide(v[K][i]), wide(x[i]))), ...);
    if constexpr (TWO) ((ys[K] += conj_times(wide(v[K][i]), wide(y[i]))), ...);
  }
}

// The same for all rows of V from `begin` to `end`, n values from `lo` on.
template <bool TWO, class S, class T, class A>
inline void add_row_products(Table<const S> V, int64_t begin, int64_t end, int64_t lo, int64_t n, const T* x,
                             const T* y, A* xs, A* ys) {
  constexpr int ROWS = scalar<A>::parts * (TWO ? 2 : 1) > 2 ? 2 : 4;         // whose sums fit in the registers
  for (int64_t k = begin; k < end; k += ROWS) {
    const S* rows[ROWS];
    A to_x[ROWS], to_y[ROWS];
    for (int r = 0; r < ROWS; ++r)
      rows[r] = V[std::min(k + r, end - 1)].data + lo, to_x[r] = to_y[r] = A(0);
    add_products<TWO>(std::make_integer_sequence<int, ROWS>(), rows, x, y, n, to_x, to_y);
    for (int r = 0; r < ROWS && k + r < end; ++r) {
      xs[k - begin + r] += to_x[r];
      if constexpr (TWO) ys[k - begin + r] += to_y[r];
    }
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

// body(i) for the rows from 0 to n − 1 of a tile of vectors of T, as in `elements`. The vectors do not overlap.
template <class T, class F> INLINE void tile_elements(int64_t n, const F& body) {
  if constexpr (scalar<T>::parts > 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) body(i);
  } else {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) body(Lanes{i});
    if (i < n) body(Tail{i, int(n - i)});
  }
}
