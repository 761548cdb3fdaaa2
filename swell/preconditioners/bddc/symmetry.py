"""The symmetry that subdomain matrices share. BDDC forms the mirrored part of each matrix by it.

    Hermitian     A = Aᴴ, as every real symmetric matrix: the coarse basis is tested by itself, Ψᴴ S Ψ.
    symmetric     A = Aᵀ and complex, as in waves with losses: transposes, never conjugates, Ψᵀ S Ψ.
    general       two coarse bases, Ψ for A and Φ for Aᴴ, Φᴴ S Ψ (Tu and Li 2008).
"""
from __future__ import annotations

from enum import Enum

import numpy as np

ROUNDING = 1e-10        # largest accepted asymmetry, relative to the largest entry: rounding of the assembly


class Symmetry(Enum):
    """A = Aᴴ, A = Aᵀ, or neither."""

    HERMITIAN = "Hermitian"
    SYMMETRIC = "complex symmetric"
    GENERAL = "general"

    @property
    def mirrors(self) -> bool:
        """True if one triangle of the matrix gives the other."""
        return self is not Symmetry.GENERAL

    @property
    def trans(self):
        """LAPACK's letter of the transpose that the matrix equals, "C" or "T"; None for general matrices."""
        return {Symmetry.HERMITIAN: "C", Symmetry.SYMMETRIC: "T"}.get(self)

    def mirror(self, X):
        """Return Xᵀ for a symmetric matrix, else Xᴴ; the last two axes of X are rows and columns."""
        X = X.swapaxes(-1, -2)
        return X if self is Symmetry.SYMMETRIC else X.conj()

    def mean(self, X):
        """Return (X + mirrored X) / 2, a new array; X itself for general matrices."""
        return 0.5 * (X + self.mirror(X)) if self.mirrors else X


HERMITIAN, SYMMETRIC, GENERAL = Symmetry


def symmetry_of(subdomains) -> Symmetry:
    """Return the `Symmetry` that the matrices of `Subdomains` share, on all ranks."""
    matrices = {id(matrix): matrix for matrix in subdomains.matrices}.values()
    hermitian = all(_equal(matrix, matrix.conj().T) for matrix in matrices)
    symmetric = hermitian if _real(matrices) else all(_equal(matrix, matrix.T) for matrix in matrices)
    every = subdomains.from_all_ranks([(hermitian, symmetric)])
    if all(one for one, _ in every):
        return HERMITIAN
    return SYMMETRIC if all(one for _, one in every) else GENERAL


def _real(matrices):
    """True if no matrix is complex."""
    return all(matrix.dtype.kind != "c" for matrix in matrices)


def _equal(A, B):
    """True if the sparse matrices A and B are equal, up to rounding."""
    return abs(A - B).max() <= ROUNDING * abs(A.data).max(initial=0)


def product(A, opposite, x, out, alpha, beta, adjoint):
    """Write out = α A x + β out; with ``adjoint`` the adjoint of the ``opposite`` coupling takes the place of A."""
    if adjoint:
        opposite.apply_adjoint(x, out, alpha, beta)
    else:
        A.apply(x, out, alpha, beta)


def double(dtype):
    """Return float64 or complex128, the type of a setup for vectors of type ``dtype``."""
    return np.result_type(dtype, np.float64)
