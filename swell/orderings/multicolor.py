"""Multicolouring: rows of one colour are not coupled, so a sweep may treat them all at once.

Greedy: each vertex in turn takes the least colour that no neighbour has. Jones and Plassmann 1993: the same with the
vertices in the order of random weights, which needs no turn: a vertex is coloured as soon as every neighbour of greater
weight is, in a few dozen rounds over all vertices. Either gives at most one colour more than the largest degree.

Cost: greedy reads the pattern once, one vertex after the other, on the host (a matrix on a GPU sends its pattern
there). Jones–Plassmann launches one kernel a round and reads the host once in 8 of them; the rounds are as many as the
longest path of descending weights. Storage: the graph of A + Aᵀ and n colours.

What differs from the textbook: the weight of vertex i is a bijective hash of i and the seed (splitmix64), so that none
is stored and no two are equal. With that, the outcome of Jones–Plassmann is that of the greedy method in order of
descending weight, whatever is coloured when: the colours are the same on every device and in every run.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.orderings.ordering import Ordering, adjacency

VISITS = ("natural", "largest_first")
ROUNDS = 8              # between two looks whether any vertex is left without a colour


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
        if self.visit not in VISITS:
            raise InputError(f"GreedyColoring(visit={self.visit!r}): expected one of {', '.join(VISITS)}")

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
        Of the random weights.
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
        "natural" or "largest_first".

    Returns
    -------
    int32 array of A's space, shape (n,)
        Colours from 0; no two rows i ≠ j with a stored entry (i, j) or (j, i) have the same.
    """
    from swell.orderings.kernels import multicolor
    space = A.space
    indptr, neighbours = (space.to_host(a) for a in adjacency(A))
    turn = np.arange(A.shape[0]) if visit == "natural" else np.argsort(-np.diff(indptr), kind="stable")
    colors = np.full(A.shape[0], -1, np.int32)
    multicolor.greedy(indptr, neighbours, turn, colors)
    return space.from_host(colors)


def jones_plassmann(A, seed=0):
    """Colours of the rows of a CSRMatrix by the method of Jones and Plassmann, where the matrix lives.

    Parameters
    ----------
    A : CSRMatrix, n × n
    seed : int

    Returns
    -------
    int32 array of A's space, shape (n,)
        As of `greedy`; the same on every device.
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
    """The rows sorted by colour, in ascending order within each, and where each colour begins.

    Returns
    -------
    rows : int array of the space, shape (n,)
    ptr : list of int, one more than there are colours
        The rows of colour c are ``rows[ptr[c]:ptr[c + 1]]``.
    """
    xp = space.xp
    rows = xp.argsort(colors, kind="stable").astype(np.int32 if colors.size < 2**31 - 1 else np.int64)
    counts = space.to_host(space.count(colors, int(max(space.max_on_host(colors), -1)) + 1))  # sync
    return rows, [0, *np.cumsum(counts).tolist()]
