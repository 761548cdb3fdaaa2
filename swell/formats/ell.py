"""ELL: every row padded to the longest, stored column by column; for grids, whose rows are about equally long.

Grimes, Kincaid and Young 1979 (ITPACK, ELLPACK). One thread works on one row; neighbouring rows' entries are neighbours
in memory.

Layout: ``values`` and ``columns`` have shape (width, pitch); element (k, i) is the k-th entry of row i. The pitch is n
rounded up to 32 rows, so that every column begins at an aligned address. ``columns`` is −1 for padding, whose values
are never used. Column indices have 64 bits if 32 are too few.

Bytes of a product: 12 an entry (double). Padding costs storage but little time: it lies at the end of each row, and 32
rows that have ended read no further. One long row makes every row as long in storage. A matrix that needs too much
padding is therefore refused.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type

WARP = 32
MAX_UNCHECKED = 1 << 20  # stored entries below which any padding is allowed: 12 MB


@dataclass(frozen=True)
class ELL:
    """ELLPACK: every row padded to the longest.

    Attributes
    ----------
    max_fill : float
        Largest ratio of stored entries, padding included, to entries of the matrix; above it a matrix of more than 2²⁰
        stored entries is refused.
    """

    max_fill: float = 8.0

    def __post_init__(self):
        if not real(self.max_fill) or not self.max_fill >= 1:
            raise InputError(f"ELL(max_fill={self.max_fill!r}): expected a number of at least 1")

    def build(self, csr):
        """Convert a CSR matrix to ELL, on its own device.

        Raises
        ------
        InputError
            If more than ``max_fill`` times the entries would be stored.
        OutOfMemory
            If the result would not fit.
        """
        return ELLMatrix(csr, self)


class ELLMatrix(Matrix):
    """A matrix in ELL.

    Attributes
    ----------
    columns, values : arrays of the space, of shape (width, pitch)
    """

    name = "ell"

    def __init__(self, csr: CSRMatrix, settings: ELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self._layout(csr)
        self._kernels = csr.space.kernels("swell.formats", "ell", csr.dtype)

    def _layout(self, csr):
        xp, n = self.space.xp, self.shape[0]
        pitch = -(-n // WARP) * WARP
        lengths = xp.zeros(pitch, np.int64)
        lengths[:n] = xp.diff(csr.indptr)
        width = csr.longest_row()
        index = index_type(*self.shape, width * pitch)
        self._check(width, pitch, lengths, index)
        where = self._where(csr)
        self.values = xp.zeros((width, pitch), self.dtype)
        self.values[where] = csr.data
        self.columns = xp.full((width, pitch), -1, index)
        self.columns[where] = csr.indices
        self._read = self.space.total(self.space.group_max(lengths, WARP)) * WARP

    def _check(self, width, pitch, lengths, index):
        """Raise InputError for too much padding, or OutOfMemory if the arrays, of shape (width, pitch), would not fit.

        ``lengths``: entries of each row. ``index``: dtype of the columns."""
        stored, each = width * pitch, self.dtype.itemsize + index.itemsize
        if stored > MAX_UNCHECKED and stored > self.settings.max_fill * self.nnz:
            raise InputError(
                f"ELL would store {stored} entries ({stored * each / 2**30:.2f} GiB) for a matrix of {self.nnz}, "
                f"{stored / max(self.nnz, 1):.1f} times as many, since row {int(lengths.argmax())} has {width} "
                f"entries: use format='sell', which pads 32 rows at most, or ELL(max_fill=...) above "
                f"{self.settings.max_fill:g}")
        self.space.check_fits(stored * each, "the matrix in ELL", "use format='sell', which pads less")

    def _where(self, csr):
        """Return (k, i), two arrays: entry e of ``csr`` lies at ``values[k[e], i[e]]``."""
        rows = csr.rows()
        return self.space.xp.arange(csr.nnz) - csr.indptr[rows], rows

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(self.columns, self.values, x, out, self.columns.shape[0], alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(self.columns, self.values, x, out, w, dots, self.columns.shape[0])
        self.space.collect(dots)

    def to_csr(self):
        xp, n = self.space.xp, self.shape[0]
        columns, values = self.columns.T[:n], self.values.T[:n]  # row by row, each in its order
        real = columns >= 0
        indptr = xp.zeros(n + 1, np.int64)
        xp.cumsum(real.sum(axis=1), out=indptr[1:])
        return CSRMatrix(self.space, indptr, columns[real], values[real], self.shape)

    def convert(self, csr):
        return ELLMatrix(csr, self.settings)

    def update(self, csr):
        self.values[self._where(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        return self.columns.nbytes + self.values.nbytes

    @property
    def matrix_bytes(self):
        return self._read * (self.dtype.itemsize + self.columns.itemsize)

    @property
    def padding(self) -> float:
        """Stored entries, padding included, over entries of the matrix."""
        return self.values.size / max(self.nnz, 1)

    def describe(self):
        return (f"ell, width {self.columns.shape[0]}, padding {self.padding:.2f}, "
                f"{self.columns.dtype.itemsize * 8}-bit columns")
