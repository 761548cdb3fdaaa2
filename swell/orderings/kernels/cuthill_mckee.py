"""The search of Cuthill and McKee on the CPU, one vertex after the other."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def levels(indptr, neighbours, root, first, order, parent):
    """Number the component of ``root`` from ``first`` on: (end, begin of the last level, levels). ``parent`` is the number
    of a vertex's parent, and n for those not yet seen."""
    free = parent.size
    order[first], parent[root] = root, first
    begin, end, tail, count = first, first + 1, first + 1, 1
    while True:
        for p in range(begin, end):
            u = order[p]
            for k in range(indptr[u], indptr[u + 1]):
                v = neighbours[k]
                if parent[v] == free:
                    parent[v] = p
                    order[tail] = v
                    tail += 1
        if tail == end:
            return end, begin, count
        begin, end, count = end, tail, count + 1


@njit(cache=True)
def search(indptr, neighbours, by_degree, rank, order, parent, lone):
    """Number all vertices, the first ``lone`` of which have no neighbours and stand in ``order`` already. ``neighbours``
    are sorted by ``rank``, the place in ``by_degree``; ``parent`` comes filled with n."""
    n = order.size
    first = seek = lone
    while first < n:
        while parent[by_degree[seek]] < n:
            seek += 1
        end, last, height = levels(indptr, neighbours, by_degree[seek], first, order, parent)
        while True:                                  # George and Liu
            far = rank[order[last]]
            for p in range(last, end):
                far = min(far, rank[order[p]])
            for p in range(first, end):
                parent[order[p]] = n
            before = height
            end, last, height = levels(indptr, neighbours, by_degree[far], first, order, parent)
            if height <= before:
                break
        first = end
