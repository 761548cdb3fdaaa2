// Products and inverses of dense blocks, row-major, for incomplete LU factorisations on a CPU.
#pragma once
#include <algorithm>

#include "../../core/native/block_size.hpp"
#include "pivot.hpp"

// row += SIGN a b, for one row `a` and a block b.
template <int SIGN, class T, class S> INLINE void add_row_product(const T* a, const T* b, T* row, S size) {
  for (int64_t k = 0; k < size; ++k) {
    row_by_row(size);
    const T l = SIGN > 0 ? a[k] : -a[k];
    for (int64_t j = 0; j < size; ++j) row[j] += l * b[k * size + j];
  }
}

// c += SIGN a b for blocks. c must be neither a nor b.
template <int SIGN, class T, class S> INLINE void add_product(const T* a, const T* b, T* c, S size) {
  T row[room<S>];
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) row[j] = c[i * size + j];
    add_row_product<SIGN>(a + i * size, b, row, size);
    for (int64_t j = 0; j < size; ++j) c[i * size + j] = row[j];
  }
}

// a = a b for blocks, row by row.
template <class T, class S> INLINE void multiply(T* a, const T* b, S size) {
  T row[room<S>];
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) row[j] = T(0);
    add_row_product<1>(a + i * size, b, row, size);
    for (int64_t j = 0; j < size; ++j) a[i * size + j] = row[j];
  }
}

// Write the inverse of a diagonal block to `inverse`, by Gauss–Jordan elimination. Return the number of tiny pivots.
// Both may be the same block.
//
// The pivot is the entry of a column that is largest relative to its row's `scale`. A pivot is tiny if it is at most
// `tiny` times this scale. It is then replaced by `replacement` times the scale.
template <class T>
int64_t invert(const T* block, T* inverse, const real_t<T>* scale, int64_t size, double tiny, double replacement) {
  int64_t order[LARGEST], count = 0;
  T work[LARGEST];
  if (block != inverse) std::copy(block, block + size * size, inverse);
  for (int64_t r = 0; r < size; ++r) order[r] = r;
  for (int64_t k = 0; k < size; ++k) {
    T* const row = inverse + k * size;
    int64_t best = k;
    double most = -1;
    for (int64_t r = k; r < size; ++r) {
      const real_t<T> relative = modulus(inverse[r * size + k]) / scale[order[r]];
      if (relative > most) best = r, most = relative;
    }
    if (best != k) {
      std::swap(order[k], order[best]);
      std::swap_ranges(row, row + size, inverse + best * size);
    }
    T pivot = row[k];
    if (!is_good(pivot, scale[order[k]], tiny)) {
      ++count;
      pivot = replaced(pivot, scale[order[k]], replacement);
    }
    const acc_t<T> factor = acc_t<T>(1) / acc_t<T>(pivot);
    row[k] = T(1);
    for (int64_t c = 0; c < size; ++c) row[c] = T(acc_t<T>(row[c]) * factor);
    for (int64_t r = 0; r < size; ++r) {
      if (r == k) continue;
      T* const other = inverse + r * size;
      const T l = other[k];
      other[k] = T(0);
      for (int64_t c = 0; c < size; ++c) other[c] -= l * row[c];
    }
  }
  for (int64_t r = 0; r < size; ++r) {           // row exchanges of the block are column exchanges of the inverse
    T* const row = inverse + r * size;
    for (int64_t k = 0; k < size; ++k) work[order[k]] = row[k];
    std::copy(work, work + size, row);
  }
  return count;
}
