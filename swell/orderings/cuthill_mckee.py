"""Cuthill–McKee orderings, which reduce the bandwidth. Cuthill and McKee 1969; reversed, George 1971; the first vertex
by George and Liu 1979.

A breadth-first search numbers the vertices level by level. The unnumbered neighbours of the first vertex come first, by
ascending degree, then the unnumbered neighbours of the second vertex, and so on. The search should begin in a
peripheral vertex. It begins in a vertex of least degree. It is repeated from a vertex of least degree in the last
level, as long as this gives more levels. Difference from George and Liu: the search whose widest level is the narrowest
gives the numbering, since the bandwidth follows this width; often, but not always, it is the deepest search. Vertices
without neighbours come first, then one component after the other.

The search is level-synchronous, for a GPU. A vertex's parent is its neighbour with the smallest number in the preceding
level. So the numbering sorts by (number of the parent, degree, index), whichever thread sees the vertex first. All
neighbours are sorted by degree beforehand. Each parent then lists its children in order, and one prefix sum over the
level places them; the search itself sorts nothing. The order is the same on every device.

Cost on a GPU: one launch of one block, without synchronisation between blocks or with the host: at least 2 µs a level
and 7 µs a component, 30 to 90 ms for a million rows of a mesh (benchmarks/notes/orderings.md). On the CPU
one thread visits the vertices in turn. Storage: the graph of A + Aᵀ and four integers a row.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from swell.orderings.ordering import Ordering, adjacency, by_rank


@dataclass(frozen=True)
class ReverseCuthillMcKee(Ordering):
    """Reverse Cuthill–McKee: a small bandwidth."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        return reverse_order(A)


@dataclass(frozen=True)
class CuthillMcKee(Ordering):
    """Cuthill–McKee, not reversed: a small bandwidth."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        return _order(A)


def reverse_order(A):
    """The reverse Cuthill–McKee order of a square CSRMatrix: an int array of its space, shape (n,)."""
    return _order(A)[::-1].copy()


def bandwidth(A, order=None) -> int:
    """The bandwidth of a CSRMatrix, max |i − j| over its stored entries; with ``order``, after this reordering."""
    if order is None or not A.nnz:
        return A.facts(search=False).bandwidth
    place = A.space.xp.empty_like(order)
    place[order] = A.space.xp.arange(order.size, dtype=order.dtype)
    return int(A.space.max_on_host(abs(place[A.rows()] - place[A.indices])))  # sync


def layers(A) -> int:
    """Return the number of levels of a breadth-first search in the graph of a CSRMatrix with a symmetric pattern.

    The search begins in the last vertex of a search from row 0: in the component of row 0 these are about as many as
    the diameter. On a GPU, where nothing is searched, a lower bound: each level has at most 2 × bandwidth rows."""
    n = A.shape[0]
    if A.space.name != "cpu" or not A.nnz:
        return math.ceil(n / max(2 * A.facts(search=False).bandwidth, 1))
    kernels = A.space.kernels("swell.orderings", "cuthill_mckee", np.float64)
    order, parent = np.empty(n, A.indices.dtype), np.full(n, n, A.indices.dtype)
    end = kernels.levels(A.indptr, A.indices, 0, 0, order, parent)[0]
    return kernels.again(A.indptr, A.indices, order[end - 1], 0, end, order, parent)[2]


def _order(A):
    """Return the Cuthill–McKee order, not reversed, of a square CSRMatrix: a new int array of its space, shape (n,)."""
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
