"""The cycle of AMG and SmoothedAggregation, for balanced vectors: x = M b with M ≈ (D A D)⁻¹ and D = diag(√(ω / dᵢ))
(balancing.py).

A level takes four products (four_products.py), two on small levels of a GPU (two_products.py), or more with a
polynomial smoother (polynomial.py). A dense inverse solves the coarsest level; if that is too large, only the smoother
is applied. In a W-cycle the levels below the finest go down and up twice.

M is as symmetric as A. It is positive definite if A is, since the eigenvalues of D A D lie in (0, ω] with ω < 2.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.amg.balancing import balancing
from swell.preconditioners.amg.coarsest import inverse_of
from swell.preconditioners.amg.cycle import Cycle
from swell.preconditioners.amg.four_products import FourProducts
from swell.preconditioners.amg.polynomial import Polynomial, Smoothed
from swell.preconditioners.amg.precision import response, smoothest
from swell.preconditioners.amg.smoother import relaxation, steps
from swell.preconditioners.amg.two_products import TwoProducts

TWICE = 3               # levels below the finest that a W-cycle visits twice; all would double the launches a level
MAX_ENTRIES_OF_TWO = {"cpu": 0, "cuda": 1 << 20}    # entries of A P for which launches cost more than memory traffic


class BalancedCycle(Cycle):
    """A cycle over the levels of a hierarchy.

    Parameters
    ----------
    hierarchy : Hierarchy
    dtype : str or numpy.dtype
    symmetry : Symmetry
    above : int
        The number of finer levels, which another cycle has.
    first : float64 array, shape (n,), or None
        D of the finest level here, if a level above has decided it.
    """

    def __init__(self, hierarchy, dtype, symmetry, above=0, first=None):
        self._describe(hierarchy.matrices[0].shape[0], hierarchy.space, hierarchy.settings, dtype, symmetry, above)
        self.hierarchy = hierarchy
        self.scales = self._scaling(first)
        self.levels = [*map(self._level, hierarchy.levels, self.scales, self.scales[1:]), self._coarsest()]
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def in_double_precision(self):
        """Return a new cycle in double precision with the same hierarchy."""
        return BalancedCycle(self.hierarchy, "float64", self.symmetry)

    def least_response(self) -> float:
        """Return the ‖D A D v‖ / ‖v‖ of the smoothest vector v that the levels know (precision.py); 1 if none."""
        levels, v = self.hierarchy.levels, smoothest(self) if self.hierarchy.levels else None
        return 1.0 if v is None else response(levels[0].A, self.scales[0], v)

    def _describe(self, n, space, settings, dtype, symmetry, above):
        """Set shape, type, properties and smoother of a cycle for vectors of length n."""
        Cycle.__init__(self, n, np.result_type(dtype, np.complex64) if symmetry.complex else dtype, space,
                       range(1 - above, 1 - above + TWICE) if settings.cycle == "W" else ())
        self._steps, self._omega = (choice(settings.smoother, settings.degree) for choice in (steps, relaxation))
        self.symmetry = symmetry
        self.spd = self.hermitian = symmetry.hermitian
        self.symmetric, self.self_adjoint = symmetry.symmetric, symmetry.any

    def _scaling(self, first=None):
        return balancing(self.hierarchy, self._omega, first)

    def _level(self, level, fine, coarse):
        """Return the products of one `Level`, a new object; ``fine`` and ``coarse`` are the diagonals of D on it and on
        the next."""
        if len(self._steps) > 1:
            return Polynomial(FourProducts(level, fine, coarse, self.dtype), self._steps)
        few = level.AP.C.nnz <= MAX_ENTRIES_OF_TWO[self.space.name] and not self._twice
        if few and level.order is not None and self.symmetry.any:              # R S is then Sᴴ P's adjoint
            return TwoProducts(level, fine, coarse, self.dtype, self.symmetry.hermitian)
        return FourProducts(level, fine, coarse, self.dtype)

    def _coarsest(self):
        """Return a new solver for the coarsest level."""
        last = self.hierarchy.last, self.scales[-1], self.dtype
        return inverse_of(self.symmetry)(*last) if self.hierarchy.dense else Smoothed(*last, self._steps)
