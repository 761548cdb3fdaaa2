"""Recursive bisection in coordinates made of graph distances: compact parts of equal size, found on the device.

Recursive coordinate bisection: Berger and Bokhari 1987. A matrix has no coordinates; distances to pivots replace them:
Brandes and Pich 2007 (and Simon 1991, who bisects by the distance to one pivot). From each of ``PIVOTS`` vertices,
spread over the numbering, a search finds a farthest vertex; these become the pivots. Three pairs of pivots give three
coordinates. A coordinate is the difference of the distances to the two ends of a pair. The first pair is the two
pivots that are farthest apart. Each further pair is far apart, and its ends differ little in the earlier coordinates.
All rows are cut in two along the coordinate in which they extend farthest, then each half, until there are ``parts``
parts. Part k is exactly rows k n/parts to (k + 1) n/parts of the order.

Cost: two launches of concurrent breadth-first searches, one block each on a GPU; one sort for each coordinate, because
cuts keep the lists sorted; four launches for each of log₂ ``parts`` levels; one host read. Storage: 8 bytes a row and
pivot. Unlike a graph partition (``partition.py``) it needs neither the host nor a library. The order is the same on
every device.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.settings import positive
from swell.orderings.ordering import Ordering

PIVOTS, AXES = 16, 3    # pivots; coordinates
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Bisection(Ordering):
    """Recursive bisection in coordinates made of graph distances.

    Attributes
    ----------
    parts : int
        Number of parts, of n/parts consecutive rows each, with few neighbours outside of the part.
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
            space.prefix_sums(marks, before)
            kernels.move(start, middle, marks, before, lists, moved)
            lists = moved
        return lists[:n].astype(A.indices.dtype, copy=False)


def boundaries(n: int, parts: int) -> np.ndarray:
    """Return the first row of each of ``parts`` equal parts of n rows, then n: ``parts + 1`` integers, k n/parts
    rounded up.

    Row i of the order is in part i parts // n."""
    return -(-np.arange(parts + 1, dtype=np.int64) * n // parts)


def _levels(n, parts):
    """Yield two int arrays for each level of cuts: the first row of each group of rows, followed by n; and the first
    row of each group's second half.

    A group is a range of the order's n rows that still is to be cut; the first one holds all rows."""
    bounds = boundaries(n, parts)
    first, count = np.array([0]), np.array([parts])      # first part, and number of parts, of each group
    while (count > 1).any():
        half = count // 2
        yield np.append(bounds[first], n), bounds[first + half]
        first, count = (np.stack(pair, 1).reshape(-1) for pair in ((first, first + half), (half, count - half)))
        first, count = first[count > 0], count[count > 0]


def _coordinates(A, kernels):
    """Return (coordinates, lists), int32 device arrays of `AXES` × n numbers, axis after axis: the coordinates of every
    vertex, and the vertices sorted by each coordinate. ``kernels``: the functions of kernels/bisection.cpp."""
    space, xp, n = A.space, A.space.xp, A.shape[0]
    pivots = min(PIVOTS, n)
    spread = (np.arange(1, pivots + 1) * GOLDEN % 1 * n).astype(np.int32)
    roots, farthest_from = space.from_host(spread), space.empty(pivots, np.int32)
    distance, queue = xp.full(pivots * n, -1, np.int32), space.empty(pivots * n, np.int32)
    reach, unused = space.empty(pivots, np.int32), space.empty(pivots, np.int32)
    kernels.distances(A.indptr, A.indices, roots, distance, queue, reach, farthest_from)
    distance.fill(-1)
    kernels.distances(A.indptr, A.indices, farthest_from, distance, queue, reach, unused)
    between = space.empty((pivots + 1) * pivots, np.int64)
    kernels.measure(farthest_from, distance, reach, between)
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
    """Choose one pair of distant pivots for each axis. Returns a flat int32 array of the pivots' numbers.

    ``between`` is the matrix of the distances between the pivots."""
    score, pairs = 2 * between, []
    for _ in range(AXES):
        one, two = np.unravel_index(np.argmax(score), between.shape)
        pairs += [one, two]
        along = between[one] - between[two]      # the coordinate; from end to end it changes by twice their distance
        score = score - abs(along[:, None] - along)
    return np.array(pairs, np.int32)
