// Parts of a matrix with other row and column numbers, on a CPU.
#include <algorithm>
#include <utility>
#include <vector>

#include "../../../core/native/launcher.hpp"

namespace {

// Write the pattern of the matrix with A's entry (i, j) at (rows[i], columns[j]), its rows sorted, and `source`, the
// place of each of its entries among A's; −1 leaves a row or column out. The result has out_indptr.size − 1 rows;
// returns its number of entries.
template <class I>
int64_t renumber(Array<const I> indptr, Array<const I> indices, Array<const I> rows, Array<const I> columns,
                 Array<I> out_indptr, Array<I> out_indices, Array<I> source) {
  std::fill(out_indptr.data, out_indptr.data + out_indptr.size, I(0));
  for (int64_t i = 0; i < rows.size; ++i) {
    if (rows[i] < 0) continue;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) out_indptr[rows[i] + 1] += columns[indices[k]] >= 0;
  }
  for (int64_t r = 1; r < out_indptr.size; ++r) out_indptr[r] += out_indptr[r - 1];
  std::vector<std::pair<I, int64_t>> entries;
  for (int64_t i = 0; i < rows.size; ++i) {
    if (rows[i] < 0) continue;
    entries.clear();
    bool sorted = true;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const I j = columns[indices[k]];
      if (j < 0) continue;
      sorted = sorted && (entries.empty() || entries.back().first < j);
      entries.push_back({j, k});
    }
    if (!sorted) std::sort(entries.begin(), entries.end());
    int64_t at = out_indptr[rows[i]];
    for (const auto& [j, k] : entries) out_indices[at] = j, source[at++] = I(k);
  }
  return out_indptr[out_indptr.size - 1];
}

}  // namespace

KERNELS("swell.preconditioners.bddc.renumbering", INDICES(renumber))
