"""Base of all triangular solves: the settings, and the operator x = T⁻¹ b that they build.

``solve=`` chooses among ``exact`` (exact.py), ``sweeps`` (sweeps.py) and ``isai`` (isai.py). The first two store
T = D (I + N) or (I + N) D, with N strictly triangular and D inverted: a row waits for other rows, but for no division.
The third stores an approximation of T⁻¹. All keep their analysis when values change.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.settings import IN_SINGLE, Idle, circumstances, idle_notes

SINGLE = Idle("single", IN_SINGLE, "that is the factor's precision already")


class TriangularSolve(ABC):
    """Settings of a triangular solve."""

    problem = "a triangular matrix, its diagonal without zeros"
    cost: str
    symmetric = True        # the solve with Tᴴ is the adjoint of the solve with T
    idle: tuple[Idle, ...] = ()              # fields that have no effect on some devices or matrices
    alike = True            # up to D, the solves with T and D Tᵀ are transposes: L and U = D Lᵀ make M symmetric

    def for_one_triangle(self, lower):
        """Return settings for one triangle, the lower one if ``lower``: with its own values where the two triangles'
        differ. Its adjoint solve then uses the same settings."""
        return self

    def unguarded(self, T, lower, unit, order):
        """Build the operator without the guard's test (guard.py); here the same as `build`, which explains the
        arguments."""
        return self.build(T, lower, unit, order)

    @abstractmethod
    def build(self, T, lower, unit=False, order=None):
        """Build the operator T⁻¹, or its approximation.

        Parameters
        ----------
        T : CSRMatrix, BSRMatrix or BlockFactor
            One triangle is used, entries of the other are ignored. Blocks give a blockwise solve; of a BSRMatrix the
            triangle is copied.
        lower : bool
            True: the lower triangle; False: the upper one.
        unit : bool
            Take a unit diagonal, and ignore a stored one.
        order : int device array, shape (n,), or None
            Row i of T belongs to entry ``order[i]`` of the vectors; None: to entry i. With blocks: block row i and
            block ``order[i]``.

        Returns
        -------
        TriangularOperator

        Raises
        ------
        FactorisationError
            If a diagonal entry is zero.
        """


def resolve_solve(choice):
    """Return the settings object of a triangular solve from ``choice``: a name, a text such as "sweeps(count=5)", or
    the object."""
    settings = resolve("triangular", choice)
    if settings is None:
        raise InputError(f"solve={choice!r}: expected 'exact', 'sweeps(count=3)', 'isai(power=1)', or their settings "
                         "object")
    return settings


class TriangularOperator(LinearOperator):
    """x = T⁻¹ b for one triangular matrix. ``out`` may be ``x`` itself in every solve."""

    scratch: tuple[str, ...] = ("_combined",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T.shape, T.dtype, T.space)
        self.lower, self.unit, self.order, self.settings = lower, unit, order, settings
        self._combined = None
        self.notes = idle_notes(settings, circumstances(T))

    def prepare_adjoint(self):
        """Allocate the work arrays of `solve_adjoint`, before a loop calls it. By default there are none."""

    @abstractmethod
    def update(self, T):
        """Replace the stored values by T's, a matrix with the same pattern; the analysis is kept."""

    def source(self, out):
        """Return the preferred input buffer of a solve that writes ``out``: a caller that puts x there avoids a copy.
        """
        return out

    @abstractmethod
    def solve(self, x, out):
        """Write out = T⁻¹ x."""

    @abstractmethod
    def solve_adjoint(self, x, out):
        """Write out = T⁻ᴴ x."""

    def adjoint_dots(self, x, out, w, dots):
        """Write out = T⁻ᴴ x, ``dots[0] = (w, out)`` and ``dots[1] = (out, out)``; the first vector of a product is
        conjugated."""
        self.solve_adjoint(x, out)
        self.space.dots(w, out, dots)

    def apply(self, x, out, alpha=1, beta=0):
        self._combine(self.solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._combine(self.solve_adjoint, x, out, alpha, beta)

    def _combine(self, solve, x, out, alpha, beta):
        combine(self, solve, x, out, alpha, beta)

    def stored(self, dtype):
        """Return the type in which values of type ``dtype`` are stored: single precision if the settings say so, else
        ``dtype``."""
        return np.dtype({"f": np.float32, "c": np.complex64}[dtype.kind]) if self.settings.single else np.dtype(dtype)


class Gathering(TriangularOperator):
    """A solve that gathers by rows. Tᴴ needs its own operator, which is built when it is first needed."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self._source, self._adjoint = T, None

    @abstractmethod
    def load(self, T):
        """Overwrite the stored values by T's, for the solve with T itself; the operator of Tᴴ is not touched."""

    def update(self, T):
        self._source = T
        self.load(T)
        if self._adjoint is not None:
            self._adjoint.update(self.adjoint_of(T))

    def adjoint_of(self, T):
        """Return Tᴴ, a new matrix."""
        return T.transpose(conjugate=True)

    def adjoint(self):
        """Return the operator of Tᴴ; the first call builds it."""
        if self._adjoint is None:
            T = self.adjoint_of(self._source)
            self._adjoint = self.settings.unguarded(T, not self.lower, self.unit, self.order)
        return self._adjoint

    def prepare_adjoint(self):
        self.adjoint()

    def solve_adjoint(self, x, out):
        self.adjoint().solve(x, out)


def combine(owner, solve, x, out, alpha, beta):
    """Write out = alpha S x + beta out, where ``solve(x, y)`` writes y = S x.

    The first call with ``beta`` ≠ 0 allocates a buffer, kept as ``owner._combined``."""
    if beta == 0:
        solve(x, out)
        if alpha != 1:
            out *= out.dtype.type(alpha)
        return
    if owner._combined is None:
        owner._combined = owner.space.empty(out.shape, out.dtype)
    solve(x, owner._combined)
    owner.space.axpby(alpha, owner._combined, beta, out)


def zero_diagonal(row):
    """Return (not raise) the FactorisationError for a zero diagonal entry in ``row`` of a triangular factor."""
    return FactorisationError(f"the triangular factor has a zero on its diagonal, in row {row}: the factorisation "
                              "broke down; choose another preconditioner")


def inverse_diagonal(T):
    """Return a new array 1 / d for the diagonal d of a triangular factor. Raises FactorisationError for a zero."""
    d = T.diagonal()
    first, zeros = T.space.find_true(d == 0)  # sync
    if zeros:
        raise zero_diagonal(first)
    return 1 / d


def random_vector(n, dtype, space):
    """Return a new random vector of length n in ``space``. Its seed is fixed, so it is equal at every call."""
    v = space.empty(n, dtype)
    space.random(1, v)
    return v
