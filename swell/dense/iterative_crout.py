"""ICM_x(PP): the iterative Crout method. Sections 1.3.3 and 2.2.2 and Appendix C of the thesis; after ParILUT.

The formulas of Crout's method form a fixed-point iteration. Every element is computed from the last iterate of the
elements that it needs: by (1.11) on and below the diagonal, by (1.12) above. The initial estimate is A, or the user's.
The iteration ends when no element changes by more than the processing ``tolerance``. Sections of the matrix are
processed one after the other: the diagonal one, the sections below it, the sections to its right (figure 2.2). A
diagonal element outside ``pivot_lower < |l_jj| <= pivot_upper`` (2.6) is bad: all elements after it wait. When the
columns up to it have settled, its row is swapped with the row of the column's largest element (1.13).

``form="plain"`` is the thesis' form (sections.py): every iteration computes whole sums, for the whole section.
``form="fronts"`` is the default (fronts.py): matrix products subtract the contributions of finished sections and fronts
once (blocked.py). A front of x rows and columns is iterated in a block's shared memory, and only its elements that are
not final are computed.

The iteration is nilpotent: an element is final one iteration after all elements that it needs. So a section of s rows
ends after at most 2 s + 1 iterations. No intermediate value matters, not even an overflowed one: it is computed anew.

The thesis' form gave NaN without the upper bound. The reason: values computed from elements that have not settled grow
from step to step, by 1 / l_jj for an l_jj that is still wrong, until they overflow and inf − inf = NaN. That alone is
harmless. But |old − NaN| > tolerance is false, so a NaN counted as settled; NaN <= lower and upper < NaN are false, so
it was no bad element. The section ended with it. The upper bound helped because it stops the growth before the
overflow; it is not needed. Here an element has settled if |old − new| <= tolerance, and is good if
lower < |l| <= upper: NaN is neither.

Other differences from the thesis: "full" pivoting; with tolerance > 0 a section does not end in an iteration in which
its bad element has changed place; a zero pivot is an error in the last column too.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.settings import one_of, share
from swell.dense.blocked import check_section, section_size
from swell.dense.decomposer import Decomposer, check_order, check_pivoting, check_x, checked, tighter
from swell.dense.factors import CroutFactors, LUFactors

FORMS = ("fronts", "plain")


@dataclass(frozen=True)
class ICM(Decomposer):
    """The iterative Crout method, with its sections, tolerance and pivoting bounds.

    Attributes
    ----------
    x : {8, 16, 32}
        Width of a front; blocks have x by x threads.
    tolerance : float
        Processing tolerance, absolute: an element that changed by no more has settled. 0: exact.
    pivoting : {"conditional", "full", "none"}
        Choose a pivot for bad elements; for every diagonal element; for none.
    pivot_lower, pivot_upper : float
        Absolute bounds of good elements: lower < |l_jj| <= upper. The upper bound may be inf.
    section : int or None
        Rows of a section, a multiple of x; None: min(max(n / 10, 256), 1024).
    form : {"fronts", "plain"}
        "fronts": matrix products and fronts, the fast form; "plain": whole sums in every iteration, as in the thesis.
    order : {"C", "F"}
        Memory order of the factors: "C", rows contiguous, or "F", columns contiguous. A matrix in this order is copied
        as it lies, without being transposed.
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
    takes_estimates = True

    def __post_init__(self):
        check_x(self, (8, 16, 32))
        share(self, "tolerance")
        check_pivoting(self, "pivot_lower", "pivot_upper")
        check_section(self)
        if not self.pivot_lower < self.pivot_upper:
            raise InputError(f"ICM(pivot_lower={self.pivot_lower!r}, pivot_upper={self.pivot_upper!r}): expected "
                             "lower < upper")
        one_of(self, "form", FORMS)
        check_order(self)

    def factor(self, A, space=None, estimate=None) -> LUFactors:
        """Decompose a matrix.

        Parameters
        ----------
        A, space
            See ``Decomposer.factor``.
        estimate : CroutFactors, optional
            Initial estimate in place of A, such as the factors of a similar matrix. The rows of A are then taken in
            its order. A complex estimate needs a complex A.
        """
        if estimate is None:
            return self._factor(A, space)
        A = checked(A)
        prepare = self._beginning([estimate], A.shape, A.dtype)
        return self._factor(A, space or estimate.space, prepare)

    def _beginning(self, estimates, shape, dtype):
        for estimate in estimates:
            if not isinstance(estimate, CroutFactors) or estimate.lu.shape != shape:
                came = f" of shape {estimate.lu.shape}" if isinstance(estimate, CroutFactors) else ""
                raise InputError(f"estimate is {type(estimate).__name__}{came}: expected factors of CM, PCM or ICM, "
                                 f"of A's shape {shape}")
            if estimate.dtype.kind == "c" != dtype.kind:
                raise InputError(f"estimate is {estimate.dtype.name} and A is {dtype.name}: its imaginary parts would "
                                 "be dropped; give the factors of a real matrix, or a complex A")

        def prepare(work):
            """Order the rows of each matrix as in its estimate, and store the estimates."""
            work.start = [work.space.xp.asarray(estimate.order) for estimate in estimates]
            for matrix, rows in zip(work.matrix, work.start, strict=True):
                matrix[...] = matrix[rows]
            work.estimate = as_stored(work, [estimate.lu for estimate in estimates])
        return prepare

    def _decomposed(self, A, space, first=None, prepare=None):
        all_factors = super()._decomposed(A, space, first, prepare)
        for k, factors in enumerate(all_factors if self.tolerance else ()):
            if not factors.lost < 1:
                raise FactorisationError(f"ICM(tolerance={self.tolerance:g}): nothing of A is left in the factors, "
                                         f"whose product differs from it by {factors.lost:.2g} times its size: take "
                                         "less", index=k)
        return all_factors

    def most_lost(self, dtype):
        return 1.0 if self.tolerance else super().most_lost(dtype)             # the user asked for this loss

    def tightened(self):
        return replace(self, tolerance=tighter(self.tolerance)) if self.tolerance else None

    @property
    def copies(self):
        return 7 if self.form == "plain" else 6

    def size(self, n):
        return n * n if self.form == "plain" else n

    def supports_batches(self, space):
        return self.form == "fronts"

    @property
    def bounds(self):
        """(lower, upper), for each kind of ``pivoting``: a diagonal element l is good if lower < |l| <= upper."""
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


def as_stored(work, matrices):
    """Return a copy of each matrix in one flat array, in the memory order of ``work.lu``."""
    flat = work.space.empty(work.lu.size, work.dtype)
    square = flat.reshape(work.count, work.n, work.n)
    for k, matrix in enumerate(matrices):
        (square if work.column == 1 else square.transpose(0, 2, 1))[k] = matrix
    return flat
