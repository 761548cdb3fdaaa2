// ILUT on the host; CPU only, since each row depends on the entries that earlier rows keep.
#include <algorithm>
#include <vector>

#include "../../core/native/launcher.hpp"
#include "pivot.hpp"

namespace {

// Keep the `most` largest of the entries `start` to `end` − 1: move them, in their order, to `start` and the places
// behind it, in `columns` and `values`. Return their end. `sizes` and `sorted` are work vectors.
template <class T>
int64_t keep_largest(Array<int64_t> columns, Array<T> values, int64_t start, int64_t end, int64_t most,
                     std::vector<real_t<T>>& sizes, std::vector<real_t<T>>& sorted) {
  if (end - start <= most) return end;
  sizes.clear();
  for (int64_t k = start; k < end; ++k) sizes.push_back(modulus(values[k]));
  real_t<T> least = INFINITY;
  if (most > 0) {
    sorted = sizes;
    const auto bound = sorted.end() - most;
    std::nth_element(sorted.begin(), bound, sorted.end(), [](auto a, auto b) { return a < b || (b != b && a == a); });
    least = *bound;
  }
  int64_t ties = most, at = start;
  for (const auto size : sizes) ties -= size > least;
  for (int64_t k = start; k < end; ++k) {
    const auto size = sizes[k - start];
    if (!(size > least || (size == least && ties > 0))) continue;
    ties -= size == least;
    columns[at] = columns[k], values[at++] = values[k];
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
  for (int64_t i = first; i < n; ++i) {
    const int64_t length = indptr[i + 1] - indptr[i];
    int64_t at = n, count = ptr[i], m;
    double norm2 = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      after[at] = j;
      at = j, member[j] = i, row[j] = data[k];
      const real_t<T> size = modulus(data[k]);
      norm2 += size * size;
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
    count = keep_largest(columns, values, ptr[i], count, most, sizes, sorted);
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
    ptr[i + 1] = keep_largest(columns, values, diagonal + 1, count, most, sizes, sorted);
    if (ptr[i + 1] > limit) return i + 1;
  }
  return n;
}

}  // namespace

KERNELS("swell.preconditioners.ilut", VALUES_INDICES(factor))
