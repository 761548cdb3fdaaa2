// Block incomplete LU on a CPU: one block row after the other or by levels, in place, and the fixed-point sweeps.
//
// `lower`, `upper`, `indices` and `blocks` are a `BlockFactor` (block_factor.py one folder up). `blocks` holds A's
// blocks, row-major; N of L, the inverse diagonal blocks, and U overwrite them. `size`: rows of a block. `diagonal` is
// the place of the first diagonal block. bad[0] becomes the first block row with a tiny pivot, and the number of tiny
// pivots is added to bad[1]; `invert` explains `scale`, `tiny` and `replacement`.
#include <vector>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "../../formats/kernels/rows.hpp"
#include "block_lu.hpp"

namespace {

constexpr int64_t NARROW = 16;         // least block rows of a level for a thread

// Write A's entries to their places in `blocks`, which is zero elsewhere. A is in CSR: `indptr`, `indices`, `data`.
// `place` has the block row of the factor of each block row of A; empty for equal numbers. `columns` are the factor's
// block columns.
template <class T, class I, class J>
void load(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const J> place,
          Array<const J> lower, Array<const J> upper, Array<const J> columns, Blocks<T> blocks, int64_t size,
          int64_t diagonal) {
  const auto placed = [=](int64_t i) { return place.size ? int64_t(place[i]) : i; };
  each(indptr.size - 1, [=](int64_t row) {
    const int64_t i = placed(row / size), end = indptr[row + 1];
    int64_t begin = -size;             // of the columns of the block of the entry before
    T* own = nullptr;                  // this row's part of that block
    for (int64_t e = indptr[row]; e < end; ++e) {
      const int64_t c = indices[e];
      if (c < begin || c >= begin + size) {
        const int64_t column = c / size, j = placed(column);
        begin = column * size;
        own = blocks[j < i ? place_of(columns, lower[i], lower[i + 1], j)
                     : j > i ? place_of(columns, upper[i], upper[i + 1], j) : diagonal + i] + row % size * size;
      }
      own[c - begin] = data[e];
    }
  });
}

// A factorisation's arrays. S: the type of the size.
template <class T, class I, class S> struct Rows {
  Array<const I> lower, upper, indices;
  T* blocks;
  S size;
  int64_t diagonal;
  Array<const real_t<T>> scale;
  double tiny, replacement;

  T* block(int64_t k) const { return blocks + k * size * size; }

  // Factor block row i in place, in Saad's IKJ order with blocks as entries, and invert its diagonal block. Return the
  // number of its tiny pivots. The block rows that it needs must be done. `place`: a zero for each block row.
  __attribute__((noinline)) int64_t factor(int64_t i, int64_t* place) const {
    const int64_t begin = lower[i], middle = lower[i + 1], own = diagonal + i, first = upper[i], end = upper[i + 1];
    for (int64_t k = begin; k < middle; ++k) place[indices[k]] = k + 1;
    place[i] = own + 1;
    for (int64_t k = first; k < end; ++k) place[indices[k]] = k + 1;
    for (int64_t k = begin; k < middle; ++k) {
      const int64_t j = indices[k], stop = upper[j + 1];
      multiply(block(k), block(diagonal + j), size);
      for (int64_t m = upper[j]; m < stop; ++m)
        if (const int64_t to = place[indices[m]]) add_product<-1>(block(k), block(m), block(to - 1), size);
    }
    for (int64_t k = begin; k < middle; ++k) place[indices[k]] = 0;
    place[i] = 0;
    for (int64_t k = first; k < end; ++k) place[indices[k]] = 0;
    return invert(block(own), block(own), scale.data + i * size, size, tiny, replacement);
  }
};

// Overwrite `blocks`, A's blocks, by L, U and the inverse diagonal blocks with (L U)ᵢⱼ = Aᵢⱼ on the pattern, one block
// row after the other.
template <class T, class I>
void factor(Array<const I> lower, Array<const I> upper, Array<const I> indices, Blocks<T> blocks, int64_t size,
            int64_t diagonal, Array<const real_t<T>> scale, double tiny, double replacement, Array<int64_t> bad) {
  with_size<I>(size, [&](auto rows) {
    const Rows<T, I, decltype(rows)> A{lower, upper, indices, blocks.data, rows, diagonal, scale, tiny, replacement};
    std::vector<int64_t> place(lower.size - 1);
    Bad found;
    for (int64_t i = 0; i + 1 < lower.size; ++i) found.add(i, A.factor(i, place.data()));
    found.add_to(bad);
  });
}

// Like `factor`, and equal to the bit, but the threads share the block rows sequence[bounds[l]:bounds[l + 1]] of level
// l.
template <class T, class I>
void factor_levels(Array<const I> lower, Array<const I> upper, Array<const I> indices, Blocks<T> blocks, int64_t size,
                   int64_t diagonal, Array<const real_t<T>> scale, Array<const I> sequence,
                   Array<const int64_t> bounds, double tiny, double replacement, Array<int64_t> bad) {
  with_size<I>(size, [&](auto rows) {
    const Rows<T, I, decltype(rows)> A{lower, upper, indices, blocks.data, rows, diagonal, scale, tiny, replacement};
    const int64_t most = std::min<int64_t>(threads(), CHUNKS), n = lower.size - 1;
    std::vector<int64_t> place(most * n);
    for (int64_t level = 0; level + 1 < bounds.size; ++level) {
      const int64_t begin = bounds[level], count = bounds[level + 1] - begin;
      const int64_t chunks = std::max<int64_t>(1, std::min(most, count / NARROW));
      Bad found[CHUNKS];
      parallel_for(std::max(count, SERIAL), chunks, [&](int64_t chunk) {
        const int64_t end = begin + chunk_begin(count, chunk + 1, chunks);
        for (int64_t t = begin + chunk_begin(count, chunk, chunks); t < end; ++t)
          found[chunk].add(sequence[t], A.factor(sequence[t], place.data() + chunk * n));
      });
      for (int64_t chunk = 0; chunk < chunks; ++chunk) found[chunk].add_to(bad);
    }
  });
}

// Replace the blocks Uᵢⱼ, from place `first` on, by N = Uᵢⱼ Uⱼⱼ⁻¹.
template <class T, class I>
void scale_columns(Array<const I> indices, Blocks<T> blocks, int64_t size, int64_t diagonal, int64_t first) {
  with_size<I>(size, [&](auto rows) {
    const int64_t count = indices.size - first;
    ranges(count, count * rows, [=](int64_t begin, int64_t end) {
      for (int64_t k = first + begin; k < first + end; ++k) multiply(blocks[k], blocks[diagonal + indices[k]], rows);
    });
  });
}

// Write the inverses of the diagonal blocks, from place `diagonal` of `blocks` on, to `inverse`, with tiny pivots
// replaced.
template <class T>
void invert_blocks(Blocks<const T> blocks, Blocks<T> inverse, int64_t size, int64_t diagonal,
                   Array<const real_t<T>> scale, double tiny, double replacement, Array<int64_t> bad) {
  require_size(size);
  const int64_t count = inverse.count, chunks = chunks_of(count);
  Bad found[CHUNKS];
  parallel_for(count * size, chunks, [&](int64_t chunk) {
    for (int64_t i = chunk_begin(count, chunk, chunks); i < chunk_begin(count, chunk + 1, chunks); ++i)
      found[chunk].add(i, invert(blocks[diagonal + i], inverse[i], scale.data + i * size, size, tiny, replacement));
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) found[chunk].add_to(bad);
}

// One sweep of Lᵢⱼ = (Aᵢⱼ − Σ Lᵢₘ Uₘⱼ) Uⱼⱼ⁻¹ and Uᵢⱼ = Aᵢⱼ − Σ Lᵢₘ Uₘⱼ, over m < min(i, j), from the old factors and
// inverses to new factors. It merges row i of L and the strict part of column j of U up to min(i, j).
//
// `data` is A, `old` and `fresh` are the old and new factors on one pattern; `inverse` has the blocks Uⱼⱼ⁻¹ of the old
// one. Writes `fresh` only. rows[k] is the block row of block k. Column j of U has its block rows and places from
// starts[j] to starts[j + 1] − 1, in `column_rows` and `places`.
template <class T, class I>
void fixed_point(Array<const I> lower, Array<const I> indices, Array<const I> rows, Array<const I> starts,
                 Array<const I> column_rows, Array<const I> places, Blocks<const T> data, Blocks<const T> inverse,
                 Blocks<const T> old, Blocks<T> fresh, int64_t size) {
  require_size(size);
  ranges(indices.size, indices.size * size, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = rows[k], j = indices[k], stop = std::min(i, j), p_end = lower[i + 1], q_end = starts[j + 1];
      T* const total = fresh[k];
      std::copy(data[k], data[k] + size * size, total);
      for (int64_t p = lower[i], q = starts[j]; p < p_end && q < q_end && indices[p] < stop && column_rows[q] < stop;) {
        const I a = indices[p], b = column_rows[q];
        if (a == b) add_product<-1>(old[p], old[places[q]], total, size);
        p += a <= b;
        q += b <= a;
      }
      if (i > j) multiply(total, inverse[j], size);
    }
  });
}

}  // namespace

#define LOADS(T) INSTANCE(load, T, int32_t, int32_t), INSTANCE(load, T, int32_t, int64_t), \
    INSTANCE(load, T, int64_t, int32_t), INSTANCE(load, T, int64_t, int64_t)
KERNELS("swell.preconditioners.block_ilu", LOADS(double), LOADS(float), LOADS(complex<double>), LOADS(complex<float>),
        VALUES_INDICES(factor), VALUES_INDICES(factor_levels), VALUES_INDICES(scale_columns), VALUES(invert_blocks),
        VALUES_INDICES(fixed_point))
