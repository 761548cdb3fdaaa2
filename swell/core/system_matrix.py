"""SystemMatrix: the interface of a system's matrix, on one device or distributed over ranks."""
from __future__ import annotations

from abc import abstractmethod

from swell.core.operator import LinearOperator


class SystemMatrix(LinearOperator):
    """A square matrix whose entries can be read and scaled: `CSRMatrix`, or across ranks `DistributedMatrix`.

    All vectors are vectors of the space: across ranks, they hold this rank's rows. Matrices that a method returns have
    the same pattern and the same distribution over ranks.

    Attributes
    ----------
    nnz : int
        Number of entries of the whole matrix.
    """

    has_entries = True

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Number of consecutive rows that belong together, such as the unknowns of a mesh point; 1: no blocks.

        It is the size given with the matrix, else the largest that `blocks.detect` finds. All ranks have the same size,
        and no rank's rows begin or end inside a block. Matrices of the same pattern inherit the size. A permuted
        matrix does not: its size is detected anew.
        """

    @abstractmethod
    def update(self, new):
        """Copy the values of ``new``, a matrix of the same pattern and distribution, into this matrix.

        Raises
        ------
        InputError
            If the pattern or the distribution differs.
        """

    @abstractmethod
    def stored_as(self, settings) -> LinearOperator:
        """Return the matrix in the format that ``settings``, a format's settings object such as SELL(), names."""

    @abstractmethod
    def astype(self, dtype) -> "SystemMatrix":
        """Return a new matrix with the values converted to ``dtype``."""

    @abstractmethod
    def scaled(self, left, right) -> "SystemMatrix":
        """Return diag(left) A diag(right) as a new matrix, for real vectors."""

    @abstractmethod
    def absolute(self) -> "SystemMatrix":
        """Return a new real matrix of the moduli |aᵢⱼ|."""

    @abstractmethod
    def power(self, p) -> "SystemMatrix":
        """Return a new matrix of the powers aᵢⱼᵖ, for aᵢⱼ ≥ 0."""

    @abstractmethod
    def transpose(self) -> "SystemMatrix":
        """Return Aᵀ as a new matrix."""

    @abstractmethod
    def times(self, x):
        """A x as a new vector."""

    @abstractmethod
    def diagonal(self):
        """The diagonal as a vector; zero where no entry is stored."""

    @abstractmethod
    def diagonal_range(self) -> tuple[float, float]:
        """(smallest |aᵢᵢ|, largest |aᵢᵢ|) of the whole matrix."""

    @abstractmethod
    def gershgorin(self) -> tuple[float, float, float]:
        """For a Hermitian matrix: (smallest aᵢᵢ, lower, upper), with Gershgorin's bounds of the eigenvalues."""

    @abstractmethod
    def longest_row(self) -> int:
        """Number of entries in the longest row of the whole matrix."""

    @abstractmethod
    def row_lengths(self):
        """Number of entries in each row, as a vector."""

    @abstractmethod
    def row_maxima(self, x):
        """Return a new vector: maxⱼ |aᵢⱼ| xⱼ for each row, for a real vector x ≥ 0."""

    @abstractmethod
    def modulus_sums(self):
        """Return a new vector, in double precision: Σⱼ |aᵢⱼ| for each row."""

    def asymmetry(self, conjugate=True) -> float | None:
        """‖A − Aᴴ‖ in the Frobenius norm; with ``conjugate=False`` ‖A − Aᵀ‖. None if the entries were not compared."""

    @abstractmethod
    def norm_inf(self) -> float:
        """‖A‖∞ of the whole matrix."""

    @abstractmethod
    def norm_frobenius(self) -> float:
        """The Frobenius norm of the whole matrix."""
