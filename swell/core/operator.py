"""LinearOperator: the interface of matrices, preconditioners and users' functions."""
from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from swell.core.columns import Columns
from swell.core.errors import InputError

if TYPE_CHECKING:
    from swell.core.space import Space


class LinearOperator(ABC):
    """A linear map between vectors of one space.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
        Type of its vectors.
    space : Space
        The space of its vectors.
    spd, symmetric, hermitian : bool
        True if the property is known to hold; False means "not known".
    name : str
        The registry name of a matrix's format; "matrix-free" for an operator that only multiplies.
    nnz : int or None
        Number of entries of a matrix; None for other operators.
    origin : str
        How a matrix's format, or its distribution over ranks, was chosen; may be empty.
    has_entries : bool
        True for a `SystemMatrix`, whose entries can be read and scaled.
    self_adjoint : bool or None
        For a preconditioner of a Hermitian matrix: False if it is known not to be self-adjoint; None: not known.
    variable : bool
        True if it is not a fixed linear map; Krylov methods then need their flexible form.
    capturable : bool
        True if ``apply`` launches the same device work at every call, so that a CUDA graph can hold it.
    revision : int
        Changes if ``update`` changes the work that ``apply`` launches; it must then be captured again.
    notes : tuple of str
        Notes for the user on its setup; the result of a solve shows them.
    scratch : tuple of str
        Attributes whose arrays ``apply`` writes to: a copy for another thread has its own (``sharing.py``).
        A class lists only its own; those listed by its bases are added.
    hints : tuple of str
        Attributes that ``update`` may replace, since ``apply`` does not read them; listed likewise.
    """

    name = "matrix-free"
    nnz: int | None = None
    origin = ""
    has_entries = False
    spd = False
    symmetric = False
    hermitian = False
    self_adjoint: bool | None = None
    variable = False
    capturable = True
    revision = 0
    notes: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, space: Space):
        self.shape = shape
        self.dtype = dtype
        self.space = space

    @abstractmethod
    def apply(self, x, out, alpha=1, beta=0):
        """``out = alpha A x + beta out``, with A this operator; with ``beta == 0`` the old ``out`` is never read.

        x and ``out`` share no memory, since most operators gather from x while they write ``out``. A class that allows
        ``out`` to be x says so (`TriangularOperator`). The same holds for `apply_adjoint` and `apply_dots`."""

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
        """``out = A x``, ``dots[0] = (w, out)`` and ``dots[1] = (out, out)``, fused if that saves a pass."""
        self.apply(x, out)
        self.space.dots(w, out, dots)

    def apply_dot(self, x, out, w, dots):
        """Like `apply_dots`, but only ``dots[0]`` is computed; ``dots[1]`` is unspecified."""
        self.apply_dots(x, out, w, dots)

    def apply_plus(self, x, z, out):
        """``out = z + A x``. ``out`` may be the same array as z, but not as x."""
        if z is not out:
            self.space.copy(z, out)
        self.apply(x, out, 1, 1)

    def residual(self, x, b, out):
        """``out = b − A x``."""
        self.space.copy(b, out)
        self.apply(x, out, -1, 1)

    def residual_terms(self, x, b, out, terms):
        """``out = b − A x`` and ``terms = |A||x| + |b|``, in double precision; NaN in ``terms`` if |A| is unknown.

        ``b`` and ``out`` have the type ``accumulator(dtype)``, and x the type of this operator."""
        product = self.space.buffer(x.size, self.dtype)
        self.apply(x, product)
        out[...] = b - product
        terms.fill(float("nan"))

    def precise_residual(self, x, b, out, low) -> bool:
        """``out = b − A x`` in doubled precision. Return False if this operator cannot do that; ``out`` is unchanged.

        Types as for `residual_terms`; ``low`` is a buffer like ``out``."""
        return False

    def update(self, A):
        """Recompute this operator in place for new values of the matrix A, with the same pattern.

        An operator that was not built from A is unchanged."""

    def keep_for(self, A):
        """Stay as built from A's old values, although A has new ones.

        An operator that also multiplies by A, as some preconditioners do, must take the new A for its products."""

    @property
    def diagonal_block(self) -> "LinearOperator":
        """This rank's diagonal block; the whole operator on one device."""
        return self

    @property
    def arithmetic(self):
        """The dtype in which the operator computes; narrower than ``dtype`` for an operator in lower precision."""
        return self.dtype

    def expect(self, norm):
        """Prepare for vectors of about this 2-norm, if the operator scales them; each solve calls this first."""

    def in_double_precision(self, why) -> "LinearOperator | None":
        """Return this operator computing in double precision, with a note that says ``why``; None if it already does,
        or has no such form."""
        return None

    def check(self, configuration, stopping):
        """Raise InputError for a Configuration or Stopping settings that cannot be used with this operator."""

    def norm_inf(self) -> float:
        """‖A‖∞; NaN for an operator without entries."""
        return float("nan")

    @property
    def nbytes(self) -> int:
        """Storage in bytes."""
        return 0

    def describe(self) -> str:
        """One line for the result's printed configuration."""
        return type(self).__name__


