// ILUT of entries and of blocks on the host; CPU only, since each row depends on what earlier rows keep.
#include <math.h>

#include <algorithm>
#include <vector>

#include "../../core/native/launcher.hpp"
#include "block_lu.hpp"

namespace {

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

// Write `ptr`, `columns`, `values` of L, without its unit diagonal, and U together, columns ascending; row after row
// from `first` on, as long as `columns` has room for another and the entries do not exceed `limit`. Return the first
// row that is not written, n after the last.
//
// A is in CSR. Entries of row i below `drop` times its 2-norm are dropped; the largest `fill` / 2 times as many as the
// row has in A are kept in each of L and U. A pivot of at most `tiny` times scale[i] is replaced by `replacement` times
// scale[i]; bad[0] becomes the first such row, bad[1] their number. `middle` has the places of the diagonal entries,
// `inverse` the inverse pivots.
//
// Row i is a linked list of ascending columns, where n marks head and end, with a dense vector of values.
template <class T, class I>
int64_t factor(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const real_t<T>> scale,
               double drop, double fill, double tiny, double replacement, Array<int64_t> bad, int64_t limit,
               int64_t first, Array<int64_t> ptr, Array<int64_t> middle, Array<T> inverse, Array<int64_t> columns,
               Array<T> values) {
  const int64_t n = indptr.size - 1;
  std::vector<int64_t> after(n + 1), member(n, -1);
  std::vector<T> row(n);
  std::vector<real_t<T>> sizes, sorted;
  const auto size = [=](int64_t k) { return modulus(values[k]); };
  for (int64_t i = first; i < n; ++i) {
    const int64_t length = indptr[i + 1] - indptr[i];
    int64_t at = n, count = ptr[i], m;
    double norm2 = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      after[at] = j;
      at = j, member[j] = i, row[j] = data[k];
      const real_t<T> own = modulus(data[k]);
      norm2 += own * own;
    }
    after[at] = n;
    const double threshold = drop * sqrt(norm2);
    const int64_t most = int64_t(std::min(ceil(fill * length / 2), double(n)));
    for (m = after[n]; m < i; m = after[m]) {
      if (modulus(row[m]) < threshold) continue;
      const T l = row[m] * inverse[m];
      at = m;                          // the list is searched from here: columns of both ascend
      for (int64_t k = middle[m] + 1; k < ptr[m + 1]; ++k) {
        const int64_t j = columns[k];
        if (member[j] == i) {
          row[j] -= l * values[k];
          continue;
        }
        while (after[at] < j) at = after[at];
        after[j] = after[at], after[at] = j;
        member[j] = i, row[j] = -l * values[k];
      }
      if (count == columns.size) return i;
      columns[count] = m, values[count++] = l;
    }
    count = keep_largest(columns, values.data, 1, ptr[i], count, most, sizes, sorted, size);
    const int64_t diagonal = count;
    T pivot = row[i];
    const bool good = is_good(pivot, scale[i], tiny);
    if (!good) pivot = replaced(pivot, scale[i], replacement);
    row[i] = pivot;
    for (; m < n; m = after[m]) {      // from the diagonal on, which is always kept
      if (m != i && modulus(row[m]) < threshold) continue;
      if (count == columns.size) return i;
      columns[count] = m, values[count++] = row[m];
    }
    if (!good) bad[0] = std::min(bad[0], i), ++bad[1];
    inverse[i] = T(acc_t<T>(1) / acc_t<T>(pivot)), middle[i] = diagonal;
    ptr[i + 1] = keep_largest(columns, values.data, 1, diagonal + 1, count, most, sizes, sorted, size);
    if (ptr[i + 1] > limit) return i + 1;
  }
  return n;
}

constexpr double SMALLEST = 1e-150;    // ratio of two scales in a block row, so that its square is not zero

// The squared Frobenius norm of a block whose row r is divided by scale[r].
template <class T, class R> double norm2(const T* block, const R* scale, int64_t size) {
  double total = 0;
  for (int64_t r = 0; r < size; ++r)
    for (int64_t c = 0; c < size; ++c) {
      const auto ratio = modulus(block[r * size + c]) / scale[r];        // squares alone underflow
      total += ratio * ratio;
    }
  return total;
}

// The strict triangle of L or of U: row pointers, ascending block columns and blocks, with room for more.
template <class T> struct Side {
  Array<int64_t> ptr, columns;
  Blocks<T> blocks;

  // Append a block to the `count` ones. Return false if there is no room.
  bool append(int64_t& count, int64_t column, const T* block, int64_t area) const {
    if (count == columns.size) return false;
    columns[count] = column;
    std::copy(block, block + area, blocks[count++]);
    return true;
  }
};

