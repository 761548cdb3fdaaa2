"""Base of all dense solvers: the check of factors (table 2.3 of the thesis) and right-hand sides, and the return of X.

A X = B with P A = L U: permute B by P, then solve L Y = P B, then U X = Y, in place (section 1.3.1). Aᵀ X = B: solve
Uᵀ Y = B, then Lᵀ Z = Y, then X = Pᵀ Z. The transposed array holds Uᵀ and Lᵀ as it held L and U, with the unit diagonal
in the other factor. So each solver has one code for both, and Aᴴ X = B is Aᵀ X̄ = B̄.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.registry import TABLE, load, name_of
from swell.core.settings import describe
from swell.dense.factors import CroutFactors, DoolittleFactors, LUFactors, triangle

TRANS = ("N", "T", "C")  # LAPACK's letters for A, Aᵀ and Aᴴ


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
    accepts: tuple[type[LUFactors], ...] = (CroutFactors, DoolittleFactors)
    devices: tuple[str, ...] = ("cpu", "cuda")
    layout = "F"

    def build(self, factors, trans="N"):
        """Return a ``BoundSolver`` for the factors; ``trans``: "N", "T" or "C", for A, Aᵀ or Aᴴ.

        Raises
        ------
        InputError
            If it does not take such factors, or does not run on their device; the message names solvers that do.
            If ``trans`` is another letter.
        """
        if not isinstance(trans, str) or trans not in TRANS:
            raise InputError(f"trans={trans!r}: expected 'N' for A X = B, 'T' for its transpose or 'C' for its adjoint")
        fitting = ", ".join(name for name in TABLE["dense_solver"] if _fits(load("dense_solver", name), factors))
        name = name_of("dense_solver", type(self))
        if not isinstance(factors, self.accepts):
            units = " or ".join(kind.unit for kind in self.accepts)
            raise InputError(f"{name} takes factors with the unit diagonal in {units}, and "
                             f"{type(factors.decomposer).__name__} leaves it in {factors.unit}: take one of {fitting}")
        if factors.space.name not in self.devices:
            raise InputError(f"{name} runs on {' and '.join(self.devices)}, and these factors are on "
                             f"{factors.space.name}: take one of {fitting}")
        return self.bind(factors, trans)

    def tightened(self):
        """Return a copy of these settings with a smaller processing tolerance; None if the solution is exact."""

    @abstractmethod
    def bind(self, factors, trans):
        """Return a new ``BoundSolver`` for the factors, without checks; ``trans`` as in ``build``."""


def _fits(solver, factors):
    """Return True if settings of this class of solver accept the factors, on their device."""
    return issubclass(type(factors), solver.accepts) and factors.space.name in solver.devices


def checked_right_hand_sides(B, n, dtype):
    """Return (B, host): B as an array, and True if it is on the host.

    Raises InputError unless its shape is (n,) or (n, m), and ``dtype``, of the matrix, holds its numbers."""
    host = isinstance(B, np.ndarray) or not hasattr(B, "dtype")
    try:
        B = np.asarray(B) if host else B
    except ValueError:
        raise InputError(f"B is a list with parts of different lengths: expected ({n},) or ({n}, m) numbers") from None
    if B.ndim not in (1, 2) or B.shape[0] != n:
        raise InputError(f"B has shape {tuple(B.shape)}: expected ({n},) or ({n}, m)")
    if B.dtype.kind not in "iubfc" or B.dtype.kind == "c" != dtype.kind:
        raise InputError(f"B has dtype {B.dtype.name} and the factors are {dtype.name}: factor A in a type that holds "
                         "both")
    return B, host


def solve_scaled(xp, solve, B):
    """Return ``solve`` applied to B with each column's largest modulus scaled to 1, and scaled back: so an absolute
    tolerance is a relative one, and small numbers do not underflow. B has shape (..., n, m)."""
    size = abs(B).max(axis=-2, keepdims=True)
    size = xp.where(size > 0, size, 1)
    return solve(B / size) * size


class BoundSolver(ABC):
    """A solver for one matrix, op(A) X = B with op(A) = A, Aᵀ or Aᴴ.

    Attributes
    ----------
    settings : DenseSolver
    factors : LUFactors
    transposed : bool
        True for Aᵀ and Aᴴ.
    matrix : device array, shape (n, n)
        A view of the factors: its lower triangle is solved with first, L or Uᵀ, then the upper one.
    unit : {"L", "U"}
        The triangle of ``matrix`` with the unit diagonal.
    lu : device array, shape (n * n,)
        The memory of ``matrix`` for kernels; entry (i, j) is at ``i row + j column``.
    """

    def __init__(self, settings, factors, trans="N"):
        self.settings, self.factors, self.space = settings, factors, factors.space
        self.transposed, self._conjugate = trans != "N", trans == "C" and factors.dtype.kind == "c"
        self.matrix, self.unit = factors.lu, factors.unit
        if self.transposed:
            self.matrix, self.unit = self.matrix.T, "LU".replace(self.unit, "")
        rows = self.matrix.strides[1] == self.matrix.itemsize
        self.lu = (self.matrix if rows else self.matrix.T).reshape(-1)
        self.row, self.column = (factors.n, 1) if rows else (1, factors.n)

    def solve(self, B):
        """Solve op(A) X = B.

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
        B, host = checked_right_hand_sides(B, factors.n, factors.dtype)
        with self.space.active(factors.n):
            B_array = xp.asarray(self.space.from_host(B).reshape(factors.n, -1), factors.dtype)
            if not bool(xp.isfinite(B_array).all()):  # sync
                raise InputError("B has entries that are not finite: expected finite numbers")
            X = self.apply(B_array) if B_array.size else B_array.copy()
            finite = xp.isfinite(X).all(axis=0)
            if not bool(finite.all()):  # sync
                why = "; ".join(factors.notes) or f"its entries overflow {X.dtype.name}"
                raise FactorisationError(f"{describe(self.settings)}: the solution for right-hand side "
                                         f"{int(finite.argmin())} is not finite; {why}")
            self.check(B_array, X)
            X = X.reshape(B.shape)
            return self.space.to_host(X) if host else X

    def check(self, B, X):
        """Raise FactorisationError if X, computed for B, is useless; exact solvers need no such check."""

    def apply(self, B):
        """Return op(A)⁻¹ B as a new array, without checks; B is a device array of the factors' type, shape (n, m)."""
        xp, order, layout = self.space.xp, self.factors.order, self.settings.layout
        if not self.transposed:
            return self.substitute(xp.array(B[order], order=layout))
        Z = self.substitute(xp.array(B.conj() if self._conjugate else B, order=layout))
        X = xp.empty_like(Z)
        X[order] = Z.conj() if self._conjugate else Z
        return X

    def product(self, X):
        """Return the first factor times the second one times X, a new array; ``substitute`` inverts this product."""
        xp = self.space.xp
        lower, upper = (triangle(xp, self.matrix, part == "L", part == self.unit) for part in "LU")
        return lower @ (upper @ X)

    @abstractmethod
    def substitute(self, X):
        """Solve with the lower and then with the upper triangle of ``matrix``, and return X. The argument holds the
        right-hand sides in the order of the rows, shape (n, m), in the settings' ``layout``; it may be overwritten."""
