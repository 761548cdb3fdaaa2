// What a row of a threshold factorisation keeps, on a CPU.
#pragma once
#include <math.h>

#include <algorithm>
#include <vector>

#include "../../core/native/array.hpp"

// Keep the `most` largest of the entries `start` to `end` − 1: move them, in their order, to `start` and the places
// behind it, in `columns` and `values`. Return their end. An entry has `area` numbers in `values`; size(k) is the
// modulus, or norm, of entry k. `sizes` and `sorted` are work vectors.
template <class T, class R, class F>
int64_t keep_largest(Array<int64_t> columns, T* values, int64_t area, int64_t start, int64_t end, int64_t most,
                     std::vector<R>& sizes, std::vector<R>& sorted, const F& size) {
  if (end - start <= most) return end;
  sizes.clear();
  for (int64_t k = start; k < end; ++k) sizes.push_back(size(k));
  R least = INFINITY;
  if (most > 0) {
    sorted = sizes;
    const auto bound = sorted.end() - most;
    std::nth_element(sorted.begin(), bound, sorted.end(), [](auto a, auto b) { return a < b || (b != b && a == a); });
    least = *bound;
  }
  int64_t ties = most, at = start;
  for (const R own : sizes) ties -= own > least;
  for (int64_t k = start; k < end; ++k) {
    const R own = sizes[k - start];
    if (!(own > least || (own == least && ties > 0))) continue;
    ties -= own == least;
    columns[at] = columns[k];
    if (at != k) std::copy(values + k * area, values + (k + 1) * area, values + at * area);
    ++at;
  }
  return at;
}