class Composite(LinearOperator):
    """An operator that applies others, its ``parts``, and behaves as they do.

    A subclass defines its own products, symmetry and updates. It overrides ``parts`` if it applies more than ``inner``.
    """

    inner: LinearOperator

    @property
    def parts(self) -> tuple[LinearOperator, ...]:
        """The operators that ``apply`` applies."""
        return (self.inner,)

    @property
    def variable(self):
        return any(part.variable for part in self.parts)

    @property
    def capturable(self):
        return all(part.capturable for part in self.parts)

    @property
    def revision(self):
        return sum(part.revision for part in self.parts)

    @property
    def notes(self):
        return tuple(dict.fromkeys(note for part in self.parts for note in part.notes))

    @property
    def arithmetic(self):
        return min((part.arithmetic for part in self.parts), key=lambda t: np.dtype(t).itemsize, default=self.dtype)

    def expect(self, norm):
        for part in self.parts:
            part.expect(norm)


def _of_inner(name):
    """Return a property that reads the attribute ``name`` of ``inner``."""
    return property(lambda self: getattr(self.inner, name))


class Wrapper(Composite):
    """The operator ``inner`` in another form. A subclass overrides what it changes; all else is ``inner``'s.

    A subclass with an ``apply`` of its own also has its own ``apply_adjoint``. One that builds ``inner`` from another
    matrix than its own also has its own ``update`` and ``keep_for``. Fused products are not forwarded: they
    follow from ``apply``. Methods of matrices alone, such as ``norm_inf``, are not forwarded either."""

    name, nnz, origin, nbytes = map(_of_inner, ("name", "nnz", "origin", "nbytes"))
    spd, symmetric, hermitian, self_adjoint = map(_of_inner, ("spd", "symmetric", "hermitian", "self_adjoint"))

    def apply(self, x, out, alpha=1, beta=0):
        self.inner.apply(x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.inner.apply_adjoint(x, out, alpha, beta)

    def update(self, A):
        self.inner.update(A)

    def keep_for(self, A):
        self.inner.keep_for(A)

    def in_double_precision(self, why):
        inner = self.inner.in_double_precision(why)
        if inner is None:
            return None
        made = copy.copy(self)
        made.inner = inner
        return made

    def check(self, configuration, stopping):
        self.inner.check(configuration, stopping)

    def describe(self):
        return self.inner.describe()


class CallableOperator(LinearOperator):
    """A user's function as an operator: ``matvec(x)`` returns A x as an array of the same space.

    The function may do anything, so a CUDA graph never captures it. A preconditioner made from it counts as variable,
    unless the user declares it linear.
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
        except NotImplementedError:              # SciPy's operators always have an rmatvec, which may raise this
            super().apply_adjoint(x, out, alpha, beta)

    def _combine(self, function, x, out, alpha, beta):
        """``out = alpha function(x) + beta out``; ``function`` is the user's, and gets a copy of x.

        Raises InputError if it returns another length, or complex values in a real system."""
        if isinstance(x, Columns):               # it takes one vector
            y = self.space.buffer(x.size, x.dtype)
            for j in range(x.count):
                self._combine(function, x.column(j), y.column(j), 1, 0)
            self.space.axpby(alpha, y, beta, out)
            return
        # Give a copy of x: a function that writes to its argument must not change the method's vectors.
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
