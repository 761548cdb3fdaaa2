"""Base of all triangular solves: the settings, and the operator x = T⁻¹ b that they build.

``solve=`` chooses among ``exact`` (exact.py), ``sweeps`` (sweeps.py) and ``isai`` (isai.py). All store T = D (I + N)
or (I + N) D, with N strictly triangular and D inverted: no division stands in the chain from row to row. All keep their
analysis when values change.
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
    symmetric = True        # the solve with Tᴴ is the adjoint of that with T
    idle = ()               # fields that have no effect on some devices or matrices
    alike = True            # the solves with T and with D Tᵀ are transposes but for D, so that L and D Lᵀ keep symmetry

    def alone(self, lower):
        """The settings for one triangle that is solved with on its own, so that its adjoint is exactly that."""
        return self

    def unguarded(self, T, lower, unit, order):
        """The operator, whatever it leaves of an error (guard.py); by default as ``build`` makes it."""
        return self.build(T, lower, unit, order)

    @abstractmethod
    def build(self, T, lower, unit=False, order=None):
        """The operator T⁻¹ (or what stands for it).

        Parameters
        ----------
        T : CSRMatrix or BSRMatrix
            Of which one triangle is taken, whatever is in the other; a BSRMatrix is solved with blockwise.
        lower : bool
            Which triangle.
        unit : bool
            The diagonal is one, whatever is stored.
        order : int array of the space, shape (n,), or None
            Row i of T belongs to entry ``order[i]`` of the vectors; None: to entry i. Of a BSRMatrix: block
            rows, and blocks.

        Returns
        -------
        TriangularOperator

        Raises
        ------
        FactorisationError
            If a diagonal entry is zero.
        """


def resolve_solve(choice):
    """The settings of a triangular solve from a name, a text such as "sweeps(count=5)", or the settings object."""
    settings = resolve("triangular", choice)
    if settings is None:
        raise InputError(f"solve={choice!r}: expected 'exact', 'sweeps(count=3)', 'isai(power=1)', or their settings "
                         "object")
    return settings


class TriangularOperator(LinearOperator):
    """x = T⁻¹ b for one triangular matrix. ``out`` may be ``x`` itself in every solve."""

    scratch = ("_combined",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T.shape, T.dtype, T.space)
        self.lower, self.unit, self.order, self.settings = lower, unit, order, settings
        self._combined = None
        self.notes = idle_notes(settings, circumstances(T))

    def prepare_adjoint(self):
        """Set up what ``solve_adjoint`` needs, for loops that must not allocate; nothing to do where it is the same."""

    @abstractmethod
    def update(self, T):
        """Take the values of another matrix of the same pattern; the analysis is kept."""

    def source(self, out):
        """Preferred buffer of a vector that is to be solved with into ``out``; using it avoids a copy."""
        return out

    @abstractmethod
    def solve(self, x, out):
        """``out = T⁻¹ x``."""

    @abstractmethod
    def solve_adjoint(self, x, out):
        """``out = T⁻ᴴ x``."""

    def adjoint_dots(self, x, out, w, dots):
        """``out = T⁻ᴴ x`` with ``dots[0] = (w, out)`` and ``dots[1] = (out, out)``."""
        self.solve_adjoint(x, out)
        self.space.dots(w, out, dots)

    def apply(self, x, out, alpha=1, beta=0):
        self._combine(self.solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._combine(self.solve_adjoint, x, out, alpha, beta)

    def _combine(self, solve, x, out, alpha, beta):
        combine(self, solve, x, out, alpha, beta)

    def stored(self, dtype):
        """The type in which values of ``dtype`` are stored."""
        return np.dtype({"f": np.float32, "c": np.complex64}[dtype.kind]) if self.settings.single else np.dtype(dtype)


class Gathering(TriangularOperator):
    """A solve that gathers by rows: Tᴴ needs an operator of its own, which is made where it is first needed."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self._source, self._adjoint = T, None

    @abstractmethod
    def load(self, T):
        """Take the values of T for the solve with T itself."""

    def update(self, T):
        self._source = T
        self.load(T)
        if self._adjoint is not None:
            self._adjoint.update(self.turned(T))

    def turned(self, T):
        """Tᴴ as a new matrix."""
        return T.transpose(conjugate=True)

    def adjoint(self):
        """The operator of Tᴴ."""
        if self._adjoint is None:
            T = self.turned(self._source)
            self._adjoint = self.settings.unguarded(T, not self.lower, self.unit, self.order)
        return self._adjoint

    def prepare_adjoint(self):
        self.adjoint()

    def solve_adjoint(self, x, out):
        self.adjoint().solve(x, out)


def combine(owner, solve, x, out, alpha, beta):
    """``out = alpha solve(x) + beta out``; a buffer is needed, and made once, only where something is to be added."""
    if beta == 0:
        solve(x, out)
        if alpha != 1:
            out *= out.dtype.type(alpha)
        return
    if owner._combined is None:
        owner._combined = owner.space.empty((2, *out.shape), out.dtype)
        owner._combined[1] = 1
    solve(x, owner._combined[0])
    kind = out.dtype.type                        # one type, one compilation
    owner.space.kernels("swell.core", "vector", out.dtype).multiply_add(owner._combined[1], owner._combined[0], out,
                                                                        kind(alpha), kind(beta))


def zero_diagonal(row):
    """The error of a factor that cannot be divided by."""
    return FactorisationError(f"the triangular factor has a zero on its diagonal, in row {row}: the factorisation "
                              "broke down; choose another preconditioner")


def inverse_diagonal(T):
    """1 / d of the diagonal d of a triangular factor; raises FactorisationError where it has a zero."""
    d = T.diagonal()
    first, zeros = T.space.find_true(d == 0)  # sync
    if zeros:
        raise zero_diagonal(first)
    return 1 / d


def random_vector(n, dtype, space):
    """The same random vector every time."""
    v = space.empty(n, dtype)
    space.random(1, v)
    return v
