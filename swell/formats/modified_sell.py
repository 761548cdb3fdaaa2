"""Modified SELL: the diagonal stored apart, and columns inside a slice coded so that x is read from shared memory.

"An Efficient Solver for Symmetric Positive Definite Matrices from Finite Volume Methods on GPU", chapter 3.2. One
thread works on one row. A slice belongs to one thread block, which first loads the x of its own rows. The format is
made for matrices with a symmetric pattern and a full diagonal. Smoothers use it too, because they need the slice's
diagonal block. It also stores any other matrix, rectangular ones included.

Layout, with slice height H, for slice s of rows i = s H to i + H − 1:

- ``diag``: the diagonal, one value a row; zero where the matrix has no entry there.
- ``slice_ptr[s]``: where slice s begins in ``entries`` and ``col_idx``; the k-th off-diagonal of row i + t lies at
  slice_ptr[s] + k H + t. Rows are padded to the longest of their slice, the last slice to H rows.
- ``col_idx``: a column c inside the slice as −(c − i) − 1, any other as c + 1, padding as 0; 64 bits if 32 are too few.
- ``missing``: the rows without an entry on the diagonal; rows beyond the last column are not listed. With it ``to_csr``
  restores the original pattern. A product does not read it.

Bytes of a product: 12 an off-diagonal entry and 8 a diagonal entry (double). On a GPU padding costs storage but little
time: it lies at the end of each row, and a warp whose rows have ended reads no further. ``local_share`` is λ, the
fraction of off-diagonal entries whose column lies inside the slice.

Differences from the paper: heights up to 1024, for which a thread's registers are bounded; a warp stops at padding.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of

WARP = 32


@dataclass(frozen=True)
class ModifiedSELL:
    """Sliced ELLPACK with the diagonal stored apart and the columns inside a slice marked.

    Attributes
    ----------
    height : int
        Rows of a slice, from 1 to 1024; on a GPU a multiple of 32, since a slice is a thread block.
    """

    height: int = 512

    def __post_init__(self):
        positive(self, "height", most=1024)

    def build(self, csr):
        """Convert a CSR matrix to modified SELL, on its own device.

        Raises
        ------
        InputError
            If the height is not a multiple of 32, on a GPU.
        """
        return ModifiedSELLMatrix(csr, self)


class ModifiedSELLMatrix(Matrix):
    """A matrix in modified SELL.

    Attributes
    ----------
    slice_ptr, diag, entries, col_idx : arrays of the space
    missing : array of the space
        Rows without an entry on the diagonal.
    height : int
        Rows of a slice.
    local_share : float
        λ, the fraction of off-diagonal entries whose column lies inside their slice; 0 if there are no such entries.
    """

    name = "modified_sell"

    def __init__(self, csr: CSRMatrix, settings: ModifiedSELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        if csr.space.name == "cuda" and settings.height % 32:
            raise InputError(f"ModifiedSELL(height={settings.height}) on {csr.space.describe()}: a slice is a thread "
                             "block there, so expected a multiple of 32; or use device='cpu'")
        self.settings, self.height = settings, settings.height
        self._layout(csr)
        self.space.reserve(3 * (self.slice_ptr.size - 1))        # partial sums of `apply_dots`, by slices
        self._kernels = csr.space.kernels("swell.formats", "modified_sell", csr.dtype)

    def _layout(self, csr):
        xp, (n, m), H = self.space.xp, self.shape, self.height
        rows, slices = csr.rows(), -(-n // H)
        on = rows == csr.indices
        self.diag = csr.diagonal()
        has = xp.zeros(min(n, m), bool)
        has[rows[on]] = True
        self.missing = xp.nonzero(~has)[0]
        lengths = xp.zeros(slices * H, np.int64)
        lengths[:n] = self.space.count(rows[~on], n)
        ptr = self.space.empty(slices + 1, np.int64)
        self.space.prefix_sums(self.space.group_max(lengths, H) * H, ptr)
        stored = int(ptr[-1])
        index = index_type(slices * H, m, stored)
        self.slice_ptr, self.missing = ptr.astype(index), self.missing.astype(index)
        where, off = self._where(csr)
        rows, columns = rows[off], csr.indices[off].astype(np.int64)
        self.entries = xp.zeros(stored, self.dtype)
        self.entries[where] = csr.data[off]
        first = rows - rows % H
        local = (columns >= first) & (columns < first + H)
        self.col_idx = xp.zeros(stored, index)
        self.col_idx[where] = xp.where(local, first - columns - 1, columns + 1)
        self.local_share = self.space.find_true(local)[1] / max(columns.size, 1)
        group = WARP if self.space.name == "cuda" else H         # these rows all read as far as their longest
        self._read = self.space.total(self.space.group_max(lengths, group)) * group

    def _where(self, csr):
        """Return (index into ``entries`` of each off-diagonal entry of ``csr``, bool mask of these in ``csr``)."""
        xp, H = self.space.xp, self.height
        rows = csr.rows()
        off = rows != csr.indices
        before = xp.zeros(csr.nnz + 1, np.int64)                 # off-diagonals before each entry
        xp.cumsum(off, out=before[1:])
        k = (before[:-1] - before[csr.indptr[rows]])[off]        # off-diagonals before it in its own row
        rows = rows[off]
        return self.slice_ptr[rows // H] + k * H + rows % H, off

    def _arrays(self):
        return self.slice_ptr, self.diag, self.entries, self.col_idx

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(*self._arrays(), x, out, self.height, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(*self._arrays(), x, out, w, dots, self.height)
        self.space.collect(dots)

    def to_csr(self):
        xp, (n, m), H = self.space.xp, self.shape, self.height
        at = xp.nonzero(self.col_idx)[0]
        code = self.col_idx[at].astype(np.int64)
        owner = rows_of(self.slice_ptr, self.entries.size, xp)[at]
        rows = owner * H + at % H
        columns = xp.where(code < 0, owner * H - code - 1, code - 1)
        has = xp.ones(min(n, m), bool)
        has[self.missing] = False
        diagonal = xp.nonzero(has)[0]
        rows, columns = xp.concatenate([rows, diagonal]), xp.concatenate([columns, diagonal])
        order = xp.argsort(rows * m + columns)
        values = xp.concatenate([self.entries[at], self.diag[diagonal]])[order]
        indptr = self.space.row_pointers(rows, n)
        return CSRMatrix(self.space, indptr, columns[order], values, self.shape)

    def convert(self, csr):
        return ModifiedSELLMatrix(csr, self.settings)

    def update(self, csr):
        where, off = self._where(csr)
        self.entries[where] = csr.data[off]
        self.diag[...] = csr.diagonal()
        self.discard_adjoint()

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self._arrays()) + self.missing.nbytes

    @property
    def matrix_bytes(self):
        return self.slice_ptr.nbytes + self.diag.nbytes + self._read * (self.dtype.itemsize + self.col_idx.itemsize)

    @property
    def padding(self) -> float:
        """Stored entries, padding included, over entries of the matrix; both with the diagonal."""
        return (self.entries.size + self.diag.size) / max(self.nnz, 1)

    def describe(self):
        return (f"modified_sell, height {self.height}, padding {self.padding:.2f}, λ {self.local_share:.2f}, "
                f"{self.col_idx.dtype.itemsize * 8}-bit columns")
