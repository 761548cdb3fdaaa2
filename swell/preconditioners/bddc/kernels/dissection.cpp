// Nested dissection by level sets, and the pattern of its factors; dissection.py describes both.
#include <algorithm>
#include <vector>

#include "../../../core/native/launcher.hpp"

namespace {

// Write each row's distance to the nearest of the rows `starts`; in a part of the graph without one, to its first row.
template <class I>
void measure(Array<const I> indptr, Array<const I> indices, Array<const int64_t> starts, Array<int64_t> distance) {
  const int64_t n = distance.size;
  std::vector<int64_t> queue;
  queue.reserve(n);
  std::fill(distance.data, distance.data + n, -1);
  const auto reach = [&](int64_t row, int64_t far) {
    if (distance[row] < 0) distance[row] = far, queue.push_back(row);
  };
  for (int64_t i = 0; i < starts.size; ++i) reach(starts[i], 0);
  for (int64_t next = 0, at = 0;; ++next) {
    for (; at < int64_t(queue.size()); ++at)
      for (int64_t k = indptr[queue[at]]; k < indptr[queue[at] + 1]; ++k) reach(indices[k], distance[queue[at]] + 1);
    if (next == n) return;
    reach(next, 0);
  }
}

template <class I> struct Dissection {
  Array<const I> indptr, indices;
  Table<const int64_t> distances;        // a row for each set that distances were counted from
  Array<int64_t> order, ends;
  int64_t small, fronts = 0, written = 0;
  std::vector<int64_t> side;             // of each row: the last call that has put it on its far side
  int64_t calls = 0;

  void write(const std::vector<int64_t>& rows) {
    std::copy(rows.begin(), rows.end(), &order[written]);
    ends[++fronts] = written += int64_t(rows.size());
  }

  // Write the fronts of `rows`, its separator last.
  void cut(std::vector<int64_t> rows) {
    const int64_t n = int64_t(rows.size());
    int64_t field = -1, level = 0;
    double least = 0;
    std::vector<int64_t> count;
    for (int64_t f = 0; n > small && f < distances.rows; ++f) {
      const Array<const int64_t> distance = distances[f];
      int64_t first = distance[rows[0]], last = first;
      for (int64_t row : rows) first = std::min(first, distance[row]), last = std::max(last, distance[row]);
      count.assign(last - first + 1, 0);
      for (int64_t row : rows) ++count[distance[row] - first];
      int64_t before = 0;
      for (int64_t l = 0; l <= last - first; before += count[l++]) {
        const int64_t after = n - before - count[l];
        if (!before || !after || 4 * std::min(before, after) < before + after) continue;     // sides of a quarter
        const double work = double(count[l]) * double(n + std::max(before, after));
        if (field < 0 || work < least) field = f, level = first + l, least = work;
      }
    }
    if (field < 0) {
      if (n) write(rows);
      return;
    }
    const Array<const int64_t> distance = distances[field];
    const int64_t call = ++calls;
    std::vector<int64_t> near, far, separator;
    for (int64_t row : rows) if (distance[row] > level) far.push_back(row), side[row] = call;
    for (int64_t row : rows) {
      if (distance[row] > level) continue;
      bool between = false;              // coupled to the far side
      if (distance[row] == level)
        for (int64_t k = indptr[row]; k < indptr[row + 1] && !between; ++k) between = side[indices[k]] == call;
      (between ? separator : near).push_back(row);
    }
    rows = std::vector<int64_t>();
    cut(std::move(near));
    cut(std::move(far));
    if (separator.size()) write(separator);
  }
};

// Write `order`, the rows by front, and `ends`, where fronts end; returns the number of fronts.
template <class I>
int64_t dissect(Array<const I> indptr, Array<const I> indices, Table<const int64_t> distances, int64_t small,
                Array<int64_t> order, Array<int64_t> ends) {
  const int64_t n = indptr.size - 1;
  Dissection<I> dissection{indptr, indices, distances, order, ends, small};
  dissection.side.assign(n, 0);
  std::vector<int64_t> rows(n);
  for (int64_t i = 0; i < n; ++i) rows[i] = i;
  ends[0] = 0;
  dissection.cut(std::move(rows));
  return dissection.fronts;
}

// Write for each front the columns right of it in which the factors have entries, ascending: `below` from ptr[k] to
// ptr[k + 1] − 1; and `parent`, the front of the first of them; −1 without one. Returns their number; with less room in
// `below` the call writes `ptr` and `parent` only.
template <class I>
int64_t structure(Array<const I> indptr, Array<const I> indices, Array<const int64_t> ends, int64_t columns,
                  Array<int64_t> ptr, Array<int64_t> below, Array<int64_t> parent) {
  const int64_t fronts = ends.size - 1;
  std::vector<std::vector<int64_t>> lists(fronts), children(fronts);
  std::vector<int64_t> mark(columns, -1), front(columns, -1);
  for (int64_t k = 0; k < fronts; ++k)
    for (int64_t i = ends[k]; i < ends[k + 1]; ++i) front[i] = k;
  ptr[0] = 0;
  for (int64_t k = 0; k < fronts; ++k) {
    std::vector<int64_t>& list = lists[k];
    const auto meet = [&](int64_t j) { if (j >= ends[k + 1] && mark[j] != k) mark[j] = k, list.push_back(j); };
    for (int64_t i = ends[k]; i < ends[k + 1]; ++i)
      for (int64_t at = indptr[i]; at < indptr[i + 1]; ++at) meet(indices[at]);
    for (int64_t child : children[k]) for (int64_t j : lists[child]) meet(j);
    std::sort(list.begin(), list.end());
    ptr[k + 1] = ptr[k] + int64_t(list.size());
    parent[k] = list.empty() ? -1 : front[list[0]];
    if (parent[k] >= 0) children[parent[k]].push_back(k);
  }
  if (ptr[fronts] <= below.size)
    for (int64_t k = 0; k < fronts; ++k) std::copy(lists[k].begin(), lists[k].end(), below.data + ptr[k]);
  return ptr[fronts];
}

}  // namespace

KERNELS("swell.preconditioners.bddc.dissection", INDICES(measure), INDICES(dissect), INDICES(structure))
