"""Kernels of bisection along graph distances on the CPU; ``bisection.cu`` is for GPUs, and describes each kernel."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import njit, parallel


@parallel
def distances(indptr, neighbours, roots, distance, queue, reach, far):
    """Breadth-first search from each of ``roots``, in parallel.

    Writes, for root k and n vertices, the distances to distance[k n:(k + 1) n], which must be −1 on entry, and the two
    results of `search` to reach[k] and far[k]. ``queue`` is work space of the size of ``distance``. ``indptr`` and
    ``neighbours`` are the graph in CSR form."""
    n = indptr.size - 1
    for k in prange(roots.size):
        own = slice(k * n, (k + 1) * n)
        reach[k], far[k] = search(indptr, neighbours, roots[k], distance[own], queue[own])


@njit(cache=True)
def search(indptr, neighbours, root, distance, queue):
    """Breadth-first search from vertex ``root``. Returns (largest distance, far vertex).

    Writes distance[v] for each vertex reached; all must be −1 on entry. ``queue`` is work space of n numbers. The far
    vertex is the first vertex not reached; if all are reached, the first vertex at the largest distance."""
    queue[0] = root
    distance[root] = 0
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbours[e]
            if distance[v] < 0:
                distance[v] = distance[u] + 1
                queue[tail] = v
                tail += 1
    reach = distance[queue[tail - 1]]
    wanted, far = reach if tail == distance.size else -1, 0
    while distance[far] != wanted:
        far += 1
    return reach, far


@njit(cache=True)
def _length(distance, reach):
    """Return the distance; ``reach`` + 1, more than all others from this root, for a vertex not reached (negative)."""
    return reach + 1 if distance < 0 else distance


@njit(cache=True)
def measure(roots, distance, reach, between):
    """Write the distances between all p roots to ``between``, p × p numbers row after row, then p more numbers.

    The last p numbers are reach[i] + 1: root i uses this number as the distance to vertices that it does not reach.
    ``distance`` and ``reach`` are the results of `distances`."""
    n = distance.size // roots.size
    for i in range(roots.size):
        for j in range(roots.size):
            between[i * roots.size + j] = _length(distance[i * n + roots[j]], reach[i])
        between[roots.size**2 + i] = reach[i] + 1


@njit(cache=True)
def locate(pairs, distance, reach, low, span, finer, coordinates, keys):
    """Write the coordinates of each vertex, and sort keys, axis after axis, n numbers each.

    Coordinate a is the distance to root pairs[2a] less the distance to root pairs[2a + 1]; ``distance`` and ``reach``
    are the results of `distances`. ``low`` is a lower bound of all coordinates, ``span`` the number of possible values.
    ``keys``, sorted, order the vertices by coordinate, then by the next axis' coordinate if ``finer``, then by number;
    a key modulo n is the vertex."""
    axes = pairs.size // 2
    n = keys.size // axes
    for axis in range(axes):
        p, q = pairs[2 * axis], pairs[2 * axis + 1]
        for v in range(n):
            coordinates[axis * n + v] = _length(distance[p * n + v], reach[p]) - _length(distance[q * n + v], reach[q])
    for axis in range(axes):
        following = (axis + 1) % axes
        for v in range(n):
            key = coordinates[axis * n + v] - low
            if finer:
                key = key * span + coordinates[following * n + v] - low
            keys[axis * n + v] = key * n + v


@njit(cache=True)
def list(sorted, vertices):                      # noqa: A001
    """Write vertices[i] = the vertex that belongs to sorted[i], a key from `locate`: the key modulo n."""
    for i in range(sorted.size):
        vertices[i] = sorted[i] % sorted.size


@njit(cache=True)
def cut(start, middle, coordinates, lists, second):
    """Write second[v] = 1 for vertices in the second half of their group, else 0.

    Group g has the places start[g] to start[g + 1] − 1 of each list in ``lists``, which has the vertices sorted by each
    coordinate, axis after axis. The group is cut along the coordinate in which it extends farthest; its second half
    begins at place middle[g]."""
    n = second.size
    for group in range(middle.size):
        begin, end = start[group], start[group + 1]
        if begin == end:
            continue
        along, most = 0, -1
        for axis in range(0, lists.size, n):
            extent = coordinates[axis + lists[axis + end - 1]] - coordinates[axis + lists[axis + begin]]
            if extent > most:
                along, most = axis, extent
        for i in range(begin, end):
            second[lists[along + i]] = i >= middle[group]


@njit(cache=True)
def mark(lists, second, marks):
    """Write marks[i] = second[lists[i]], the half of the vertex at each place of the lists; see `cut`."""
    for i in range(lists.size):
        marks[i] = second[lists[i]]


@njit(cache=True)
def move(start, middle, marks, before, lists, moved):
    """Write to ``moved`` the lists with the first half of each group before its second half; both keep their order.

    ``marks`` is the result of `mark`, ``before`` its exclusive prefix sum; see `cut` for the other arguments."""
    n = start[-1]
    for axis in range(0, lists.size, n):
        for group in range(middle.size):
            begin = start[group]
            for i in range(begin, start[group + 1]):
                marked = before[axis + i] - before[axis + begin]
                to = middle[group] + marked if marks[axis + i] else i - marked
                moved[axis + to] = lists[axis + i]
