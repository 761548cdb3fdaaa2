"""Multicolouring: rows of one colour are not coupled, so a sweep may update them all at once.

Greedy: each vertex in turn takes the smallest colour that no neighbour has. Jones and Plassmann 1993: the greedy method
in the order of random weights, in parallel. A vertex is coloured as soon as all its neighbours of greater weight are;
a few dozen rounds over all vertices suffice. Both methods use at most one colour more than the largest degree.

Cost: greedy reads the pattern once, one vertex after the other, on the host (a matrix on a GPU sends its pattern
there). Jones–Plassmann launches one kernel a round; the host reads once every 8 rounds. The number of rounds is the
length of the longest path of descending weights. Storage: the graph of A + Aᵀ and n colours.

Difference from the textbook: the weight of vertex i is a bijective hash of i and the seed (splitmix64). So no weights
are stored, and no two are equal. The colours of Jones–Plassmann are then exactly the greedy colours in order of
descending weight. They do not depend on timing: they are the same on every device and in every run.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.cpu import native_kernels
from swell.core.errors import InputError
from swell.core.settings import one_of
from swell.orderings.ordering import Ordering, adjacency

VISITS = ("natural", "largest_first")
ROUNDS = 8              # rounds between two tests for vertices without a colour


@dataclass(frozen=True)
class GreedyColoring(Ordering):
    """Rows sorted by the colours of the greedy method.

    Attributes
    ----------
    visit : str
        "natural", or "largest_first": descending degree, then natural (Welsh and Powell).
    """

    visit: str = "natural"

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def __post_init__(self):
        one_of(self, "visit", VISITS)

    def colors(self, A):
        """The colour of every row, int32, shape (n,), in A's space."""
        return greedy(A, self.visit)

    def order(self, A):
        return by_color(A.space, self.colors(A))[0]


@dataclass(frozen=True)
class JonesPlassmann(Ordering):
    """Rows sorted by the colours of Jones and Plassmann, found in parallel.

    Attributes
    ----------
    seed : int
        Seed of the random weights.
    """

    seed: int = 0

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def __post_init__(self):
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise InputError(f"JonesPlassmann(seed={self.seed!r}): expected an integer from 0 to 2147483647")

    def colors(self, A):
        """The colour of every row, int32, shape (n,), in A's space."""
        return jones_plassmann(A, self.seed)

    def order(self, A):
        return by_color(A.space, self.colors(A))[0]


def greedy(A, visit="natural"):
    """Colours of the rows of a CSRMatrix by the greedy method, on the host.

    Parameters
    ----------
    A : CSRMatrix, n × n
    visit : str
        Order in which rows get colours: "natural", or "largest_first", by descending number of neighbours.

    Returns
    -------
    int32 array of A's space, shape (n,)
        Colours from 0. Rows i ≠ j with a stored entry (i, j) or (j, i) have different colours.
    """
    space = A.space
    indptr, neighbours = (space.to_host(a) for a in adjacency(A))
    turn = np.arange(A.shape[0]) if visit == "natural" else np.argsort(-np.diff(indptr), kind="stable")
    colors = np.full(A.shape[0], -1, np.int32)
    native_kernels("swell.orderings", "multicolor").greedy(indptr, neighbours, turn, colors)
    return space.from_host(colors)


def jones_plassmann(A, seed=0):
    """Colours of the rows of a CSRMatrix by the method of Jones and Plassmann, on the matrix's device.

    Parameters
    ----------
    A : CSRMatrix, n × n
    seed : int
        Seed of the random weights that decide which row gets its colour first.

    Returns
    -------
    int32 array of A's space, shape (n,)
        Colours as in `greedy`; identical on every device.
    """
    space = A.space
    indptr, neighbours = adjacency(A)
    colors = space.xp.full(A.shape[0], -1, np.int32)
    kernels = space.kernels("swell.orderings", "multicolor", np.float64)
    while space.find_true(colors < 0)[1]:  # sync
        for _ in range(ROUNDS):
            kernels.jones_plassmann_round(indptr, neighbours, colors, seed)
    return colors


def by_color(space, colors):
    """Sort the rows by colour, ascending within each colour. ``colors`` has the colour of each row, from 0.

    Returns
    -------
    rows : int array of the space, shape (n,)
    ptr : list of int, of length colours + 1
        The rows of colour c are ``rows[ptr[c]:ptr[c + 1]]``.
    """
    xp = space.xp
    rows = xp.argsort(colors, kind="stable").astype(np.int32 if colors.size < 2**31 - 1 else np.int64)
    counts = space.to_host(space.count(colors, int(max(space.max_on_host(colors), -1)) + 1))  # sync
    return rows, [0, *np.cumsum(counts).tolist()]
