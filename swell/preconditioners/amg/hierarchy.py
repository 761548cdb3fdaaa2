"""The setup of multigrid: interpolation and Galerkin products, level after level.

Each level finds its interpolation P: by strong links and coarse rows (classical.py), or by aggregates (aggregation.py).
The next matrix is R A P (formats/product.py), with R = Pᵀ unless the interpolation has a restriction of its own. All is
in double precision. Coarsening ends at ``coarsest`` rows, or at a level without strong links, or at one that would keep
more than nine rows in ten. ``ended`` stores the reason.

`update` keeps coarse rows, aggregates and all patterns, and computes weights and products anew.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.formats.product import Product
from swell.formats.transpose import transposed

STALLED = 0.9           # largest share of rows that may stay on the next level
COARSEST = {"cpu": 300, "cuda": 1000}   # rows, at most, of a level that is not coarsened further
WAVES = 1000            # the same for a complex matrix: on a coarser level no wave of a car cabin is resolved
DENSE = {"cpu": 1000, "cuda": 2048}     # rows, at most, of a level that is inverted if it cannot be coarsened


@dataclass
class Level:
    """A matrix and its way to the next level.

    Attributes
    ----------
    A : CSRMatrix
    interpolation : Interpolation or SmoothedInterpolation
        Interpolation from the next level; it keeps what it needs for new values of A. Its attribute ``R`` is a
        restriction of its own, a CSRMatrix whose values its ``update`` overwrites, or None for Pᵀ.
    R : CSRMatrix
        The restriction to the next level: the interpolation's, or the transpose of P.
    order : int array or None
        The place in P.data of each value of R; None if R is the interpolation's own.
    AP, RAP : Product
        ``RAP.C`` is the next level's matrix.
    """

    A: Any
    interpolation: Any
    R: Any
    order: Any
    AP: Product
    RAP: Product

    @classmethod
    def of(cls, A, interpolation, alike=False):
        """Return a new Level of a CSRMatrix and its interpolation, with R and the two products computed.

        ``alike``: of R's rows, as for `Product`."""
        R, order = transposed(interpolation.P) if interpolation.R is None else (interpolation.R, None)
        AP = Product(A, interpolation.P)
        return cls(A, interpolation, R, order, AP, Product(R, AP.C, alike))

    @property
    def P(self):
        """The interpolation's matrix, a CSRMatrix."""
        return self.interpolation.P

    def update(self, A):
        """Recompute P, R and the products, in place, for new values of A. Returns the next level's matrix."""
        self.A = A
        self.interpolation.update(A)
        if self.order is not None:
            self.R.data[...] = self.P.data[self.order]
            self.R.discard_adjoint()
        self.AP.update(A, self.P)
        self.RAP.update(self.R, self.AP.C)
        return self.RAP.C

    @property
    def coarse(self):
        """The next level's matrix."""
        return self.RAP.C

    @property
    def nbytes(self):
        order = 0 if self.order is None else self.order.nbytes
        return self.interpolation.nbytes + order + sum(M.nbytes for M in (self.R, self.AP.C, self.RAP.C))


class Hierarchy:
    """The levels of one matrix.

    Parameters
    ----------
    A : CSRMatrix
        In double precision.
    settings : AMG or SmoothedAggregation
    coarsening : Classical or Aggregation
        Makes the interpolation of each level.

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
    space : Space
        Of the vectors of a cycle.
    """

    def __init__(self, A, settings, coarsening):
        self.settings, self.levels, self.ended, self.space = settings, [], "", A.space
        limit = settings.coarsest or (WAVES if A.dtype.kind == "c" else COARSEST[A.space.name])
        while A.shape[0] > limit and not self.ended:
            A = self._coarsened(A, coarsening)
        self.last = A
        self.dense = A.shape[0] <= max(limit, DENSE[A.space.name])

    def _coarsened(self, A, coarsening):
        """Append a level to ``levels`` and return the next level's matrix. If A cannot be coarsened, set ``ended`` and
        return A."""
        if len(self.levels) == self.settings.levels - 1:
            self.ended = f"there are levels={self.settings.levels} of them"
            return A
        interpolation = coarsening.interpolation(A)
        rows, coarse = interpolation.P.shape
        if not coarse:
            self.ended = "no row has a strong link"
        elif coarse > STALLED * rows:
            self.ended = f"{coarse} of {rows} rows would stay"
        else:
            self.levels.append(coarsening.level(A, interpolation))
            return self.levels[-1].coarse
        return A

    def update(self, A):
        """Recompute all levels and ``last``, in place, for new values of A, with the same pattern."""
        A = A.in_double()
        for level in self.levels:
            A = level.update(A)
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
