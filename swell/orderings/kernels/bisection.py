"""Distances in a graph on the CPU: a breadth-first search, one vertex after the other."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def distances(indptr, neighbours, root, distance, queue):
    """Edges from vertex ``root[0]`` to each it reaches; ``distance`` comes filled with −1, ``queue`` has n places."""
    queue[0] = root[0]
    distance[root[0]] = 0
    tail = 1
    head = 0
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(indptr[u], indptr[u + 1]):
            v = neighbours[k]
            if distance[v] < 0:
                distance[v] = distance[u] + 1
                queue[tail] = v
                tail += 1
