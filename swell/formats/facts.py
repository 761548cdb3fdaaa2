"""Facts of a matrix, gathered on its own device by one kernel in one pass over its entries (``kernels/facts``)."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.formats.slots import COUNT, Extreme, Total


@dataclass(frozen=True)
class Facts:
    """Facts of a `CSRMatrix`, from one pass over its entries.

    Attributes
    ----------
    n, nnz : int
        Rows and entries.
    complex : bool
        True for a complex type.
    searched : bool
        True if each aᵢⱼ was compared with aⱼᵢ. Otherwise the symmetries below are unknown, and False.
    values : array of float64
        The kernel's numbers, indexed by `formats.slots`.
    tolerance : float
        Absolute difference up to which two entries count as equal, since assembly rounds.
    """

    n: int
    nnz: int
    complex: bool
    searched: bool
    values: np.ndarray
    tolerance: float

    @property
    def not_finite(self) -> int:
        """The number of entries that are NaN or Inf."""
        return int(self.values[Total.NOT_FINITE])

    @property
    def canonical(self) -> bool:
        """True if columns ascend in each row, without duplicates."""
        return not self.values[Total.DISORDERED]

    @property
    def in_range(self) -> bool:
        """True if all row pointers and columns are valid."""
        return not self.values[Total.OUT_OF_RANGE]

    @property
    def unmatched(self) -> int:
        """The number of entries aᵢⱼ without an aⱼᵢ in the pattern; 0 if it was not searched."""
        return int(self.values[Total.UNMATCHED])

    @property
    def pattern_symmetric(self) -> bool:
        """True if the pattern has an aⱼᵢ for each aᵢⱼ."""
        return self.searched and not self.unmatched

    @property
    def symmetric(self) -> bool:
        """True if A = Aᵀ, to rounding; an entry without a mirror image differs from 0."""
        return self.searched and bool(self.difference <= self.tolerance)

    @property
    def hermitian(self) -> bool:
        """True if A = Aᴴ, to rounding; an entry without a mirror image differs from 0."""
        return self.searched and bool(self.hermitian_difference <= self.tolerance)

    @property
    def difference(self) -> float:
        """The largest |aᵢⱼ − aⱼᵢ|."""
        return self._extreme(Extreme.DIFFERENCE)

    @property
    def hermitian_difference(self) -> float:
        """The largest |aᵢⱼ − conj(aⱼᵢ)|."""
        return self._extreme(Extreme.HERMITIAN_DIFFERENCE)

    @property
    def zero_diagonal(self) -> int:
        """The number of rows whose diagonal entry is zero or missing."""
        return int(self.values[Total.ZERO_DIAGONAL])

    @property
    def first_zero(self) -> int:
        """The first row whose diagonal entry is zero or missing."""
        return int(-self.values[Extreme.FIRST_ZERO])

    @property
    def empty_rows(self) -> int:
        """The number of rows without entries."""
        return int(self.values[Total.EMPTY_ROWS])

    @property
    def positive_diagonal(self) -> bool:
        """True if every diagonal entry is positive, and real to rounding."""
        return bool(self.values[Extreme.DIAGONAL_LOWEST] < 0
                    and self.values[Extreme.DIAGONAL_IMAGINARY] <= self.tolerance) or not self.n

    @property
    def dominant_rows(self) -> float:
        """The fraction of rows with |aᵢᵢ| ≥ Σ |aᵢⱼ|, j ≠ i, to rounding."""
        return self.values[Total.DOMINANT_ROWS] / self.n if self.n else 1.0

    @property
    def dominant(self) -> bool:
        """True if every row is diagonally dominant, to rounding."""
        return self.dominant_rows == 1

    @property
    def zero_row_sums(self) -> bool:
        """True if every row sum is zero, to rounding, as in a pure Neumann problem."""
        return bool(self.n) and not self.values[Total.UNBALANCED_ROWS]

    @property
    def bandwidth(self) -> int:
        """The largest |i − j| among the entries."""
        return int(self._extreme(Extreme.BANDWIDTH))

    @property
    def longest_row(self) -> int:
        """The number of entries in the longest row."""
        return int(self._extreme(Extreme.LONGEST_ROW))

    @property
    def row_spread(self) -> float:
        """The standard deviation of the row lengths, over their mean."""
        mean = self.nnz / max(self.n, 1)
        return float(np.sqrt(max(self.values[Total.LENGTH2] / max(self.n, 1) - mean**2, 0)) / mean) if mean else 0.0

    @property
    def adjoining(self) -> float:
        """The fraction of entries whose right neighbour is an entry too, as in dense blocks."""
        return self.values[Total.ADJOINING] / max(self.nnz, 1)

    @property
    def norm_inf(self) -> float:
        """‖A‖∞, the largest sum of |aᵢⱼ| in a row."""
        return self._extreme(Extreme.NORM_INF)

    @property
    def norm_frobenius(self) -> float:
        """‖A‖ in the Frobenius norm."""
        return float(np.sqrt(self.values[Total.FROBENIUS2]))

    @property
    def diagonal_range(self) -> tuple[float, float]:
        """The smallest and the largest |aᵢᵢ|."""
        return -float(self.values[Extreme.DIAGONAL_LEAST]), float(self.values[Extreme.DIAGONAL_LARGEST])

    def constant_diagonal(self, rounding: float) -> float:
        """The constant d if all aᵢᵢ are real, positive and within ``rounding`` · d of d; else 0."""
        least, largest = self.diagonal_range
        middle = least + (largest - least) / 2
        apart = max(largest - middle, middle - least, float(self.values[Extreme.DIAGONAL_IMAGINARY]))
        return middle if self.positive_diagonal and self.n and apart <= rounding * middle else 0.0

    @property
    def gershgorin(self) -> tuple[float, float, float]:
        """For a Hermitian matrix: (min aᵢᵢ, lower, upper), with Gershgorin's bounds of the eigenvalues."""
        return -float(self.values[Extreme.DIAGONAL_LOWEST]), -float(self.values[Extreme.REACH]), self.norm_inf

    def asymmetry(self, conjugate=True) -> float:
        """‖A − Aᴴ‖ in the Frobenius norm; ‖A − Aᵀ‖ if ``conjugate`` is False."""
        return float(np.sqrt(self.values[Total.SKEW_HERMITIAN2 if conjugate else Total.SKEW2]))

    @property
    def symmetry(self) -> str:
        """The symmetry in words, for a report."""
        if self.hermitian:
            return "Hermitian" if self.complex else "symmetric"
        if self.symmetric:
            return "complex symmetric"
        return "unsymmetric (symmetric pattern)" if self.pattern_symmetric else "unsymmetric"

    def _extreme(self, place):
        """``values[place]``, a gathered maximum of nonnegative numbers; 0 if there were none. ``place``: an Extreme."""
        return float(np.maximum(self.values[place], 0))


def gather(A, search=True) -> Facts:
    """Return the `Facts` of a CSRMatrix A, with one host read.

    ``search``: also compare each aᵢⱼ with aⱼᵢ, which tells symmetry; ignored if A is not square."""
    space, search = A.space, search and A.shape[0] == A.shape[1]
    values = space.empty(COUNT, np.float64)
    space.kernels("swell.formats", "facts", A.dtype).gather(A.indptr, A.indices, A.data, values, A.shape[1], search)
    values = space.to_host(values)  # sync
    single = A.dtype.char in "fF"
    return Facts(A.shape[0], A.nnz, A.dtype.kind == "c", search, values,
                 (1e-5 if single else 1e-12) * float(np.maximum(values[Extreme.LARGEST], 0)))
