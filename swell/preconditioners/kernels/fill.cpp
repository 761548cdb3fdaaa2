// The pattern of ILU(k) and IC(k), and an estimate of its size, on the host.
#include <algorithm>
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

// A row of a factor while its pattern is found: a linked list of ascending columns with their fill levels.
struct List {
  std::vector<int64_t> after;          // the column that follows in the list of this row; n marks its head and its end
  std::vector<int32_t> depth;          // the level of a column in the list
  std::vector<int64_t> member;         // the row whose list last had a column

  explicit List(int64_t n) : after(n + 1), depth(n + 1), member(n, -1) {}

  // Begin row i with these columns, all of level 0.
  template <class I> void begin(int64_t i, const I* column, const I* end) {
    const int64_t n = member.size();
    int64_t last = n;
    for (; column < end; ++column) after[last] = *column, last = *column, depth[last] = 0, member[last] = i;
    after[last] = n;
  }

  // Insert into row i the columns at places `begin` to `end` − 1, which are right of row m's diagonal, unless their new
  // fill level exceeds `level`. `levels`: their levels in row m.
  void merge(int64_t i, int64_t m, int64_t level, Array<const int64_t> columns, Array<const int32_t> levels,
             int64_t begin, int64_t end) {
    int64_t at = m;                    // the list is searched from here: columns of both ascend
    for (int64_t k = begin; k < end; ++k) {
      const int64_t j = columns[k];
      const int32_t deeper = depth[m] + levels[k] + 1;
      if (deeper > level) continue;
      if (member[j] == i) {
        depth[j] = std::min(depth[j], deeper);
        continue;
      }
      while (after[at] < j) at = after[at];
      after[j] = after[at], after[at] = j;
      depth[j] = deeper, member[j] = i;
    }
  }
};

// Write the pattern of L and U, or of U = Lᴴ alone if `upper`, with fill up to `level`, columns ascending, from the
// pattern of A: row i has the columns columns[ptr[i]:ptr[i + 1]], with their levels in `levels`, and from beyond[i] on
// those right of the diagonal. Rows from `first` on are written, as far as `columns` has room. Return the first row
// that is not.
//
// Row i is a linked list of ascending columns with their levels. For each of its columns m < i in turn, the columns of
// row m right of the diagonal are merged into it.
template <class I>
int64_t fill(Array<const I> indptr, Array<const I> indices, int64_t level, bool upper, int64_t first,
             Array<int64_t> ptr, Array<int64_t> beyond, Array<int64_t> columns, Array<int32_t> levels) {
  const int64_t n = indptr.size - 1;
  List list(n);
  for (int64_t i = first; i < n; ++i) {
    list.begin(i, indices.data + indptr[i], indices.data + indptr[i + 1]);
    int64_t m = list.after[n], count = ptr[i], until = count;
    for (; m < i; m = list.after[m]) list.merge(i, m, level, columns, levels, beyond[m], ptr[m + 1]);
    for (m = upper ? m : list.after[n]; m < n; m = list.after[m], ++count) {
      if (count == columns.size) return i;
      columns[count] = m, levels[count] = list.depth[m];
      if (m <= i) until = count + 1;
    }
    beyond[i] = until, ptr[i + 1] = count;
  }
  return n;
}

// Return the number of columns j > i that a path of at most `level` + 1 edges reaches through rows before i, summed
// over the rows i of `rows`. `indptr` and `indices` are the graph.
template <class I>
int64_t reached(Array<const I> indptr, Array<const I> indices, int64_t level, Array<const int64_t> rows) {
  const int64_t n = indptr.size - 1;
  std::vector<int64_t> seen(n, -1);
  std::vector<std::pair<int64_t, int64_t>> queue;              // a row and its distance
  int64_t count = 0;
  for (int64_t r = 0; r < rows.size; ++r) {
    const int64_t i = rows[r];
    queue.assign(1, {i, 0});
    seen[i] = i;
    for (size_t head = 0; head < queue.size() && queue[head].second <= level; ++head) {
      const auto [v, step] = queue[head];
      for (int64_t k = indptr[v]; k < indptr[v + 1]; ++k) {
        const int64_t j = indices[k];
        if (seen[j] == i) continue;
        seen[j] = i;
        if (j > i) ++count;
        else queue.push_back({j, step + 1});
      }
    }
  }
  return count;
}

}  // namespace

KERNELS("swell.preconditioners.fill", INDICES(fill), INDICES(reached))
