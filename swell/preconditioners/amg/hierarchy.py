"""The setup of AMG: strength, coarsening, interpolation and Galerkin products, level after level.

Each level finds its strong links (strength.py) and its coarse rows (pmis.py), then P (interpolation.py) and the next
matrix PᵀAP (formats/product.py), all in double precision. Coarsening ends at ``coarsest`` rows, or at a level without
strong links, or at one that would keep more than nine rows in ten. ``ended`` stores the reason.

`update` keeps strong links, coarse rows and all patterns, and computes weights and products anew.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers, pmis
from swell.preconditioners.amg.slots import State
from swell.preconditioners.amg.strength import positive_rows, strong_links, with_neighbours

STALLED = 0.9           # largest share of rows that may stay on the next level
COARSEST = {"cpu": 300, "cuda": 1000}   # rows, at most, of a level that is not coarsened further
DENSE = {"cpu": 1000, "cuda": 2048}     # rows, at most, of a level that is inverted if it cannot be coarsened


@dataclass
class Level:
    """A matrix and its way to the next level.

    Attributes
    ----------
    A : CSRMatrix
    strong, state, numbers : integer arrays
        The strong links of A, the `State` of its rows, and their numbers on the next level.
    P, R : CSRMatrix
        Interpolation from the next level, and its transpose.
    order : int array
        The place in P.data of each value of R.
    AP, RAP : Product
        ``RAP.C`` is the next level's matrix.
    """

    A: Any
    strong: Any
    state: Any
    numbers: Any
    P: Any
    R: Any
    order: Any
    AP: Product
    RAP: Product

    @classmethod
    def of(cls, A, strong, state, numbers, P):
        """Return a new Level of these arrays, with R and the two products computed; `Level` explains the arguments."""
        R, order = transposed(P)
        AP = Product(A, P)
        return cls(A, strong, state, numbers, P, R, order, AP, Product(R, AP.C))

    def update(self, A, settings):
        """Recompute P, R and the products, in place, for new values of A; ``settings`` is an `AMG`. Returns the next
        level's matrix."""
        self.A = A
        reinterpolate(A, self.strong, self.state, self.numbers, settings, self.P)
        self.R.data[...] = self.P.data[self.order]
        self.R.discard_adjoint()
        self.AP.update(A, self.P)
        self.RAP.update(self.R, self.AP.C)
        return self.RAP.C

    @property
    def nbytes(self):
        arrays = sum(a.nbytes for a in (self.strong, self.state, self.numbers, self.order))
        return arrays + sum(M.nbytes for M in (self.P, self.R, self.AP.C, self.RAP.C))


class Hierarchy:
    """The levels of one matrix.

    Parameters
    ----------
    A : CSRMatrix
        In double precision.
    settings : AMG

    Attributes
    ----------
    levels : list of Level
        From the finest; empty if A is small, or cannot be coarsened.
    last : CSRMatrix
        The coarsest level's matrix.
    dense : bool
        True if the coarsest level is small enough for a dense inverse.
    ended : str
        Why the coarsest level was not coarsened further; empty if it is small.
    """

    def __init__(self, A, settings):
        self.settings, self.levels, self.ended = settings, [], ""
        limit = settings.coarsest or COARSEST[A.space.name]
        marked = positive_rows(A, settings)
        while A.shape[0] > limit and not self.ended:
            A, marked = self._coarsened(A, marked)
        self.last = A
        self.dense = A.shape[0] <= max(limit, DENSE[A.space.name])

    def _coarsened(self, A, marked):
        """Append a level to ``levels``. Returns (the next level's matrix, its ``marked``). If A cannot be coarsened,
        set ``ended`` and return (A, marked).

        marked[i] = 1 for a row that must stay on every level; see `positive_rows` in strength.py."""
        s = self.settings
        if len(self.levels) == s.levels - 1:
            self.ended = f"there are levels={s.levels} of them"
            return A, marked
        strong = strong_links(A, s)
        state = pmis(A, strong, with_neighbours(A, marked))
        numbers = coarse_numbers(A, state)
        P = interpolation(A, strong, state, numbers, s)
        coarse = P.shape[1]
        if not coarse:
            self.ended = "no row has a strong link"
        elif coarse > STALLED * A.shape[0]:
            self.ended = f"{coarse} of {A.shape[0]} rows would stay"
        else:
            self.levels.append(Level.of(A, strong, state, numbers, P))
            return self.levels[-1].RAP.C, carried(A, state, numbers, marked, coarse)
        return A, marked

    def update(self, A):
        """Recompute all levels and ``last``, in place, for new values of A, with the same pattern."""
        for level in self.levels:
            A = level.update(A, self.settings)
        self.last = A

    @property
    def matrices(self):
        """The matrix of each level, from the finest; a list of CSRMatrix."""
        return [*(level.A for level in self.levels), self.last]

    @property
    def operator_complexity(self) -> float:
        """The number of entries of all levels' matrices, divided by the number of entries of the finest."""
        return sum(A.nnz for A in self.matrices) / max(self.matrices[0].nnz, 1)

    @property
    def grid_complexity(self) -> float:
        """The number of rows of all levels, divided by the number of rows of the finest."""
        return sum(A.shape[0] for A in self.matrices) / max(self.matrices[0].shape[0], 1)

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self.levels)
