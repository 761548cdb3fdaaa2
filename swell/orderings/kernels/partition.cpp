// Kernels that turn METIS's partition into slices, on the host: choose separator rows, and adjust the parts' sizes.
//
// home[v] is the part of vertex v, −1 for none. Its neighbours are neighbours[indptr[v]:indptr[v + 1]].
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

// Write count[v] = the number of neighbours of vertex v in other parts, less the number in its own.
template <class I>
void outside(Array<const I> indptr, Array<const I> neighbours, Array<const int64_t> home, Array<int64_t> count) {
  for (int64_t v = 0; v < home.size; ++v) {
    count[v] = 0;
    for (int64_t k = indptr[v]; k < indptr[v + 1]; ++k) count[v] += home[neighbours[k]] != home[v] ? 1 : -1;
  }
}

// True if all neighbours of vertex v in other parts are chosen; `chosen` is a flag of each vertex.
template <class I>
bool cut_off(Array<const I> indptr, Array<const I> neighbours, Array<const int64_t> home, Array<const bool> chosen,
             int64_t v) {
  for (int64_t k = indptr[v]; k < indptr[v + 1]; ++k)
    if (home[neighbours[k]] != home[v] && !chosen[neighbours[k]]) return false;
  return true;
}

// Write chosen = a vertex cover of the edges between parts, a flag of each vertex, all false on entry.
//
// Vertices are chosen in the order of `visit`, an array of vertices. A second pass, in reverse order, drops superfluous
// vertices.
template <class I>
void cover(Array<const I> indptr, Array<const I> neighbours, Array<const int64_t> home, Array<const int64_t> visit,
           Array<bool> chosen) {
  for (int64_t t = 0; t < visit.size; ++t) {
    const int64_t v = visit[t];
    chosen[v] = !cut_off<I>(indptr, neighbours, home, chosen, v);
  }
  for (int64_t t = visit.size - 1; t >= 0; --t) {
    const int64_t v = visit[t];
    chosen[v] = chosen[v] && !cut_off<I>(indptr, neighbours, home, chosen, v);
  }
}

// Return (part, number of neighbours of v in it) for the part with the most neighbours of v among parts with room;
// (−1, 0) if there is none. Part h takes room[h] more vertices.
template <class I>
std::pair<int64_t, int64_t> best_home(Array<const I> indptr, Array<const I> neighbours, Array<const int64_t> home,
                                      const std::vector<int64_t>& room, int64_t v) {
  int64_t best = -1, most = 0;
  for (int64_t k = indptr[v]; k < indptr[v + 1]; ++k) {
    const int64_t h = home[neighbours[k]];
    if (h < 0 || h == best || room[h] <= 0) continue;
    int64_t count = 0;
    for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) count += home[neighbours[j]] == h;
    if (count > most) best = h, most = count;
  }
  return {best, most};
}

// Change `home` in place until every part h has sizes[h] vertices.
//
// Parts that are too large shed vertices in the order of `loose`, an array of vertices. Vertices without a part (−1)
// move to parts with room, the best connected first, and finally wherever room is left. Vertices for which no room is
// left keep −1.
template <class I>
void settle(Array<const I> indptr, Array<const I> neighbours, Array<int64_t> home, Array<const int64_t> sizes,
            Array<const int64_t> loose) {
  std::vector<int64_t> room(sizes.data, sizes.data + sizes.size);
  for (int64_t v = 0; v < home.size; ++v)
    if (home[v] >= 0) --room[home[v]];
  for (int64_t t = 0; t < loose.size; ++t) {
    const int64_t v = loose[t];
    if (home[v] >= 0 && room[home[v]] < 0) ++room[home[v]], home[v] = -1;
  }
  for (int64_t least = 4; least > 0; --least)
    for (int64_t v = 0; v < home.size; ++v) {
      if (home[v] >= 0) continue;
      const auto [best, most] = best_home<I>(indptr, neighbours, home, room, v);
      if (most >= least) home[v] = best, --room[best];
    }
  int64_t h = 0;
  for (int64_t v = 0; v < home.size; ++v) {
    if (home[v] >= 0) continue;
    while (h < sizes.size && room[h] <= 0) ++h;
    if (h == sizes.size) return;
    home[v] = h, --room[h];
  }
}

}  // namespace

KERNELS("swell.orderings.partition", INDICES(outside), INDICES(cover), INDICES(settle))
