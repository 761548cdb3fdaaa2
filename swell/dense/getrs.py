"""getrs: the library solver that belongs to getrf, LAPACK or cuSOLVER; for a unit diagonal in L. Section 2.1.2 of the
thesis."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.dense.factors import DoolittleFactors
from swell.dense.solver import BoundSolver, DenseSolver


@dataclass(frozen=True)
class Getrs(DenseSolver):
    """Both substitutions by LAPACK or cuSOLVER."""

    cost = "2 n² a right-hand side, the library's"
    accepts = (DoolittleFactors,)

    def bind(self, factors):
        return LibrarySolve(self, factors)


class LibrarySolve(BoundSolver):
    """getrs for one matrix. The rows of B are already in the order of P, so the library gets identity pivots."""

    def __init__(self, settings, factors):
        super().__init__(settings, factors)
        self.pivots = self.space.xp.arange(factors.n, dtype=np.int32)
        self.columns = self.space.xp.asfortranarray(factors.lu)

    def substitute(self, X):
        if self.space.name == "cpu":
            from scipy.linalg import get_lapack_funcs
            return get_lapack_funcs("getrs", (self.columns, X))(self.columns, self.pivots, X, overwrite_b=True)[0]
        from cupyx.scipy.linalg import lu_solve
        return lu_solve((self.columns, self.pivots), X, overwrite_b=True, check_finite=False)
