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
    name : str
        The registry name of a matrix's format; "matrix-free" for an operator that only multiplies.
    nnz : int or None
        Entries of a matrix; None of other operators.
    origin : str
        How a matrix's format, or its division among ranks, was chosen; empty where there is nothing to tell.
    has_entries : bool
        True for a `SystemMatrix`, whose entries can be read and scaled.
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

    name = "matrix-free"
    nnz = None
    origin = ""
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
        """Like `apply_dots`, but only ``dots[0]`` is computed; ``dots[1]`` is unspecified."""
        self.apply_dots(x, out, w, dots)

    def apply_plus(self, x, z, out):
        """``out = z + A x``; z may be ``out`` itself, x may not."""
        if z is not out:
            self.space.copy(z, out)
        self.apply(x, out, 1, 1)

    def residual(self, x, b, out):
        """``out = b − A x``."""
        self.space.copy(b, out)
        self.apply(x, out, -1, 1)

    def update(self, A):
        """Recompute for new values of A, of the same pattern, in place. An operator that was not built from A stays."""

    def keep_for(self, A):
        """Stay while A takes new values; a preconditioner that depends on A itself adjusts what must follow it."""

    @property
    def diagonal_block(self) -> "LinearOperator":
        """This rank's diagonal block; the whole operator on one device."""
        return self

    @property
    def arithmetic(self):
        """The type in which it computes: narrower than ``dtype`` for an operator in lower precision."""
        return self.dtype

    def expect(self, norm):
        """Vectors of about this norm are coming: a solve says so before it starts."""

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
        """As the inner operator says; so for the next three."""
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

    def expect(self, norm):
        self.inner.expect(norm)


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
