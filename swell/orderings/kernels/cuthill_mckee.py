"""The search of Cuthill and McKee on the CPU, one vertex after the other."""
from __future__ import annotations

from swell.core.compiled import njit



@njit(cache=True)
def levels(indptr, neighbours, root, first, order, parent):
    """Number the vertices of the connected component of ``root`` by breadth-first search, from number ``first`` on.

    Writes ``order`` (order[p] is the vertex with number p) and ``parent`` (the number of the vertex from which v was
    first seen; it must be n on entry). Returns (one more than the last number, first number of the last level, number
    of levels, vertices in the widest level)."""
    free = parent.size
    order[first], parent[root] = root, first
    begin, end, tail, count, width = first, first + 1, first + 1, 1, 1
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
            return end, begin, count, width
        begin, end, count = end, tail, count + 1
        width = max(width, end - begin)


@njit(cache=True)
def again(indptr, neighbours, root, first, end, order, parent):
    """Renumber the component that has the numbers ``first`` to ``end`` − 1, from another ``root``.

    Overwrites its part of ``order`` and ``parent``; arguments and results as in `levels`."""
    for p in range(first, end):
        parent[order[p]] = parent.size
    return levels(indptr, neighbours, root, first, order, parent)


@njit(cache=True)
def search(indptr, neighbours, by_degree, rank, order, parent, lone):
    """Number all vertices by Cuthill and McKee's method: write order[p] = the vertex with number p.

    On entry the first ``lone`` entries of ``order`` are set: the vertices without neighbours. ``by_degree`` lists the
    vertices by ascending degree, and rank[v] is the place of v in it. Each vertex's ``neighbours`` are sorted by rank.
    ``parent`` is work space, filled with n on entry."""
    n = order.size
    first = seek = lone
    while first < n:
        while parent[by_degree[seek]] < n:
            seek += 1
        root = best = by_degree[seek]
        end, last, count, width = levels(indptr, neighbours, root, first, order, parent)
        before, least = 0, width
        while count > before:                        # George and Liu
            before, far = count, n
            for p in range(last, end):
                far = min(far, rank[order[p]])
            root = by_degree[far]
            end, last, count, width = again(indptr, neighbours, root, first, end, order, parent)
            if width <= least:
                best, least = root, width
        if best != root:
            again(indptr, neighbours, best, first, end, order, parent)
        first = end
