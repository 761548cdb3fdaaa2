"""LinearOperator: everything that multiplies, be it a matrix, a preconditioner or a user's function."""
from __future__ import annotations

from abc import ABC, abstractmethod

from swell.core.errors import InputError


class LinearOperator(ABC):
    """A linear map between vectors of one space.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
        Type of its vectors.
    space : Space
        Where its vectors live.
    spd, symmetric, hermitian : bool
        What is known; False says "not known".
    has_entries : bool
        True for a matrix whose entries can be looked at and scaled; False for one that only multiplies.
    self_adjoint : bool or None
        Of a preconditioner: False if it is known not to be its own adjoint, for a Hermitian matrix; None: not known.
    variable : bool
        True if it is not a fixed linear map; Krylov methods then need their flexible form.
    capturable : bool
        True if ``apply`` launches the same device work at every call, so that a CUDA graph can hold it.
    revision : int
        Changes where ``update`` has changed what ``apply`` launches: captured work is made anew.
    notes : tuple of str
        What the user must know of how it was set up; the result of a solve shows it.
    scratch : tuple of str
        Attributes whose arrays an application writes to: copies for other threads have their own (``sharing.py``).
        A class names its own; its bases' count too.
    """

    has_entries = False
    spd = False
    symmetric = False
    hermitian = False
    self_adjoint = None
    variable = False
    capturable = True
    revision = 0
    notes = ()
    scratch: tuple[str, ...] = ()

    def __init__(self, shape, dtype, space):
        self.shape = shape
        self.dtype = dtype
        self.space = space

    @abstractmethod
    def apply(self, x, out, alpha=1, beta=0):
        """``out = alpha A x + beta out``; with ``beta == 0`` the old ``out`` is never read."""

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        """``out = alpha Aᴴ x + beta out``.

        Raises
        ------
        InputError
            If this operator has no adjoint.
        """
        raise InputError(f"{type(self).__name__} has no adjoint product; choose a method that does not need one "
                         "(cg, gmres or bicgstab)")

    def apply_dots(self, x, out, w, dots):
        """``out = A x`` with ``dots[0] = (w, out)`` and ``dots[1] = (out, out)``, fused where that saves a pass."""
        self.apply(x, out)
        self.space.dots(w, out, dots)

    def apply_dot(self, x, out, w, dots):
        """The same where ``dots[1]`` is not looked at: it is anything."""
        self.apply_dots(x, out, w, dots)

    def residual(self, x, b, out):
        """``out = b − A x``."""
        self.space.copy(b, out)
        self.apply(x, out, -1, 1)

    def follow(self, A):
        """Of a preconditioner that stays while A takes new values of its pattern: do what cannot wait."""

    @property
    def diagonal_block(self) -> "LinearOperator":
        """What maps the vectors' part that is here to itself: all of it on one device."""
        return self

    def part_for(self, settings) -> "LinearOperator":
        """``diagonal_block``, for the setup of a preconditioner with these settings; a call of all ranks together."""
        return self.diagonal_block

    def check(self, configuration, stopping):
        """Raise InputError for a configuration that cannot be used with this operator."""

    def norm_inf(self) -> float:
        """‖A‖∞; NaN where there are no entries."""
        return float("nan")

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return 0

    def describe(self) -> str:
        """One line for the result's printed configuration."""
        return type(self).__name__


class OperatorAround(LinearOperator):
    """An operator around another one, ``inner``, which decides how it may be used."""

    inner: LinearOperator

    @property
    def variable(self):
        """That of the inner operator, as the next three."""
        return self.inner.variable

    @property
    def capturable(self):
        return self.inner.capturable

    @property
    def revision(self):
        return self.inner.revision

    @property
    def notes(self):
        return self.inner.notes


class CallableOperator(LinearOperator):
    """A user's function as an operator: ``matvec(x)`` returns A x as an array of the same space.

    It may do anything, so it is never captured in a graph, and a preconditioner made from it counts as variable
    unless the user says that it is linear.
    """

    capturable = False

    def __init__(self, shape, dtype, space, matvec, adjoint=None, variable=False, name="user function"):
        super().__init__(shape, dtype, space)
        self._matvec, self._adjoint = matvec, adjoint
        self.variable = variable
        self._name = name

    def apply(self, x, out, alpha=1, beta=0):
        self._combine(self._matvec, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._adjoint is None:
            return super().apply_adjoint(x, out, alpha, beta)
        try:
            self._combine(self._adjoint, x, out, alpha, beta)
        except NotImplementedError:              # SciPy's operators have an rmatvec that says this
            super().apply_adjoint(x, out, alpha, beta)

    def _combine(self, function, x, out, alpha, beta):
        # The user gets a copy: a function that writes into its argument must not change the method's vectors.
        y = self.space.xp.asarray(function(x.copy())).reshape(-1)
        if y.shape != out.shape:
            raise InputError(f"{self._name} returned {y.size} values for a vector of {x.size}: expected {out.size}")
        if y.dtype.kind == "c" and out.dtype.kind != "c":
            raise InputError(f"{self._name} returned complex values in a real system: give dtype=complex")
        if beta == 0:
            self.space.xp.multiply(y, alpha, out=out, casting="same_kind")
        else:
            out *= beta
            out += (alpha * y).astype(out.dtype, copy=False)

    def describe(self) -> str:
        return self._name
