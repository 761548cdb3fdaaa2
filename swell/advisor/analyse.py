"""What can be read off a matrix in a few passes over its entries, where it lives."""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.space import accumulator
from swell.formats.symmetry import mirrored


@dataclass(frozen=True)
class Facts:
    """What ``analyse`` found.

    Attributes
    ----------
    n, nnz : int
    complex : bool
    pattern_symmetric, symmetric, hermitian : bool
        A has a symmetric pattern; A = Aᵀ; A = Aᴴ (to rounding).
    zero_diagonal, empty_rows : int
        Rows without a diagonal entry (or with a zero there); rows without entries.
    positive_diagonal : bool
        Every diagonal entry is real and positive.
    dominant : bool
        |aᵢᵢ| ≥ Σ |aᵢⱼ| in every row (to rounding).
    dominant_rows : float
        The share of rows where that holds.
    zero_row_sums : bool
        A annihilates the constants: a pure Neumann problem.
    bandwidth : int
        Largest |i − j| of an entry.
    """

    n: int
    nnz: int
    complex: bool
    pattern_symmetric: bool
    symmetric: bool
    hermitian: bool
    zero_diagonal: int
    empty_rows: int
    positive_diagonal: bool
    dominant: bool
    dominant_rows: float
    zero_row_sums: bool
    bandwidth: int

    @property
    def symmetry(self) -> str:
        """The symmetry in a word."""
        if self.hermitian:
            return "Hermitian" if self.complex else "symmetric"
        if self.symmetric:
            return "complex symmetric"
        return "unsymmetric (symmetric pattern)" if self.pattern_symmetric else "unsymmetric"


def analyse(A) -> Facts:
    """Facts about a CSRMatrix."""
    xp, n = A.space.xp, A.shape[0]
    same_pattern, plain, conjugate = mirrored(A)
    largest = float(A.row_maxima(xp.ones(A.shape[1], A.data.real.dtype)).max()) if n else 0.0
    tolerance = 1e-12 * largest if A.dtype.itemsize // (2 if A.dtype.kind == "c" else 1) == 8 else 1e-5 * largest
    d, sums = A.diagonal(), A.modulus_sums()
    off = sums - abs(d)
    dominant = abs(d) >= off * (1 - 1e-12)
    wide = accumulator(A.dtype)
    balance = abs((A if A.dtype == wide else A.astype(wide)).row_sums())
    return Facts(
        n=n, nnz=A.nnz, complex=A.dtype.kind == "c", pattern_symmetric=same_pattern,
        symmetric=same_pattern and plain <= tolerance, hermitian=same_pattern and conjugate <= tolerance,
        zero_diagonal=int(xp.count_nonzero(d == 0)),
        empty_rows=int(xp.count_nonzero(A.indptr[1:] == A.indptr[:-1])),
        positive_diagonal=bool(((d.real > 0) & (abs(d.imag) <= tolerance)).all()), dominant=bool(dominant.all()),
        dominant_rows=float(dominant.mean()) if n else 1.0,
        zero_row_sums=bool(n) and bool((balance <= 1e-12 * sums).all()),
        bandwidth=A.bandwidth())
