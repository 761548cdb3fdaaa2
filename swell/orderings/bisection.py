"""Recursive bisection in coordinates made of graph distances: compact parts of equal size, found on the device.

Recursive coordinate bisection: Berger and Bokhari 1987; for coordinates that a matrix does not bring, distances to
pivots: Brandes and Pich 2007 (and Simon 1991, who bisects by the distance to one). From each of ``PIVOTS`` vertices
spread over the numbering a search finds a farthest one, and from those all distances are found. Three pairs of them
give three coordinates, the differences of the distances to the ends of a pair: the two that are farthest apart, then
those that are far apart and differ little in the coordinates so far. All rows are cut in two along the coordinate that
has the largest extent among them, then each half, until there are ``parts``; part k is rows k n/parts to
(k + 1) n/parts of the order, exactly.

Cost: two launches of breadth-first searches side by side, of one block each on a GPU; a sort for each coordinate, after
which the sorted lists of rows are cut, not sorted again; four launches for each of log₂ ``parts`` levels; one host
read. 8 bytes a row and pivot. Unlike a graph partition (``partition.py``) it needs neither the host nor a library. The
order is the same on every device.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.settings import positive
from swell.orderings.ordering import Ordering

PIVOTS, AXES = 16, 3    # vertices from which distances are found; coordinates
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Bisection(Ordering):
    """Recursive bisection in coordinates made of graph distances.

    Attributes
    ----------
    parts : int
        Consecutive rows, n/parts each, that shall have few neighbours outside.
    """

    parts: int = 128

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def __post_init__(self):
        positive(self, "parts")

    def order(self, A):
        space, n = A.space, A.shape[0]
        if not n:
            return space.empty(0, A.indices.dtype)
        kernels = space.kernels("swell.orderings", "bisection", np.float64)
        coordinates, lists = _coordinates(A, kernels)
        for start, middle in _levels(n, self.parts):
            start, middle = space.from_host(start), space.from_host(middle)
            second, marks = space.empty(n, np.uint8), space.empty(lists.size, np.uint8)
            before, moved = space.empty(lists.size + 1, np.int32), space.empty(lists.size, np.int32)
            kernels.cut(start, middle, coordinates, lists, second)
            kernels.mark(lists, second, marks)
            space.add_up(marks, before)
            kernels.move(start, middle, marks, before, lists, moved)
            lists = moved
        return lists[:n].astype(A.indices.dtype, copy=False)


def boundaries(n: int, parts: int) -> np.ndarray:
    """Where each of ``parts`` equal parts of n rows begins, and n: ``parts + 1`` integers, k n/parts rounded up. Row i
    of the order is in part i parts // n."""
    return -(-np.arange(parts + 1, dtype=np.int64) * n // parts)


def _levels(n, parts):
    """For each level of cuts: where each group of rows begins, and n; and where its second half does."""
    bounds = boundaries(n, parts)
    first, count = np.array([0]), np.array([parts])      # of each group of parts: its first, how many
    while (count > 1).any():
        half = count // 2
        yield np.append(bounds[first], n), bounds[first + half]
        first, count = (np.stack(pair, 1).reshape(-1) for pair in ((first, first + half), (half, count - half)))
        first, count = first[count > 0], count[count > 0]


def _coordinates(A, kernels):
    """(integer coordinates of every vertex, the vertices sorted by each of them), axis after axis."""
    space, xp, n = A.space, A.space.xp, A.shape[0]
    pivots = min(PIVOTS, n)
    spread = (np.arange(1, pivots + 1) * GOLDEN % 1 * n).astype(np.int32)
    roots, found = space.from_host(spread), space.empty(pivots, np.int32)
    distance, queue = xp.full(pivots * n, -1, np.int32), space.empty(pivots * n, np.int32)
    reach, unused = space.empty(pivots, np.int32), space.empty(pivots, np.int32)
    kernels.distances(A.indptr, A.indices, roots, distance, queue, reach, found)
    distance.fill(-1)
    kernels.distances(A.indptr, A.indices, found, distance, queue, reach, unused)
    between = space.empty((pivots + 1) * pivots, np.int64)
    kernels.measure(found, distance, reach, between)
    *between, farthest = space.to_host(between).reshape(pivots + 1, pivots)      # sync
    pairs, low, span = _pairs(np.array(between)), -int(farthest.max()), 2 * int(farthest.max()) + 1
    finer = span**2 * n < 2**63
    coordinates, keys = space.empty(AXES * n, np.int32), space.empty(AXES * n, np.int64)
    kernels.locate(space.from_host(pairs), distance, reach, low, span, finer, coordinates, keys)
    lists = space.empty(AXES * n, np.int32)
    for axis in range(0, AXES * n, n):
        kernels.list(xp.sort(keys[axis:axis + n]), lists[axis:axis + n])
    return coordinates, lists


def _pairs(between):
    """Pairs of pivots, one an axis, by their distances from one another."""
    score, pairs = 2 * between, []
    for _ in range(AXES):
        one, two = np.unravel_index(np.argmax(score), between.shape)
        pairs += [one, two]
        along = between[one] - between[two]      # the coordinate, which changes by twice the distance of the ends
        score = score - abs(along[:, None] - along)
    return np.array(pairs, np.int32)
