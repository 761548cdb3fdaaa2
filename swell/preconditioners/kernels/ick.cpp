// The pattern of IC(k), on the host.
#include "../../core/native/launcher.hpp"
#include "fill.hpp"

namespace {

// Write the pattern of U = Lᴴ with fill up to `level`, columns ascending, from the whole pattern of A: row i has the
// columns columns[ptr[i]:ptr[i + 1]], the diagonal first, with their levels in `levels`. Rows from `first` on are
// written, as far as `columns` has room. Return the first row that is not.
//
// Row i is a linked list of ascending columns with their levels. For each of its columns m < i in turn, the columns of
// row m right of the diagonal are merged into it.
template <class I>
int64_t fill(Array<const I> indptr, Array<const I> indices, int64_t level, int64_t first, Array<int64_t> ptr,
             Array<int64_t> columns, Array<int32_t> levels) {
  const int64_t n = indptr.size - 1;
  List list(n);
  for (int64_t i = first; i < n; ++i) {
    list.begin(i, indices.data + indptr[i], indices.data + indptr[i + 1]);
    int64_t m = list.after[n], count = ptr[i];
    for (; m < i; m = list.after[m]) list.merge(i, m, level, columns, levels, ptr[m] + 1, ptr[m + 1]);
    for (; m < n; m = list.after[m], ++count) {                // from the diagonal on
      if (count == columns.size) return i;
      columns[count] = m, levels[count] = list.depth[m];
    }
    ptr[i + 1] = count;
  }
  return n;
}

}  // namespace

KERNELS("swell.preconditioners.ick", INDICES(fill))
