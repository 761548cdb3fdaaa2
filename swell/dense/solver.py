"""Base of all dense solvers: the check of factors (table 2.3 of the thesis) and right-hand sides, and the return of X.

A X = B with P A = L U: permute B by P, then solve L Y = P B, then U X = Y, in place (section 1.3.1).
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.registry import TABLE, load, name_of
from swell.core.settings import describe
from swell.dense.factors import CroutFactors, LUFactors


class DenseSolver(ABC):
    """Settings of a solution with factors: a frozen dataclass.

    Attributes
    ----------
    accepts : tuple of types
        The classes of factors that it takes.
    devices : tuple of str
        Names of the spaces that it runs in.
    layout : {"C", "F"}
        Memory order of the right-hand sides in ``substitute``: row- or column-major.
    """

    problem = "the factors of a dense matrix, many right-hand sides"
    cost = "2 n² a right-hand side"
    accepts: tuple[type[LUFactors], ...] = (CroutFactors,)
    devices: tuple[str, ...] = ("cpu", "cuda")
    layout = "F"

    def build(self, factors):
        """Return a ``BoundSolver`` for the factors.

        Raises
        ------
        InputError
            If it does not take such factors, or does not run on their device; the message names solvers that do.
        """
        fitting = ", ".join(name for name in TABLE["dense_solver"] if _fits(load("dense_solver", name), factors))
        name = name_of("dense_solver", type(self))
        if not isinstance(factors, self.accepts):
            units = " or ".join(kind.unit for kind in self.accepts)
            raise InputError(f"{name} takes factors with the unit diagonal in {units}, and "
                             f"{type(factors.decomposer).__name__} leaves it in {factors.unit}: take one of {fitting}")
        if factors.space.name not in self.devices:
            raise InputError(f"{name} runs on {' and '.join(self.devices)}, and these factors are on "
                             f"{factors.space.name}: take one of {fitting}")
        return self.bind(factors)

    @abstractmethod
    def bind(self, factors):
        """Return a new ``BoundSolver`` for the factors, without checks."""


def _fits(solver, factors):
    """Return True if settings of this class of solver accept the factors, on their device."""
    return issubclass(type(factors), solver.accepts) and factors.space.name in solver.devices


class BoundSolver(ABC):
    """A solver for one matrix.

    Attributes
    ----------
    settings : DenseSolver
    factors : LUFactors
    """

    def __init__(self, settings, factors):
        self.settings, self.factors, self.space = settings, factors, factors.space
        rows = factors.lu.strides[1] == factors.lu.itemsize
        self.lu = (factors.lu if rows else factors.lu.T).reshape(-1)
        self.row, self.column = (factors.n, 1) if rows else (1, factors.n)

    def solve(self, B):
        """Solve A X = B.

        Parameters
        ----------
        B : array, shape (n,) or (n, m)
            On the host or in the space of the factors. It is not changed.

        Returns
        -------
        array, shape of B
            X, on the device of B, in the type of the factors.

        Raises
        ------
        InputError
            If B does not fit, or is not finite.
        FactorisationError
            If the factors no longer represent A, or X is not finite.
        """
        xp, factors = self.space.xp, self.factors
        factors.require_useful()
        host = isinstance(B, np.ndarray) or not hasattr(B, "dtype")
        B = np.asarray(B) if host else B
        if B.ndim not in (1, 2) or B.shape[0] != factors.n:
            raise InputError(f"B has shape {tuple(B.shape)}: expected ({factors.n},) or ({factors.n}, m)")
        if B.dtype.kind not in "iubfc" or B.dtype.kind == "c" != factors.dtype.kind:
            raise InputError(f"B has dtype {B.dtype.name} and the factors are {factors.dtype.name}: factor A in a type "
                             "that holds both")
        with self.space.active(factors.n):
            X = xp.array(self.space.from_host(B).reshape(factors.n, -1)[factors.order], factors.dtype,
                         order=self.settings.layout)
            if not bool(xp.isfinite(X).all()):  # sync
                raise InputError("B has entries that are not finite: expected finite numbers")
            X = self.substitute(X) if X.size else X
            finite = xp.isfinite(X).all(axis=0)
            if not bool(finite.all()):  # sync
                why = "; ".join(factors.notes) or f"its entries overflow {X.dtype.name}"
                raise FactorisationError(f"{describe(self.settings)}: the solution for right-hand side "
                                         f"{int(finite.argmin())} is not finite; {why}")
            X = X.reshape(B.shape)
            return self.space.to_host(X) if host else X

    @abstractmethod
    def substitute(self, X):
        """Solve L U X = P B and return X. The argument holds P B, shape (n, m), in the settings' ``layout``; it may be
        overwritten."""
