"""Kernels of bisection along graph distances on the CPU; ``bisection.cu`` is for GPUs, and describes each kernel."""
from __future__ import annotations

from numba import njit, prange

from swell.core.compiled import parallel


@parallel
def distances(indptr, neighbours, roots, distance, queue, reach, far):
    """Distances from each root, and ``reach`` and ``far`` of each root: see `search`."""
    n = indptr.size - 1
    for k in prange(roots.size):
        own = slice(k * n, (k + 1) * n)
        reach[k], far[k] = search(indptr, neighbours, roots[k], distance[own], queue[own])


@njit(cache=True)
def search(indptr, neighbours, root, distance, queue):
    """Fill in the distances from one root. Returns (largest distance, far vertex).

    The far vertex is the first one not reached; if all are reached, the first one at the largest distance."""
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
    return reach + 1 if distance < 0 else distance


@njit(cache=True)
def measure(roots, distance, reach, between):
    """Distances between all roots; behind them, for each root, the distance that stands for "not reached"."""
    n = distance.size // roots.size
    for i in range(roots.size):
        for j in range(roots.size):
            between[i * roots.size + j] = _length(distance[i * n + roots[j]], reach[i])
        between[roots.size**2 + i] = reach[i] + 1


@njit(cache=True)
def locate(pairs, distance, reach, low, span, finer, coordinates, keys):
    """Coordinates of each vertex, one for each pair of roots, and keys that sort the vertices by each coordinate."""
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
    """vertices = the vertex of each sorted key."""
    for i in range(sorted.size):
        vertices[i] = sorted[i] % sorted.size


@njit(cache=True)
def cut(start, middle, coordinates, lists, second):
    """second = 1 for vertices in the second half of their group, which is cut along its longest axis."""
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
    """marks = the value of ``second`` for the vertex at each place of the lists."""
    for i in range(lists.size):
        marks[i] = second[lists[i]]


@njit(cache=True)
def move(start, middle, marks, before, lists, moved):
    """moved = the lists, with the first half of each group before the second half; both keep their order."""
    n = start[-1]
    for axis in range(0, lists.size, n):
        for group in range(middle.size):
            begin = start[group]
            for i in range(begin, start[group + 1]):
                marked = before[axis + i] - before[axis + begin]
                to = middle[group] + marked if marks[axis + i] else i - marked
                moved[axis + to] = lists[axis + i]