// Write L, U and `inverse`, the inverse diagonal blocks of U: block row after block row from `first` on, as long as
// there is room for another block and the blocks do not exceed `limit`. Return the first block row that is not written,
// n after the last.
//
// `lower` to `below` are a `BlockFactor` that holds A, in place of a factor. Norms are Frobenius norms after division
// by `scale`, the largest modulus of each row of A. Blocks of block row i below `drop` times its norm are dropped; the
// largest `fill` / 2 times as many as it has in A are kept in each of L and U. `invert` says how a tiny pivot is
// replaced; bad[0] becomes the first block row with one, bad[1] their number.
//
// Block row i is a linked list of ascending columns, where n marks head and end, with a dense vector of blocks.
template <class T, class I>
int64_t factor_blocks(Array<const I> lower, Array<const I> upper, Array<const I> indices, Blocks<const T> data,
                      int64_t below, Array<const real_t<T>> scale, double drop, double fill, double tiny,
                      double replacement, Array<int64_t> bad, int64_t limit, int64_t first, Array<int64_t> lptr,
                      Array<int64_t> lcolumns, Blocks<T> lblocks, Blocks<T> inverse, Array<int64_t> uptr,
                      Array<int64_t> ucolumns, Blocks<T> ublocks) {
  const int64_t n = lower.size - 1, size = data.rows, area = size * size;
  require_size(size);
  const Side<T> L{lptr, lcolumns, lblocks}, U{uptr, ucolumns, ublocks};
  std::vector<int64_t> after(n + 1), member(n, -1);
  std::vector<T> row(n * area);
  std::vector<double> sizes, sorted;
  T work[LARGEST * LARGEST];
  double of_L[LARGEST];                // L has no units: a block row of it is weighed by ratios of its scales
  const auto block = [&](int64_t j) { return row.data() + j * area; };
  for (int64_t i = first; i < n; ++i) {
    const real_t<T>* const own = scale.data + i * size;
    const double largest = *std::max_element(own, own + size);
    for (int64_t r = 0; r < size; ++r) of_L[r] = own[r] / largest < SMALLEST ? SMALLEST : own[r] / largest;
    const int64_t left = lower[i + 1] - lower[i], length = left + 1 + upper[i + 1] - upper[i];
    int64_t at = n, m;
    double total = 0;
    for (int64_t e = 0; e < length; ++e) {
      const int64_t k = e < left ? lower[i] + e : e == left ? below + i : upper[i] + e - left - 1, j = indices[k];
      after[at] = j;
      at = j, member[j] = i;
      std::copy(data[k], data[k] + area, block(j));
      total += norm2(data[k], own, size);
    }
    after[at] = n;
    const double threshold = drop * drop * total;
    const int64_t most = int64_t(std::min(ceil(fill * length / 2), double(n)));
    int64_t count = lptr[i];
    for (m = after[n]; m < i; m = after[m]) {
      if (norm2(block(m), own, size) < threshold) continue;
      std::copy(block(m), block(m) + area, work);
      multiply(work, inverse[m], size);
      at = m;                          // the list is searched from here: columns of both ascend
      for (int64_t k = uptr[m]; k < uptr[m + 1]; ++k) {
        const int64_t j = ucolumns[k];
        if (member[j] != i) {
          while (after[at] < j) at = after[at];
          after[j] = after[at], after[at] = j;
          member[j] = i;
          std::fill(block(j), block(j) + area, T(0));
        }
        add_product<-1>(work, ublocks[k], block(j), size);
      }
      if (!L.append(count, m, work, area)) return i;
    }
    lptr[i + 1] = keep_largest(lcolumns, lblocks.data, area, lptr[i], count, most, sizes, sorted,
                               [&](int64_t k) { return norm2(lblocks[k], of_L, size); });
    const int64_t tinies = invert(block(i), inverse[i], own, size, tiny, replacement);
    count = uptr[i];
    for (m = after[i]; m < n; m = after[m]) {
      if (norm2(block(m), own, size) < threshold) continue;
      if (!U.append(count, m, block(m), area)) return i;
    }
    Bad found;
    found.add(i, tinies);
    found.add_to(bad);
    uptr[i + 1] = keep_largest(ucolumns, ublocks.data, area, uptr[i], count, most, sizes, sorted,
                               [&](int64_t k) { return norm2(ublocks[k], own, size); });
    if (lptr[i + 1] + uptr[i + 1] > limit) return i + 1;
  }
  return n;
}

}  // namespace

KERNELS("swell.preconditioners.ilut", VALUES_INDICES(factor), VALUES_INDICES(factor_blocks))
