// ILUT on the host; CPU only, since each row depends on the entries that earlier rows keep.
#include <vector>

#include "../../core/native/launcher.hpp"
#include "keep_largest.hpp"
#include "pivot.hpp"

namespace {

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

}  // namespace

KERNELS("swell.preconditioners.ilut", VALUES_INDICES(factor))
