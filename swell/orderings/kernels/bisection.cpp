// Kernels of bisection along graph distances on a CPU; bisection.cu is for GPUs, and describes each kernel.
#include <algorithm>

#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"

namespace {

// Breadth-first search from vertex `root`. Return (largest distance, far vertex).
//
// Writes distance[v] for each vertex reached; all must be −1 on entry. `queue` is work space of n numbers. The far
// vertex is the first vertex not reached; if all are reached, the first vertex at the largest distance.
template <class I>
std::pair<int32_t, int32_t> search(Array<const I> indptr, Array<const I> neighbours, int32_t root, int32_t* distance,
                                   int32_t* queue) {
  const int64_t n = indptr.size - 1;
  queue[0] = root, distance[root] = 0;
  int64_t tail = 1;
  for (int64_t head = 0; head < tail; ++head) {
    const int64_t u = queue[head];
    for (int64_t e = indptr[u]; e < indptr[u + 1]; ++e) {
      const int64_t v = neighbours[e];
      if (distance[v] < 0) distance[v] = distance[u] + 1, queue[tail++] = int32_t(v);
    }
  }
  const int32_t reach = distance[queue[tail - 1]], wanted = tail == n ? reach : -1;
  return {reach, int32_t(std::find(distance, distance + n, wanted) - distance)};
}

// Breadth-first search from each of `roots`, in parallel.
//
// Writes, for root k and n vertices, the distances to distance[k n:(k + 1) n], which must be −1 on entry, and the two
// results of `search` to reach[k] and far[k]. `queue` is work space of the size of `distance`. `indptr` and
// `neighbours` are the graph in CSR form.
template <class I>
void distances(Array<const I> indptr, Array<const I> neighbours, Array<const int32_t> roots, Array<int32_t> distance,
               Array<int32_t> queue, Array<int32_t> reach, Array<int32_t> far) {
  const int64_t n = indptr.size - 1;
  parallel_for(distance.size, roots.size, [=](int64_t k) {
    const auto [largest, vertex] = search(indptr, neighbours, roots[k], distance.data + k * n, queue.data + k * n);
    reach[k] = largest, far[k] = vertex;
  });
}

// The distance; `reach` + 1, more than all others from this root, for a vertex not reached (negative).
int64_t length(int64_t distance, int64_t reach) { return distance < 0 ? reach + 1 : distance; }

// Write the distances between all p roots to `between`, p × p numbers row after row, then p more numbers.
//
// The last p numbers are reach[i] + 1: root i uses this number as the distance to vertices that it does not reach.
// `distance` and `reach` are the results of `distances`.
void measure(Array<const int32_t> roots, Array<const int32_t> distance, Array<const int32_t> reach,
             Array<int64_t> between) {
  const int64_t p = roots.size, n = distance.size / p;
  for (int64_t i = 0; i < p; ++i) {
    for (int64_t j = 0; j < p; ++j) between[i * p + j] = length(distance[i * n + roots[j]], reach[i]);
    between[p * p + i] = int64_t(reach[i]) + 1;
  }
}

// Write the coordinates of each vertex, and sort keys, axis after axis, n numbers each.
//
// Coordinate a is the distance to root pairs[2a] less the distance to root pairs[2a + 1]; `distance` and `reach` are
// the results of `distances`. `low` is a lower bound of all coordinates, `span` the number of possible values. `keys`,
// sorted, order the vertices by coordinate, then by the next axis' coordinate if `finer`, then by number; a key modulo
// n is the vertex.
template <class P>
void locate(Array<const P> pairs, Array<const int32_t> distance, Array<const int32_t> reach, int64_t low, int64_t span,
            bool finer, Array<int32_t> coordinates, Array<int64_t> keys) {
  const int64_t axes = pairs.size / 2, n = keys.size / axes;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t p = pairs[2 * axis], q = pairs[2 * axis + 1];
    for (int64_t v = 0; v < n; ++v)
      coordinates[axis * n + v] =
          int32_t(length(distance[p * n + v], reach[p]) - length(distance[q * n + v], reach[q]));
  }
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t following = (axis + 1) % axes;
    for (int64_t v = 0; v < n; ++v) {
      int64_t key = coordinates[axis * n + v] - low;
      if (finer) key = key * span + coordinates[following * n + v] - low;
      keys[axis * n + v] = key * n + v;
    }
  }
}

// Write vertices[i] = the vertex that belongs to sorted[i], a key from `locate`: the key modulo n.
void list(Array<const int64_t> sorted, Array<int32_t> vertices) {
  for (int64_t i = 0; i < sorted.size; ++i) vertices[i] = int32_t(sorted[i] % sorted.size);
}

// Write second[v] = 1 for vertices in the second half of their group, else 0.
//
// Group g has the places start[g] to start[g + 1] − 1 of each list in `lists`, which has the vertices sorted by each
// coordinate, axis after axis. The group is cut along the coordinate in which it extends farthest; its second half
// begins at place middle[g].
void cut(Array<const int64_t> start, Array<const int64_t> middle, Array<const int32_t> coordinates,
         Array<const int32_t> lists, Array<uint8_t> second) {
  const int64_t n = second.size;
  for (int64_t group = 0; group < middle.size; ++group) {
    const int64_t begin = start[group], end = start[group + 1];
    if (begin == end) continue;
    int64_t along = 0, most = -1;
    for (int64_t axis = 0; axis < lists.size; axis += n) {
      const int64_t extent = coordinates[axis + lists[axis + end - 1]] - coordinates[axis + lists[axis + begin]];
      if (extent > most) along = axis, most = extent;
    }
    for (int64_t i = begin; i < end; ++i) second[lists[along + i]] = i >= middle[group];
  }
}

// Write marks[i] = second[lists[i]], the half of the vertex at each place of the lists; see `cut`.
void mark(Array<const int32_t> lists, Array<const uint8_t> second, Array<uint8_t> marks) {
  for (int64_t i = 0; i < lists.size; ++i) marks[i] = second[lists[i]];
}

// Write to `moved` the lists with the first half of each group before its second half; both keep their order.
//
// `marks` is the result of `mark`, `before` its exclusive prefix sum; see `cut` for the other arguments.
void move(Array<const int64_t> start, Array<const int64_t> middle, Array<const uint8_t> marks,
          Array<const int32_t> before, Array<const int32_t> lists, Array<int32_t> moved) {
  const int64_t n = start[start.size - 1];
  for (int64_t axis = 0; axis < lists.size; axis += n)
    for (int64_t group = 0; group < middle.size; ++group)
      for (int64_t begin = start[group], i = begin; i < start[group + 1]; ++i) {
        const int64_t marked = before[axis + i] - before[axis + begin];
        moved[axis + (marks[axis + i] ? middle[group] + marked : i - marked)] = lists[axis + i];
      }
}

}  // namespace

KERNELS("swell.orderings.bisection", INDICES(distances), PLAIN(measure), INDICES(locate), PLAIN(list), PLAIN(cut),
        PLAIN(mark), PLAIN(move))
