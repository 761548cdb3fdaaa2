// The search of Cuthill and McKee on a CPU, one vertex after the other; cuthill_mckee.cu has the GPU's kernels.
#include <algorithm>

#include "../../core/native/launcher.hpp"

namespace {

using Levels = std::tuple<int64_t, int64_t, int64_t, int64_t>;

// Number the vertices of the connected component of `root` by breadth-first search, from number `first` on.
//
// Writes `order` (order[p] is the vertex with number p) and `parent` (the number of the vertex from which v was first
// seen; it must be n on entry). Returns (one more than the last number, first number of the last level, number of
// levels, vertices in the widest level).
template <class I>
Levels levels(Array<const I> indptr, Array<const I> neighbours, int64_t root, int64_t first, Array<I> order,
              Array<I> parent) {
  const int64_t unseen = parent.size;
  order[first] = I(root), parent[root] = I(first);
  for (int64_t begin = first, end = first + 1, tail = end, count = 1, width = 1;; ++count) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t u = order[p], stop = indptr[u + 1];
      for (int64_t k = indptr[u]; k < stop; ++k) {
        const I v = neighbours[k];
        if (parent[v] == unseen) parent[v] = I(p), order[tail++] = v;
      }
    }
    if (tail == end) return {end, begin, count, width};
    begin = end, end = tail;
    width = std::max(width, end - begin);
  }
}

// Renumber the component that has the numbers `first` to `end` − 1, from another `root`.
//
// Overwrites its part of `order` and `parent`; arguments and results as in `levels`.
template <class I>
Levels again(Array<const I> indptr, Array<const I> neighbours, int64_t root, int64_t first, int64_t end,
             Array<I> order, Array<I> parent) {
  for (int64_t p = first; p < end; ++p) parent[order[p]] = I(parent.size);
  return levels(indptr, neighbours, root, first, order, parent);
}

// Number all vertices by Cuthill and McKee's method: write order[p] = the vertex with number p.
//
// On entry the first `lone` entries of `order` are set: the vertices without neighbours. `by_degree` lists the vertices
// by ascending degree, and rank[v] is the place of v in it. Each vertex's `neighbours` are sorted by rank. `parent` is
// work space, filled with n on entry.
template <class I>
void search(Array<const I> indptr, Array<const I> neighbours, Array<const I> by_degree, Array<const I> rank,
            Array<I> order, Array<I> parent, int64_t lone) {
  const int64_t n = order.size;
  for (int64_t first = lone, seek = lone; first < n;) {
    while (parent[by_degree[seek]] < n) ++seek;
    int64_t root = by_degree[seek], best = root, before = 0;
    auto [end, last, count, width] = levels(indptr, neighbours, root, first, order, parent);
    for (int64_t least = width; count > before;) {       // George and Liu
      before = count;
      int64_t far = n;
      for (int64_t p = last; p < end; ++p) far = std::min(far, int64_t(rank[order[p]]));
      root = by_degree[far];
      std::tie(end, last, count, width) = again(indptr, neighbours, root, first, end, order, parent);
      if (width <= least) best = root, least = width;
    }
    if (best != root) again(indptr, neighbours, best, first, end, order, parent);
    first = end;
  }
}

}  // namespace

KERNELS("swell.orderings.cuthill_mckee", INDICES(levels), INDICES(again), INDICES(search))
