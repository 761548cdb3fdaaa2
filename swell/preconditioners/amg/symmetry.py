"""Symmetry of a matrix, as multigrid uses it."""
from __future__ import annotations

from typing import NamedTuple

from swell.formats.symmetry import asymmetry, tolerance


class Symmetry(NamedTuple):
    """The symmetry of a matrix, to rounding.

    Attributes
    ----------
    hermitian : bool
        True if A = Aᴴ.
    symmetric : bool
        True if A = Aᵀ.
    complex : bool
        True for a complex type.
    """

    hermitian: bool
    symmetric: bool
    complex: bool

    @classmethod
    def of(cls, A):
        """Return the symmetry of a CSRMatrix."""
        symmetric = [asymmetry(A, conjugate) <= tolerance(A) for conjugate in (True, False)]
        return cls(*symmetric, A.dtype.kind == "c")

    @property
    def real(self) -> bool:
        """True for a real symmetric matrix."""
        return self.symmetric and not self.complex

    @property
    def any(self) -> bool:
        """True if A = Aᴴ or A = Aᵀ: the restriction Pᵀ with a real P then keeps this symmetry on all levels."""
        return self.symmetric or self.hermitian
