"""getrs: the library solver that belongs to getrf, LAPACK or cuSOLVER; for a unit diagonal in L. Section 2.1.2 of the
thesis."""
from dataclasses import dataclass

from swell.dense import cusolver
from swell.dense.factors import DoolittleFactors
from swell.dense.solver import BoundSolver, DenseSolver


@dataclass(frozen=True)
class Getrs(DenseSolver):
    """Both substitutions by LAPACK or cuSOLVER."""

    cost = "2 n² a right-hand side, the library's"
    accepts = (DoolittleFactors,)

    def bind(self, factors, trans):
        return LibrarySolve(self, factors, trans)


class LibrarySolve(BoundSolver):
    """getrs for one matrix. `BoundSolver` applies P, so the library gets the pivots of the identity."""

    def __init__(self, settings, factors, trans):
        super().__init__(settings, factors, trans)
        self.columns = self.space.xp.asfortranarray(factors.lu)
        self.pivots = self.space.xp.arange(factors.n)

    def substitute(self, X):
        trans = "T" if self.transposed else "N"
        if self.space.name == "cpu":
            from scipy.linalg import get_lapack_funcs
            getrs = get_lapack_funcs("getrs", (self.columns, X))
            return getrs(self.columns, self.pivots, X, trans=int(self.transposed), overwrite_b=True)[0]
        cusolver.getrs(self.columns, X, trans)
        return X
