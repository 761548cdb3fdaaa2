"""ICM_x(PP): the iterative Crout method. Sections 1.3.3 and 2.2.2 and Appendix C of the thesis; after ParILUT.

The formulas of Crout's method are a fixed-point iteration: every element is computed from the last iterate of those
that it needs, (1.11) below and on the diagonal, (1.12) above, from an initial estimate (A, or one that the user has),
until no element changes by more than the processing ``tolerance``. Sections of the matrix are processed one after the
other: the diagonal one, those below it, those to its right (figure 2.2). An element of the diagonal that is not within
``pivot_lower < |l_jj| <= pivot_upper`` (2.6) is bad: what comes after it waits, until the columns up to it have settled
and its row has been swapped with that of the column's largest (1.13).

``form="plain"`` is the thesis' (sections.py): whole sums, for all of a section, in every iteration. ``form="fronts"``,
the default (fronts.py): what finished sections and fronts contribute is subtracted once, as matrix products
(blocked.py); within a front of x rows and columns, which is iterated in a block's shared memory, only what has not
settled is computed.

The iteration is nilpotent: an element is final one iteration after all that it needs. So it ends after 2 s + 1
iterations of a section of s rows at most, and no intermediate value matters, not even one that overflowed: it is
computed anew.

Why the thesis' form gave NaN without the upper bound: values computed from what has not settled grow from step to step,
by 1 / l_jj for an l_jj that is still wrong, until they overflow and inf − inf = NaN. That alone is harmless; but |old −
NaN| > tolerance is false, so that a NaN counted as settled, and NaN <= lower or upper < NaN are false, so that it was
no bad element: the section ended with it. The upper bound stops the growth before it overflows, which is why it helped;
it is not needed. Here an element has settled if |old − new| <= tolerance, and is good if lower < |l| <= upper: NaN is
neither.

Differs from the thesis besides: "full" pivoting; with tolerance > 0 a section does not end while its bad element has
just changed place; a zero pivot is an error in the last column too.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.dense.blocked import check_section, section_size
from swell.dense.decomposer import Decomposer, check_not_negative, check_pivoting, check_tolerances, check_x
from swell.dense.factors import CroutFactors

FORMS = ("fronts", "plain")
TIGHTER = 100           # a tolerance that is too loose is divided by it


@dataclass(frozen=True)
class ICM(Decomposer):
    """The iterative Crout method, with its sections, tolerance and pivoting bounds.

    Attributes
    ----------
    x : {8, 16, 32}
        Blocks of x by x threads; the width of a front.
    tolerance : float
        The processing tolerance, absolute: an element that changed by no more has settled. 0: exact.
    pivoting : {"conditional", "full", "none"}
        A pivot for bad elements; for every element of the diagonal; never.
    pivot_lower, pivot_upper : float
        What is not bad, absolute: lower < |l_jj| <= upper. The upper bound may be inf.
    section : int or None
        Rows of a section, a multiple of x; None: min(max(n / 10, 256), 1024).
    form : {"fronts", "plain"}
        As above.
    order : {"C", "F"}
        Whether rows or columns are contiguous.
    """

    x: int = 32
    tolerance: float = 0.0
    pivoting: str = "conditional"
    pivot_lower: float = 1e-5
    pivot_upper: float = 1e5
    section: int | None = None
    form: str = "fronts"
    order: str = "C"

    cost = "2/3 n³ in products, and n² x / 3 a front at worst"

    def __post_init__(self):
        check_x(self, (8, 16, 32))
        check_pivoting(self)
        check_not_negative(self, "tolerance")
        check_tolerances(self, "pivot_lower", "pivot_upper")
        check_section(self)
        if not self.pivot_lower < self.pivot_upper:
            raise InputError(f"ICM(pivot_lower={self.pivot_lower!r}, pivot_upper={self.pivot_upper!r}): expected "
                             "lower < upper")
        if self.form not in FORMS:
            raise InputError(f"ICM(form={self.form!r}): expected one of {', '.join(FORMS)}")
        if self.order not in ("C", "F"):
            raise InputError(f"ICM(order={self.order!r}): expected 'C', rows contiguous, or 'F', columns")

    def factor(self, A, space=None, estimate=None):
        """Decompose a matrix.

        Parameters
        ----------
        A, space
            As for every decomposer.
        estimate : CroutFactors, optional
            Where to begin instead of A, such as the factors of a matrix that was nearly the same. The rows of A are
            taken in its order. Complex ones are for a complex A alone.
        """
        if estimate is None:
            return self._factor(A, space)
        if not isinstance(estimate, CroutFactors) or estimate.lu.shape != getattr(A, "shape", None):
            raise InputError(f"estimate is {type(estimate).__name__}: expected factors of CM, PCM or ICM, of A's shape "
                             f"{getattr(A, 'shape', None)}")
        if estimate.dtype.kind == "c" != A.dtype.kind:
            raise InputError(f"estimate is {estimate.dtype.name} and A is {A.dtype.name}: its imaginary parts would be "
                             "dropped; give the factors of a real matrix, or a complex A")
        return self._factor(A, space or estimate.space, lambda work: self._begin(work, estimate))

    @staticmethod
    def _begin(work, estimate):
        """Rows in the order of the estimate, and the estimate beside them."""
        work.start = work.space.xp.asarray(estimate.order)
        work.matrix[...] = work.matrix[:, work.start]
        work.estimate = as_stored(work, estimate.lu)

    def _decomposed(self, A, space, first=None, prepare=None):
        found = super()._decomposed(A, space, first, prepare)
        for k, factors in enumerate(found if self.tolerance else ()):
            if not factors.lost < 1:
                raise FactorisationError(f"ICM(tolerance={self.tolerance:g}): nothing of A is left in the factors, "
                                         f"whose product differs from it by {factors.lost:.2g} times its size: take "
                                         "less", index=k)
        return found

    def most_lost(self, dtype):
        return 1.0 if self.tolerance else super().most_lost(dtype)             # what a tolerance loses was asked for

    def tightened(self):
        if not self.tolerance:
            return None
        less = float(f"{self.tolerance / TIGHTER:.6g}")
        return replace(self, tolerance=less if less > np.finfo(np.float64).eps else 0.0)

    @property
    def copies(self):
        return 7 if self.form == "plain" else 6

    def size(self, n):
        return n * n if self.form == "plain" else n

    def together(self, space):
        return self.form == "fronts"

    @property
    def bounds(self):
        """(lower, upper) between which an element of the diagonal is good."""
        return {"conditional": (float(self.pivot_lower), float(self.pivot_upper)), "full": (np.inf, np.inf),
                "none": (-np.inf, np.inf)}[self.pivoting]

    def decompose(self, work):
        from swell.dense.fronts import Fronts
        from swell.dense.sections import Sections
        lost = (self.tolerance >= work.largest) & (work.largest > 0)
        if lost.any():
            k = int(lost.argmax())
            raise FactorisationError(f"ICM(tolerance={self.tolerance:g}): no entry of A is above "
                                     f"{work.largest[k]:.3g}, so that everything would count as settled and nothing be "
                                     "left: take less", index=k)
        section = section_size(work.n, self.x, self.section)
        how = Fronts if self.form == "fronts" else Sections
        return section, how(self, work, section).run()


def as_stored(work, matrix):
    """A copy of a matrix as the kernels see it, in the layout of ``work``."""
    flat = work.space.empty(work.n * work.n, work.dtype)
    square = flat.reshape(work.n, work.n)
    (square if work.column == 1 else square.T)[...] = matrix
    return flat
