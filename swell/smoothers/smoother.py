"""Base of all smoothers: settings whose ``build(A)`` gives an operator that improves a guess, and preconditions.

A sweep is x ← x + B⁻¹ (b − A x) for a B ≈ A that is easy to invert. As a preconditioner, z = M r is a given number of
sweeps on A z = r from z = 0: M = Σₖ (I − B⁻¹A)ᵏ B⁻¹, a fixed linear map if B is one. Its adjoint has Bᴴ and Aᴴ in place
of B and A. The operator builds it from the settings of the adjoint and Aᴴ.

Paper: "An Efficient Solver for Symmetric Positive Definite Matrices from Finite Volume Methods on GPU", chapter 4.
"""
from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.core.settings import positive


@dataclass(frozen=True)
class Smoother(Preconditioner):
    """Settings of a smoother.

    Attributes
    ----------
    sweeps : int
        Sweeps of one application as a preconditioner, and the default number for ``smooth``.
    """

    sweeps: int = 1

    def __post_init__(self):
        positive(self, "sweeps")

    @abstractmethod
    def build(self, A) -> "SmootherOperator":
        """Return the smoother for a square CSR matrix, in the matrix's space."""


class SmootherOperator(LinearOperator):
    """A smoother bound to a matrix: ``smooth`` improves a guess, ``apply`` preconditions.

    Attributes
    ----------
    settings : Smoother
    A : CSRMatrix
        The matrix of the system.
    self_adjoint : bool
        True if M = Mᴴ wherever A = Aᴴ, as CG needs it.

    Raises
    ------
    InputError
        If A is not square.
    """

    self_adjoint = False

    scratch = ("_y",)

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        if A.shape[0] != A.shape[1]:
            raise InputError(f"{type(settings).__name__} got a matrix of shape {A.shape}: expected a square one")
        self.settings, self.A = settings, A
        self._y = A.space.empty(A.shape[0], A.dtype)
        self._adjoint = None

    def smooth(self, b, x, sweeps=None):
        """Improve x, in place, by sweeps on A x = b.

        Parameters
        ----------
        b, x : arrays of the space, shape (n,)
        sweeps : int, optional
            Number of sweeps; by default ``settings.sweeps``.
        """
        for _ in range(self.settings.sweeps if sweeps is None else sweeps):
            self._sweep(b, x)

    @abstractmethod
    def _sweep(self, b, x):
        """Do one sweep on A x = b, in place in x."""

    def _from_zero(self, b, x):
        """Do ``settings.sweeps`` sweeps on A x = b from x = 0; x is written, and its old values are never read."""
        x.fill(0)
        self.smooth(b, x)

    def update(self, A):
        """Recompute in place for new values of A, of the same pattern. Subclasses add their own stored data."""
        if self._adjoint is not None:            # captured work holds the old adjoint
            self.revision += 1
        self.A, self._adjoint = A, None

    def apply(self, x, out, alpha=1, beta=0):
        if alpha == 1 and beta == 0:
            self._from_zero(x, out)
        else:
            self._from_zero(x, self._y)
            self.space.axpby(alpha, self._y, beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self.variable:
            raise InputError(f"{self.describe()} is not a fixed linear map, so it has no adjoint: choose a fixed "
                             "number of synchronous inner sweeps, or a method without adjoint products")
        if self._adjoint is None:                # built at its first use, and again after an update
            self._adjoint = self._build_adjoint(self.A.transpose(conjugate=True))
        self._adjoint.apply(x, out, alpha, beta)

    def _build_adjoint(self, A):
        """Return the adjoint of this operator, as a new operator; A is the adjoint matrix, a CSRMatrix."""
        return self.settings.build(A)


class TwoBufferOperator(SmootherOperator):
    """A smoother that reads x from one vector and writes it to another, as synchronous sweeps do.

    Attributes
    ----------
    steps : int
        Steps of a sweep, each from one vector to the other.
    """

    steps = 1

    scratch = ("_other",)

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self._other = A.space.empty(A.shape[0], A.dtype)

    @abstractmethod
    def _step(self, b, x, out, k, zero):
        """Do step k of a sweep on A x = b, k < ``steps``: write the new x to ``out``. With ``zero`` x counts as 0, not
        read."""

    def _sweep(self, b, x):
        self.smooth(b, x, 1)

    def smooth(self, b, x, sweeps=None):
        count = self.steps * (self.settings.sweeps if sweeps is None else sweeps)
        here, there = x, self._other
        if count % 2:                            # copy first, not last: stopped kernels must leave x unchanged
            self.space.copy(x, self._other)
            here, there = there, here
        for k in range(count):
            self._step(b, here, there, k % self.steps, 0)
            here, there = there, here

    def _from_zero(self, b, x):
        count = self.steps * self.settings.sweeps
        here, there = (self._other, x) if count % 2 else (x, self._other)
        for k in range(count):
            self._step(b, here, there, k % self.steps, int(k == 0))
            here, there = there, here
