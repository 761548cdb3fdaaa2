// A maximum transversal by shortest augmenting paths, on the host. Duff and Koster 2001.
#include <math.h>

#include <functional>
#include <queue>
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

// Write row_of (the row of each column in the matching of least cost, −1 for an unmatched column), u and v.
//
// The entries of column j are in the rows rows[indptr[j]:indptr[j + 1]], with their costs in `costs`, at the same
// places; an infinite cost is no entry. Costs less u of the row and v of the column are 0 on the matching and not
// negative elsewhere, if no column is unmatched.
//
// First, a column gets its cheapest row if that row is free. For each other column Dijkstra's algorithm finds the
// shortest alternating path to a free row, by costs less u and v. If there is no path, the visited rows lead to no free
// row, now or later. They stay done, so that all failed searches together read an entry once.
void assign(Array<const int64_t> indptr, Array<const int64_t> rows, Array<const double> costs, Array<int64_t> row_of,
            Array<double> u, Array<double> v) {
  const int64_t n = row_of.size;
  std::vector<int64_t> column_of(n, -1), before(n), met;       // met: rows whose distance a search has set
  std::vector<double> distance(n, INFINITY);
  std::vector<char> done(n, false);
  for (int64_t j = 0; j < n; ++j) {
    row_of[j] = -1, u[j] = 0, v[j] = INFINITY;
    for (int64_t k = indptr[j]; k < indptr[j + 1]; ++k) v[j] = std::min(v[j], costs[k]);
    for (int64_t k = indptr[j]; k < indptr[j + 1]; ++k)
      if (costs[k] == v[j] && v[j] < INFINITY && column_of[rows[k]] < 0) {
        row_of[j] = rows[k], column_of[rows[k]] = j;
        break;
      }
  }
  for (int64_t start = 0; start < n; ++start) {
    if (row_of[start] >= 0 || v[start] == INFINITY) continue;
    using Reached = std::pair<double, int64_t>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<Reached>> heap;
    double shortest = INFINITY, base = 0;
    int64_t free = -1;
    for (int64_t column = start; column >= 0;) {
      for (int64_t k = indptr[column]; k < indptr[column + 1]; ++k) {
        const int64_t i = rows[k];
        const double reached = base + std::max(costs[k] - u[i] - v[column], 0.0);      // negative only by rounding
        if (done[i] || reached >= std::min(distance[i], shortest)) continue;
        if (distance[i] == INFINITY) met.push_back(i);
        distance[i] = reached, before[i] = column;
        if (column_of[i] < 0) shortest = reached, free = i;
        else heap.push({reached, i});
      }
      column = -1;
      while (column < 0 && !heap.empty() && heap.top().first < shortest) {
        const auto [nearest, i] = heap.top();
        heap.pop();
        base = nearest;
        if (!done[i]) done[i] = true, column = column_of[i];   // else an outdated, longer distance of this row
      }
    }
    const bool found = free >= 0;
    for (const int64_t i : met) {
      if (done[i] && found) {
        u[i] += distance[i] - shortest;
        v[column_of[i]] += shortest - distance[i];
        done[i] = false;
      }
      distance[i] = INFINITY;
    }
    met.clear();
    if (found) v[start] += shortest;
    while (free >= 0) {                                        // rematch along the path
      const int64_t column = before[free], next = row_of[column];
      column_of[free] = column, row_of[column] = free, free = next;
    }
  }
}

}  // namespace

KERNELS("swell.orderings.transversal", PLAIN(assign))
