// The iteration of a line: a row of L, a column of U, or a right-hand side. Final entries are not computed again.
#pragma once
#include "matrix.hpp"

// sums[c] += Σ v[k] e[k][c] over k from `begin` to `end`, k < c, for c from `from` to `to`.
template <class T>
inline void add_products(Table<const T> e, const T* v, int64_t begin, int64_t end, int64_t from, int64_t to, T* sums) {
  for (int64_t k = begin; k < end; ++k) {
    const T *const row = e[k].data, l = v[k];
#pragma GCC ivdep
    for (int64_t c = std::max(from, k + 1); c < to; ++c) sums[c] += l * row[c];
  }
}

// Iterate v[c] = (a[c] − Σ v[k] e[k][c]) / e[c][c] over k < c, in place, for c from `front` to `end`, until nothing
// changes by more than `tolerance`; entries before `front` are final. It divides only with `divide`. `scratch`: 2 `end`
// numbers. Returns the number of iterations.
template <class T>
int64_t settle_line(const T* a, T* v, T* scratch, Table<const T> e, bool divide, int64_t front, int64_t end,
                    double tolerance) {
  T *const base = scratch, *const sums = scratch + end;
  std::fill(base, base + end, T(0));
  add_products(e, v, 0, front, front, end, base);
  int64_t iterations = 0;
  for (; front < end; ++iterations) {
    std::copy(base + front, base + end, sums + front);
    add_products(e, v, front, end, front, end, sums);
    int64_t changed = end;
    for (int64_t c = end; c-- > front;) {
      T value = a[c] - sums[c];
      if (divide && e[c][c] != T(0)) value = value / e[c][c];
      if (!(size(value - v[c]) <= tolerance)) changed = c;         // a NaN has not settled
      v[c] = value;
    }
    const int64_t after = std::max(changed, front + 1);            // the first entry needed final ones only
    add_products(e, v, front, after, after, end, base);
    front = after;
  }
  return iterations;
}
