"""Recursive bisection in coordinates made of graph distances: compact parts of equal size, found on the device.

Recursive coordinate bisection: Berger and Bokhari 1987; for coordinates that a matrix does not bring, distances to
pivots: Brandes and Pich 2007 (and Simon 1991, who bisects by the distance to one). Two pairs of far vertices, each the
farthest there is from those before, give two coordinates, the differences of the distances to the ends of a pair. All
rows are cut in two along the coordinate that has the larger extent among them, then each half, until there are
``parts``; part k is rows k n/parts to (k + 1) n/parts of the order, exactly. In two dimensions parts come out as
rhombi, in three as columns.

Cost: five breadth-first searches, of one block each on a GPU, and 3 log₂ ``parts`` sorts of n keys and fewer; 39 ms for
the half million rows of parabolic_fem~ (benchmarks/NOTES.md). Unlike a graph partition (``partition.py``) it needs
neither the host nor a library. The order is the same on every device.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.settings import positive
from swell.orderings.ordering import Ordering, adjacency

SAMPLE = 1 << 16        # rows from which the extents of the parts are taken


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
        xp, n = A.space.xp, A.shape[0]
        if not n:
            return xp.empty(0, A.indices.dtype)
        return _bisect(_coordinates(A), n, self.parts, A.space).astype(A.indices.dtype)


def boundaries(n: int, parts: int) -> np.ndarray:
    """Where each of ``parts`` equal parts of n rows begins, and n: ``parts + 1`` integers, k n/parts rounded up. Row i
    of the order is in part i parts // n."""
    return -(-np.arange(parts + 1, dtype=np.int64) * n // parts)


def _coordinates(A):
    """Two integer coordinates of every vertex, none negative, shape (2, n)."""
    space, xp, n = A.space, A.space.xp, A.shape[0]
    indptr, neighbours = adjacency(A)
    kernels = space.kernels("swell.orderings", "bisection", np.float64)
    queue = xp.empty(n, indptr.dtype)

    def distances(vertex):
        """From this vertex; what it does not reach is farther than all that it does."""
        distance = xp.full(n, -1, indptr.dtype)
        kernels.distances(indptr, neighbours, space.from_host(np.array([vertex], indptr.dtype)), distance, queue)
        return xp.where(distance < 0, int(space.max_on_host(distance)) + 1, distance).astype(np.int64)  # sync

    def farthest(distance):
        """The first of the vertices with the largest distance."""
        return space.find_true(distance == int(space.max_on_host(distance)))[0]  # sync

    one = distances(farthest(distances(0)))      # from the first vertex to a far one, and all distances from that
    two = distances(farthest(one))
    three = distances(farthest(xp.minimum(one, two)))
    four = distances(farthest(three))
    coordinates = xp.stack((one - two, three - four))
    return coordinates + int(space.max_on_host(-coordinates.reshape(-1)))  # sync


def _bisect(coordinates, n, parts, space):
    """The order of the rows by part."""
    xp, span = space.xp, int(space.max_on_host(coordinates.reshape(-1))) + 1  # sync
    keys = coordinates * span + coordinates[::-1]        # equal ones by the other coordinate
    at, order = xp.arange(n), xp.arange(n)
    first, count = np.array([0]), np.array([parts])      # of each group of parts: its first, how many
    while (count > 1).any():
        start = np.append(boundaries(n, parts)[first], n)
        group = xp.searchsorted(xp.asarray(start[1:]), at, side="right")
        second = _second_is_longer(coordinates[:, order], group, start, span, xp)
        key = xp.where(second[group], keys[1][order], keys[0][order])
        order = order[xp.argsort(group * span**2 + key, kind="stable")]
        half = count // 2
        first, count = (np.stack(pair, 1).reshape(-1) for pair in ((first, first + half), (half, count - half)))
        first, count = first[count > 0], count[count > 0]
    return order


def _second_is_longer(coordinates, group, start, span, xp):
    """For each group: is its extent along the second coordinate the larger? From a sample of each."""
    step = max(1, group.size // SAMPLE)
    begin, end = -(-start[:-1] // step), -(-start[1:] // step)
    ends = (xp.asarray(np.minimum(at, -(-group.size // step) - 1)) for at in (begin, np.maximum(end - 1, begin)))
    begin, end = ends
    extents = []
    for c in coordinates:
        sample = xp.sort(group[::step] * span + c[::step])
        extents.append(sample[end] - sample[begin])
    return extents[1] > extents[0]
