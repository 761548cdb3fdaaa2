"""SystemMatrix: what a setup may ask of the matrix of a system, whole on one device or in parts on ranks."""
from __future__ import annotations

from abc import abstractmethod

from swell.core.operator import LinearOperator


class SystemMatrix(LinearOperator):
    """A square matrix whose entries can be read and scaled: `CSRMatrix`, or across ranks `DistributedMatrix`.

    Vectors that a method takes or returns hold this rank's rows, as all vectors of the space do. Matrices that a method
    returns have the same pattern and the same parts.

    Attributes
    ----------
    nnz : int
        Entries of the whole matrix.
    """

    has_entries = True

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Rows that belong together, as the unknowns of a mesh point do; 1: each stands alone.

        A size that came with the matrix stays; else the largest that `blocks.detect` finds. All ranks have the same
        one, and no rank's rows begin or end inside a block. Matrices of the same pattern inherit it; a permutation
        does not know it, and it is detected in the result.
        """

    @abstractmethod
    def update(self, new):
        """Take the values of another matrix of the same pattern and parts, in place.

        Raises
        ------
        InputError
            If its pattern or its parts differ.
        """

    @abstractmethod
    def stored_as(self, settings) -> LinearOperator:
        """The matrix in the format that these settings name."""

    @abstractmethod
    def astype(self, dtype) -> "SystemMatrix":
        """The matrix with values of another type."""

    @abstractmethod
    def scaled(self, left, right) -> "SystemMatrix":
        """diag(left) A diag(right), for real vectors."""

    @abstractmethod
    def absolute(self) -> "SystemMatrix":
        """The real matrix of the moduli |aᵢⱼ|."""

    @abstractmethod
    def power(self, p) -> "SystemMatrix":
        """The matrix of the aᵢⱼᵖ, for aᵢⱼ ≥ 0."""

    @abstractmethod
    def transpose(self) -> "SystemMatrix":
        """Aᵀ."""

    @abstractmethod
    def times(self, x):
        """A x as a new vector."""

    @abstractmethod
    def diagonal(self):
        """The diagonal, zero where nothing is stored."""

    @abstractmethod
    def diagonal_range(self) -> tuple[float, float]:
        """The least and the largest |aᵢᵢ| of the whole matrix."""

    @abstractmethod
    def gershgorin(self) -> tuple[float, float, float]:
        """Of a Hermitian matrix: the least aᵢᵢ, and the least and the greatest number within its Gershgorin circles."""

    @abstractmethod
    def longest_row(self) -> int:
        """Entries of the longest row of the whole matrix."""

    @abstractmethod
    def row_lengths(self):
        """The number of entries of each row."""

    @abstractmethod
    def row_maxima(self, x):
        """maxⱼ |aᵢⱼ| xⱼ of each row, for a real vector x ≥ 0."""

    @abstractmethod
    def modulus_sums(self):
        """Σⱼ |aᵢⱼ| of each row, in double precision."""

    def asymmetry(self, conjugate=True) -> float | None:
        """‖A − Aᴴ‖ in the Frobenius norm (‖A − Aᵀ‖ where not ``conjugate``); None where nobody has compared entries."""

    @abstractmethod
    def norm_inf(self) -> float:
        """‖A‖∞ of the whole matrix."""

    @abstractmethod
    def norm_frobenius(self) -> float:
        """‖A‖ of the whole matrix in the Frobenius norm."""
