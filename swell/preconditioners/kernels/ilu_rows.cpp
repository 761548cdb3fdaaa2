// Incomplete LU on a CPU: rows one after the other, and by levels. On a GPU rows wait for one another instead. One CSR
// pattern holds L, without its unit diagonal, and U; `diagonal` has the places of the diagonal entries. A pivot of at
// most `tiny` times its row's `scale` is replaced by `replacement` times `scale`. bad[0] becomes the first such row,
// bad[1] the number of such rows.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "pivot.hpp"

namespace {

constexpr int64_t NARROW = 256;        // levels with fewer rows run on one thread
constexpr int64_t SHARE = 64;          // least rows of a level's chunk

// Write diagonal[i] = the place of row i's diagonal entry in `indices`, or −1. Return the number of rows without one.
template <class I> int64_t find_diagonal(Array<const I> indptr, Array<const I> indices, Array<I> diagonal) {
  const auto [missing] = row_sums<int64_t>(diagonal.size, [=](int64_t i, int64_t& missing) {
    int64_t k = indptr[i];
    while (k < indptr[i + 1] && indices[k] != i) ++k;
    const bool stored = k < indptr[i + 1];
    diagonal[i] = stored ? I(k) : I(-1);
    missing += !stored;
  });
  return missing;
}

// A factorisation's arrays; `inverse`: the inverse pivots.
template <class T, class I> struct Rows {
  Array<const I> indptr, indices, diagonal;
  Array<const real_t<T>> scale;
  Array<T> values, inverse;
  double tiny, replacement;

  // Store the pivot of row i, replaced if it is bad. Return true if it was good.
  bool set_pivot(int64_t i, T pivot) const {
    const bool good = is_good(pivot, scale[i], tiny);
    if (!good) pivot = replaced(pivot, scale[i], replacement);
    values[diagonal[i]] = pivot;
    inverse[i] = T(acc_t<T>(1) / acc_t<T>(pivot));
    return good;
  }

  // Factor rows `begin` to `end` − 1 of the CSR matrix `data` in Saad's IKJ order. Return their bad pivots. `row` is a
  // work vector. Its entries outside the current row's pattern are written but never read: a test that skips them would
  // be mispredicted.
  Bad factor(int64_t begin, int64_t end, Array<const T> data, Array<T> row) const {
    Bad bad;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = indptr[i], middle = diagonal[i], last = indptr[i + 1];
      for (int64_t k = first; k < last; ++k) row[indices[k]] = data[k];
      for (int64_t k = first; k < middle; ++k) {
        const int64_t j = indices[k], stop = indptr[j + 1];
        const T l = row[j] * inverse[j];
        values[k] = l;
        for (int64_t m = diagonal[j] + 1; m < stop; ++m) row[indices[m]] -= l * values[m];
      }
      if (!set_pivot(i, row[i])) bad.add(i);
      for (int64_t k = middle + 1; k < last; ++k) values[k] = row[indices[k]];
    }
    return bad;
  }

  // Factor row i in place in `values`, by merging rows. Return true if its pivot was good. The rows that it needs must
  // be done. The values have the bits of `factor`.
  bool eliminate(int64_t i) const {
    const int64_t middle = diagonal[i], end = indptr[i + 1];
    for (int64_t k = indptr[i]; k < middle; ++k) {
      const int64_t j = indices[k], stop = indptr[j + 1];
      const T l = values[k] * inverse[j];
      values[k] = l;
      for (int64_t m = diagonal[j] + 1, p = k + 1; m < stop; ++m) {
        const I c = indices[m];
        while (p < end && indices[p] < c) ++p;
        if (p == end) break;
        if (indices[p] == c) values[p] -= l * values[m];
      }
    }
    return set_pivot(i, values[middle]);
  }
};

// Write `values` = L and U with (L U)ᵢⱼ = aᵢⱼ on the pattern, and `inverse` = the inverse pivots.
//
// `data` has the entries of A. `row` is a work vector of n numbers.
template <class T, class I>
void factor(Array<const I> indptr, Array<const I> indices, Array<const I> diagonal, Array<const T> data,
            Array<const real_t<T>> scale, Array<T> values, Array<T> inverse, Array<T> row, double tiny,
            double replacement, Array<int64_t> bad) {
  const Rows<T, I> rows{indptr, indices, diagonal, scale, values, inverse, tiny, replacement};
  rows.factor(0, inverse.size, data, row).add_to(bad);
}

// Like `factor`, if rows cuts[0] to cuts[1] − 1 need no row before cuts[0]: two threads, then one for the rest. `work`
// has a work vector for each of the two.
template <class T, class I>
void factor_halves(Array<const I> indptr, Array<const I> indices, Array<const I> diagonal, Array<const T> data,
                   Array<const real_t<T>> scale, Array<T> values, Array<T> inverse, Array<const int64_t> cuts,
                   Table<T> work, double tiny, double replacement, Array<int64_t> bad) {
  const Rows<T, I> rows{indptr, indices, diagonal, scale, values, inverse, tiny, replacement};
  Bad found[2];
  parallel_for(inverse.size, 2, [&](int64_t half) {
    found[half] = rows.factor(half ? cuts[0] : 0, cuts[half], data, work[half]);
  });
  for (const Bad& half : found) half.add_to(bad);
  rows.factor(cuts[1], inverse.size, data, work[0]).add_to(bad);
}

// Write depth[i] = the level of row i, from 0: one more than the highest level of the rows that it needs, which are the
// columns left of its diagonal entry. `diagonal` has the places of the diagonal entries.
template <class I>
void find_depths(Array<const I> indptr, Array<const I> indices, Array<const I> diagonal, Array<int64_t> depth) {
  for (int64_t i = 0; i < depth.size; ++i) {
    int64_t deepest = -1;
    for (int64_t k = indptr[i]; k < diagonal[i]; ++k) deepest = std::max(deepest, depth[indices[k]]);
    depth[i] = deepest + 1;
  }
}

// Like `factor`, in place in `values`, which hold A on entry. Threads share the rows sequence[bounds[l]:bounds[l + 1]]
// of level l.
template <class T, class I>
void factor_levels(Array<const I> indptr, Array<const I> indices, Array<const I> diagonal, Array<const real_t<T>> scale,
                   Array<T> values, Array<T> inverse, Array<const I> sequence, Array<const int64_t> bounds, double tiny,
                   double replacement, Array<int64_t> bad) {
  const Rows<T, I> rows{indptr, indices, diagonal, scale, values, inverse, tiny, replacement};
  for (int64_t level = 0; level + 1 < bounds.size; ++level) {
    const int64_t begin = bounds[level], count = bounds[level + 1] - begin;
    const int64_t chunks = count < NARROW ? 1 : std::min(CHUNKS, count / SHARE);
    Bad found[CHUNKS];
    parallel_for(std::max(count, SERIAL), chunks, [&](int64_t chunk) {
      const int64_t end = begin + chunk_begin(count, chunk + 1, chunks);
      for (int64_t t = begin + chunk_begin(count, chunk, chunks); t < end; ++t)
        if (!rows.eliminate(sequence[t])) found[chunk].add(sequence[t]);
    });
    for (int64_t chunk = 0; chunk < chunks; ++chunk) found[chunk].add_to(bad);
  }
}

}  // namespace

KERNELS("swell.preconditioners.ilu_rows", INDICES(find_diagonal), VALUES_INDICES(factor), VALUES_INDICES(factor_halves),
        INDICES(find_depths), VALUES_INDICES(factor_levels))
