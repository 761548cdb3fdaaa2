"""Cuthill–McKee orderings, which narrow the bandwidth. Cuthill and McKee 1969; reversed, George 1971; the first vertex
by George and Liu 1979.

Vertices are numbered level by level of a breadth-first search: the neighbours of the first vertex that have no number
yet, by ascending degree, then those of the second, and so on. The search begins in a vertex that lies far out: from a
vertex of least degree it is repeated from one of least degree in the last level for as long as that gives more levels.
What differs from George and Liu: of these searches the one whose widest level is the narrowest gives the numbering,
since the bandwidth follows that width; the deepest search is often, but not always, the one. Vertices without
neighbours come first, then one component after the other.

Level-synchronous, for a GPU: within a level a vertex's parent is its neighbour of the least number in the level before,
so the numbering is (number of the parent, degree, index), whichever thread sees the vertex first. Neighbours are sorted
by degree beforehand, so that each parent lists its own children in order, and one sum over the level places them: no
sorting within the search. The order is the same on every device.

Cost on a GPU: one launch of one block, which needs no synchronisation but its own and no host: 2 µs a level and 7 µs a
component at the least, 30 to 90 ms for a million rows of a mesh (benchmarks/NOTES.md). On the CPU one thread does the
same from vertex to vertex. Storage: the graph of A + Aᵀ and four integers a row.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.orderings.ordering import Ordering, adjacency, by_rank


@dataclass(frozen=True)
class ReverseCuthillMcKee(Ordering):
    """Reverse Cuthill–McKee."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        return reverse_order(A)


@dataclass(frozen=True)
class CuthillMcKee(Ordering):
    """Cuthill–McKee, not reversed."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        return _order(A)


def reverse_order(A):
    """The reverse Cuthill–McKee order of a CSRMatrix, an int array of its space."""
    return _order(A)[::-1].copy()


def bandwidth(A, order=None) -> int:
    """The largest |i − j| of a stored entry of a CSRMatrix, or of that which an order makes of it."""
    if order is None or not A.nnz:
        return A.facts(search=False).bandwidth
    place = A.space.xp.empty_like(order)
    place[order] = A.space.xp.arange(order.size, dtype=order.dtype)
    return int(A.space.max_on_host(abs(place[A.rows()] - place[A.indices])))  # sync


def _order(A):
    xp = A.space.xp
    indptr, neighbours = adjacency(A)
    degrees = xp.diff(indptr)
    by_degree = xp.argsort(degrees, kind="stable").astype(neighbours.dtype)
    rank = xp.empty_like(by_degree)
    rank[by_degree] = xp.arange(rank.size, dtype=rank.dtype)
    neighbours = by_rank(indptr, neighbours, by_degree, rank, xp)
    lone = A.space.find_true(degrees == 0)[1]  # sync
    order, parent = by_degree.copy(), xp.full_like(by_degree, rank.size)
    kernels = A.space.kernels("swell.orderings", "cuthill_mckee", np.float64)
    kernels.search(indptr, neighbours, by_degree, rank, order, parent, lone)
    return order
