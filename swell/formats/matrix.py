"""Matrix: a stored sparse matrix as a LinearOperator, made from CSR and convertible back to it."""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from swell.core.errors import InputError
from swell.core.operator import LinearOperator


def index_type(rows: int, columns: int, stored: int):
    """Return the dtype of indices: int32 if the numbers of rows, columns and stored values all fit, else int64."""
    return np.dtype(np.int32 if max(rows, columns, stored) < 2**31 - 1 else np.int64)


def rows_of(indptr, nnz, xp):
    """Return a new integer array: the row of each of the ``nnz`` entries of a CSR matrix; ``xp``: NumPy or CuPy."""
    if xp is np:                                 # repeat is eight times faster; CuPy's takes counts of the host only
        return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return xp.searchsorted(indptr, xp.arange(nnz, dtype=indptr.dtype), side="right") - 1


def upper_halves(kernels, space, ptr, wide):
    """Return (where the upper 16 bits of each slice's columns begin, their total number), for formats of SELL's kind.

    The array has −1 for a slice that is not ``wide`` (has 16-bit columns); it is empty if no slice is wide. ``ptr``:
    where each slice's entries begin. ``kernels``: the kernels of ``sell_layout``."""
    high_ptr, halves = space.empty(wide.size, ptr.dtype), space.empty(1, np.int64)
    kernels.find_upper(ptr, wide, high_ptr, halves)
    halves, = space.last_entries(halves)  # sync
    return high_ptr if halves else high_ptr[:0], halves


class Matrix(LinearOperator):
    """Base class of all stored matrices.

    Attributes
    ----------
    nnz : int
        Entries of the matrix, padding not counted.
    block : int
        Rows and columns of a stored block; 1 in formats that store single entries.
    """

    block = 1

    hints = ("_positions",)                      # of `positions`, in formats that keep it

    def __init__(self, shape, dtype, space, nnz):
        super().__init__(shape, dtype, space)
        self.nnz = nnz
        space.reserve(3 * (shape[0] // 128 + 1))     # partial sums of `apply_dots`, by blocks of 128 threads, one a row
        self._adjoint = self._positions = None

    @abstractmethod
    def to_csr(self):
        """Return the matrix as a CSRMatrix in the same space."""

    @abstractmethod
    def update(self, csr):
        """Replace the values, in place, by the values of ``csr``, a CSRMatrix of the same pattern."""

    @abstractmethod
    def convert(self, csr):
        """Return ``csr``, another CSRMatrix, as a new matrix of this format, with the settings of this matrix."""

    def positions(self, csr):
        """Return the place of each entry of ``csr``, a CSRMatrix of this pattern, in the flattened array of values, for
        callers that write values. The array is kept, 4 bytes an entry.

        Raises
        ------
        InputError
            If this format does not keep its values in one array.
        """
        if self._positions is None:
            self._positions = self._find_positions(csr)
        return self._positions

    def _find_positions(self, csr):
        """Return a new array for `positions`."""
        raise InputError(f"{type(self).__name__} has no map from the entries of a CSR matrix to its values: assemble "
                         "into CSR or SELL, and convert")

    def adjoint(self):
        """Aᴴ in this format, built at its first use and kept.

        A product with Aᴴ from A's own arrays would need atomic additions, whose order is not reproducible."""
        if self._adjoint is None:
            self._adjoint = self.convert(self.to_csr().transpose(conjugate=True))
        return self._adjoint

    def discard_adjoint(self):
        """Drop the kept adjoint after a change of values; a new ``revision`` makes CUDA graphs be captured again."""
        if self._adjoint is not None:
            self._adjoint = None
            self.revision += 1

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.adjoint().apply(x, out, alpha, beta)

    @property
    def matrix_bytes(self) -> int:
        """Bytes of the matrix that a product reads."""
        return self.nbytes

    @property
    def product_bytes(self) -> int:
        """Bytes that a product must move: the matrix, x once and y once."""
        return self.matrix_bytes + (self.shape[0] + self.shape[1]) * self.dtype.itemsize
