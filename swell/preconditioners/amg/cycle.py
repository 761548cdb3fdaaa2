"""The cycle, an operator: x = M b with M ≈ A⁻¹ for vectors of the finest level. On each level, the textbook's steps:

    down(b, x):   smooth x, from x = 0 at the first visit; b_coarse = R r with the residual r of x
    the next level computes x_coarse from b_coarse; the last level solves
    up(b, x):     x = x + P x_coarse; smooth x

A W-cycle visits some levels twice, the second time from the given x. The adjoint is the same recursion over the levels'
adjoints. A level has

- ``down(b, x, again)``, ``up(b, x, again)``; ``again`` at a second visit. b and x share no memory.
- ``b_coarse``, ``x_coarse``: vectors of the next level. The level decides where they lie.
- ``adjoint()``: a new level of the adjoint cycle.
- ``update()``: recompute the stored matrices, in place, for new values of the hierarchy and the scales.

The last level has ``solve(b, x)``, ``adjoint()`` and ``update(A, scale)``. Each counts its ``nbytes``.

Kinds of level: four products (four_products.py), two (two_products.py), polynomial smoothers (polynomial.py), sweeps
over fine rows (air_cycle.py), parts on ranks (distributed/amg/products.py). Kinds of last level: a dense inverse
(coarsest.py), the smoother alone (polynomial.py), the cycle of a gathered matrix (distributed/amg/cycle.py).
"""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from swell.core.operator import LinearOperator

CYCLES = "V", "W"


class Cycle(LinearOperator):
    """A cycle over levels; a subclass makes them.

    Parameters
    ----------
    n : int
        Length of the finest level's vectors.
    dtype : str or numpy.dtype
        Of the vectors.
    space : Space
    twice : range or tuple
        Numbers of the levels that are visited twice; the finest is 0.

    Attributes
    ----------
    hierarchy : Hierarchy
    levels : list
        From the finest.
    scales : list of float64 arrays
        The diagonal by which each level is scaled.
    """

    def __init__(self, n, dtype, space, twice=()):
        super().__init__((n, n), np.dtype(dtype), space)
        self._twice, self._adjoint = twice, None

    @abstractmethod
    def _scaling(self, first=None):
        """Return ``scales`` as new arrays, for the values that the hierarchy has now; ``first``: as in `refresh`."""

    def update(self, A):
        """Recompute hierarchy and levels, in place, for new values of A."""
        self.hierarchy.update(A)
        self.refresh()

    def refresh(self, first=None):
        """Recompute the levels, in place, for new values of the hierarchy; ``first``: the finest level's scale, if
        another cycle has decided it."""
        for old, new in zip(self.scales, self._scaling(first)):
            old[...] = new
        *levels, last = self.levels
        for level in levels:
            level.update()
        last.update(self.hierarchy.last, self.scales[-1])
        if self._adjoint is not None:
            self._adjoint = None
            self.revision += 1
        self.space.synchronize()

    def apply(self, x, out, alpha=1, beta=0):
        self._apply(self.levels, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self.hermitian:
            return self.apply(x, out, alpha, beta)
        if self._adjoint is None:
            self._adjoint = [level.adjoint() for level in self.levels]
            self.space.synchronize()
        self._apply(self._adjoint, x, out, alpha, beta)

    def _apply(self, levels, x, out, alpha, beta):
        if alpha == 1 and beta == 0:
            return self._solve(levels, 0, x, out)
        made = self.space.empty(self.shape[0], self.dtype)
        self._solve(levels, 0, x, made)
        self.space.axpby(alpha, made, beta, out)

    def _solve(self, levels, k, b, x):
        """Write x: the result of level k of ``levels``, and of those below it, for the right-hand side b."""
        level = levels[k]
        if level is levels[-1]:
            return level.solve(b, x)
        for again in (False, True) if k in self._twice else (False,):
            level.down(b, x, again)
            self._solve(levels, k + 1, level.b_coarse, level.x_coarse)
            level.up(b, x, again)

    @property
    def nbytes(self):
        return self.hierarchy.nbytes + sum(part.nbytes for part in (*self.levels, *(self._adjoint or ()), *self.scales))
