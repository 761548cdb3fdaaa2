"""The operator of this folder's preconditioners: a hierarchy and its cycle, in the cycle's precision."""
from __future__ import annotations

import copy
import math

from swell.core.encoding import printable
from swell.core.errors import FactorisationError, InputError
from swell.core.in_precision import InPrecision
from swell.formats.symmetry import require_hermitian
from swell.preconditioners.amg import report
from swell.preconditioners.amg.balanced_cycle import BalancedCycle
from swell.preconditioners.amg.hierarchy import Hierarchy
from swell.preconditioners.amg.symmetry import Symmetry


class AMGOperator(InPrecision):
    """A multigrid cycle as a preconditioner of A.

    Parameters
    ----------
    A : CSRMatrix
    settings : Multigrid

    Attributes
    ----------
    hierarchy : Hierarchy
    advice : tuple of str
        Notes that ``settings.build`` adds.

    Raises
    ------
    InputError
        If smoothed aggregation gets a complex or nonsymmetric matrix, or AIR a complex one.
    FactorisationError
        If the real part of a diagonal entry is not positive (for AIR: if the entry is zero), or the coarsest level of a
        Hermitian matrix is indefinite.
    OutOfMemory
        If the hierarchy would not fit; raised before it is built.
    """

    advice: tuple[str, ...] = ()

    def __init__(self, A, settings):
        self.settings = settings
        self._inspect(A)
        cycle = self._cycle(A)
        super().__init__(cycle, cycle.scales[0], A.dtype)

    def _inspect(self, A):
        """Check A, and keep its norm."""
        check(A, self.settings)
        self._norm = A.norm_inf() or 1.0

    def _cycle(self, A):
        """Return the cycle of A, a new object."""
        symmetry, self.hierarchy = Symmetry.of(A), self._levels(A)
        return BalancedCycle(self.hierarchy, self.settings.dtype, symmetry)

    def _levels(self, A):
        """Return the hierarchy of A, a new object."""
        s = self.settings
        A.space.check_fits(s.entry_bytes * A.nnz, f"algebraic multigrid for {A.nnz} entries",
                           f"use precond='{s.instead}' or 'jacobi', or several GPUs")
        double = A.in_double()
        return Hierarchy(double, s, s.coarsening(double))

    def in_double_precision(self, why):
        """Return the same cycle in double precision, a new operator with a note that says ``why``; the hierarchy is
        shared. None if the cycle is in double precision, or of another kind."""
        if self.settings.dtype == "float64" or not isinstance(self.inner, BalancedCycle):
            return None
        made = copy.copy(self)
        made.settings = copy.copy(self.settings)
        object.__setattr__(made.settings, "dtype", "float64")
        made.advice = (*self.advice, f"{type(self.settings).__name__}: {why}, so the cycle is in double precision; "
                                     "dtype='float64' says so from the start")
        cycle = self.inner.in_double_precision()
        InPrecision.__init__(made, cycle, cycle.scales[0], self.dtype)
        return made

    def _stays(self, A) -> bool:
        """True if the cycle can take the values of A."""
        return Symmetry.of(A) == self.inner.symmetry

    @property
    def notes(self):
        h, s = self.hierarchy, self.settings
        if h.dense or not h.ended:
            return self.advice
        return (*self.advice,
                f"{type(s).__name__}: coarsening ended at {h.last.shape[0]} rows on level {len(h.levels) + 1}, since "
                f"{h.ended} with {s.links()}; that level gets {s.last}: try a smaller strength, or "
                f"precond='{s.instead}'")

    def update(self, A):
        """Recompute all levels for new values of A; set them up anew if A has gained or lost a symmetry."""
        self._inspect(A)
        if self._stays(A):
            self.inner.update(A)
            return
        revision = self.inner.revision + 1
        self.inner = self._cycle(A)
        self.inner.revision, self.scale = revision, self.inner.scales[0]

    def expect(self, norm):
        """Set the factor that brings vectors of about this norm into the range of the cycle's precision. The vectors in
        the cycle are shorter by √‖A‖∞; this is taken into account."""
        super().expect(norm / math.sqrt(self._norm))

    @property
    def nbytes(self):
        return self.inner.nbytes + self._x.nbytes + self._y.nbytes             # the cycle has ``scale``

    # print, a prompt, a notebook
    __str__, __repr__, _repr_html_ = printable(report.text), printable(report.short), report.html

    def describe(self):
        h, s = self.hierarchy, self.settings
        rows = " ".join(str(M.shape[0]) for M in h.matrices)
        return (f"{type(s).__name__}(), {len(h.matrices)} levels of {rows} rows, the last by "
                f"{'a dense inverse' if h.dense else s.last}; operator complexity {h.operator_complexity:.2f}; "
                f"{s.sweeps}, {s.form}, {s.dtype}")


def check(A, settings):
    """Raise InputError unless A is real and symmetric, if ``settings`` need that. Raise FactorisationError unless its
    diagonal is as they need it."""
    name, sign = type(settings).__name__, "positive" if settings.positive_diagonal else "non-zero"
    if A.dtype.kind not in settings.kinds:
        raise InputError(f"{name} got a matrix of {A.dtype.name}: expected a real one; use precond='amg', or "
                         "'shifted_laplacian' for waves")
    if settings.hermitian_only:
        require_hermitian(A, name)
    facts = A.facts(search=False) if A.space.ranks.single else None
    if facts and facts.zero_diagonal:
        raise FactorisationError(f"{name} needs a {sign} diagonal, and {facts.zero_diagonal} diagonal entries are zero "
                                 f"(the first in row {facts.first_zero}): use method='direct', or precond='ilu0' with "
                                 "method='gmres'")
    if not settings.positive_diagonal:
        if facts is None and A.diagonal_range()[0] == 0:
            raise FactorisationError(f"{name} needs a {sign} diagonal, and a diagonal entry is zero: use "
                                     "precond='ilu0' with method='gmres'")
        return
    least = A.gershgorin()[0] if A.shape[0] else 1.0
    if least <= 0:
        part, turn = (("diagonal with positive real parts", "multiply A and b by the conjugate of a diagonal entry if "
                       "the whole diagonal has about one phase") if A.dtype.kind == "c" else
                      ("positive diagonal", "negate A and b if the whole diagonal is negative"))
        raise FactorisationError(f"{name} needs a {part}, and the least diagonal entry is {least:.2e}: {turn}; else "
                                 "use precond='ilu0' with method='gmres', or method='direct'")
