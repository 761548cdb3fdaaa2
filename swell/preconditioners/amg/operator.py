"""The operator of this folder's preconditioners: a hierarchy and its cycle, in the cycle's precision."""
from __future__ import annotations

import math

from swell.core.encoding import printable
from swell.core.errors import FactorisationError, InputError
from swell.core.in_precision import InPrecision
from swell.formats.symmetry import require_hermitian
from swell.preconditioners.amg import report
from swell.preconditioners.amg.cycle import Cycle
from swell.preconditioners.amg.hierarchy import Hierarchy
from swell.preconditioners.amg.symmetry import Symmetry

BYTES = 120             # estimated memory of setup and cycle an entry of A, checked before anything is allocated


class AMGOperator(InPrecision):
    """A multigrid cycle as a preconditioner of A.

    Parameters
    ----------
    A : CSRMatrix
    settings : AMG or SmoothedAggregation

    Attributes
    ----------
    hierarchy : Hierarchy
    advice : tuple of str
        Notes that ``settings.build`` adds.

    Raises
    ------
    InputError
        If smoothed aggregation gets a complex or nonsymmetric matrix.
    FactorisationError
        If the real part of a diagonal entry is not positive, or the coarsest level of a Hermitian matrix is indefinite.
    OutOfMemory
        If the hierarchy would not fit; raised before it is built.
    """

    advice: tuple[str, ...] = ()

    def __init__(self, A, settings):
        self.settings = settings
        check(A, settings)
        cycle = self._cycle(A)
        super().__init__(cycle, cycle.scale, A.dtype)

    def _cycle(self, A):
        """Return the cycle of A, a new object."""
        A.space.check_fits(BYTES * A.nnz, f"algebraic multigrid for {A.nnz} entries", "use precond='ic0' or "
                           "scaling='jacobi', or several GPUs")
        double, symmetry = A.in_double(), Symmetry.of(A)
        self.hierarchy, self._root = Hierarchy(double, self.settings, self.settings.coarsening(double)), root(A)
        return Cycle(self.hierarchy, self.settings.dtype, symmetry)

    @property
    def notes(self):
        h, s = self.hierarchy, self.settings
        if h.dense or not h.ended:
            return self.advice
        rows = h.last.shape[0]
        return (*self.advice,
                f"{type(s).__name__}: coarsening ended at {rows} rows on level {len(h.levels) + 1}, since {h.ended} "
                f"with {s.links()}; the smoother alone works there: try a smaller strength, or precond='ic0'",)

    def update(self, A):
        """Recompute all levels for new values of A; set them up anew if A has gained or lost a symmetry."""
        check(A, self.settings)
        self._root = root(A)
        if Symmetry.of(A) == self.inner.symmetry:
            self.inner.update(A.in_double())
            return
        revision = self.inner.revision + 1
        self.inner = self._cycle(A)
        self.inner.revision, self.scale = revision, self.inner.scale

    def expect(self, norm):
        """Set the factor that brings vectors of about this norm into the range of the cycle's precision. The vectors in
        the cycle are shorter by √‖A‖∞; this is taken into account."""
        super().expect(norm / self._root)

    @property
    def summary(self):
        """The settings in a few words, for the title of the table of levels."""
        s = self.settings
        return f"{s.smoother} of degree {s.degree}, strength {s.strength}, {s.dtype}"

    # print, a prompt, a notebook
    __str__, __repr__, _repr_html_ = printable(report.text), printable(report.short), report.html

    def describe(self):
        h = self.hierarchy
        rows = " ".join(str(M.shape[0]) for M in h.matrices)
        end = "dense inverse" if h.dense else "smoother alone"
        s = self.settings
        return (f"{type(s).__name__}(), {len(h.matrices)} levels of {rows} rows, the last by {end}; operator "
                f"complexity {h.operator_complexity:.2f}; {s.cycle}-cycle, {s.smoother} of degree {s.degree}, "
                f"{s.dtype}")


def root(A) -> float:
    """Return √‖A‖∞, or 1 for a matrix without entries."""
    return math.sqrt(A.norm_inf()) or 1.0


def check(A, settings):
    """Raise InputError unless A is real and symmetric, if ``settings`` need that. Raise FactorisationError unless the
    real parts of its diagonal are positive."""
    name = type(settings).__name__
    if A.dtype.kind not in settings.kinds:
        raise InputError(f"{name} got a matrix of {A.dtype.name}: expected a real one; use precond='amg', or "
                         "'shifted_laplacian' for waves")
    if settings.hermitian_only:
        require_hermitian(A, name)
    facts = A.facts(search=False) if A.space.ranks.single else None
    if facts and facts.zero_diagonal:
        raise FactorisationError(f"{name} needs a positive diagonal, and {facts.zero_diagonal} diagonal entries are "
                                 f"zero (the first in row {facts.first_zero}): use method='direct', or "
                                 "precond='ilu0' with method='gmres'")
    least = A.gershgorin()[0] if A.shape[0] else 1.0
    if least <= 0:
        part, turn = (("diagonal with positive real parts", "multiply A and b by the conjugate of a diagonal entry if "
                       "the whole diagonal has about one phase") if A.dtype.kind == "c" else
                      ("positive diagonal", "negate A and b if the whole diagonal is negative"))
        raise FactorisationError(f"{name} needs a {part}, and the least diagonal entry is {least:.2e}: {turn}; else "
                                 "use precond='ilu0' with method='gmres', or method='direct'")
