// A row of a factor while its pattern is found: a linked list of ascending columns with their fill levels.
#pragma once
#include <algorithm>
#include <vector>

#include "../../core/native/array.hpp"

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

  // Insert into row i the columns at places `begin` to `end` − 1, those of row m right of its diagonal, unless their
  // new fill level exceeds `level`. `levels`: their levels in row m.
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
