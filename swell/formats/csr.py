"""CSR: compressed sparse rows, the form in which matrices arrive and from which every other format is made.

A product reads 8 nnz bytes of values (double), 4 nnz of columns and 4 (n + 1) of row pointers.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swell.core.arrays import checked_dtype
from swell.core.errors import InputError
from swell.core.settings import ON_CPU, Idle, circumstances, idle_notes
from swell.formats.matrix import Matrix, index_type, rows_of


@dataclass(frozen=True)
class CSR:
    """Compressed sparse rows.

    Attributes
    ----------
    lanes : int
        Threads of a GPU that share a row: 1, 2, 4, 8, 16 or 32; 0 takes the power of two below the mean row. A CPU
        gives every row to one thread.
    """

    lanes: int = 0

    idle = Idle("lanes", ON_CPU, "a CPU gives every row to one thread"),

    def __post_init__(self):
        if self.lanes not in (0, 1, 2, 4, 8, 16, 32):
            raise InputError(f"CSR(lanes={self.lanes!r}): expected 1, 2, 4, 8, 16 or 32 threads a row, or 0 for as "
                             "many as the mean row suggests")

    def build(self, csr):
        """The CSR matrix itself, or its arrays with other ``lanes``."""
        if self.lanes == csr.lanes:
            return csr
        made = CSRMatrix(csr.space, csr.indptr, csr.indices, csr.data, csr.shape, self.lanes)
        made.notes = idle_notes(self, circumstances(csr))
        return made


class CSRMatrix(Matrix):
    """A matrix in CSR, its columns sorted in each row and free of duplicates.

    Parameters
    ----------
    space : Space
    indptr, indices, data : arrays of the space
        Row pointers (rows + 1), columns and values (nnz each).
    shape : (int, int)
    lanes : int
        As in ``CSR``.

    Attributes
    ----------
    block_divisor : int
        A number that the size of detected blocks must divide, since other ranks have such blocks; 0: none.
    """

    has_entries = True
    block_divisor = 0

    def __init__(self, space, indptr, indices, data, shape, lanes=0):
        super().__init__(shape, data.dtype, space, int(data.size))
        index = index_type(*shape, self.nnz)
        self.indptr = indptr.astype(index, copy=False)
        self.indices = indices.astype(index, copy=False)
        self.data = data
        self.lanes = lanes
        self._kernels = space.kernels("swell.formats", "csr", data.dtype)

    @classmethod
    def from_scipy(cls, A, space):
        """A SciPy (or CuPy) CSR matrix with sorted, summed indices, moved to the space; integers become double.

        Raises
        ------
        InputError
            For another format, values of another type, and indices that are not sorted and summed.
        """
        if getattr(A, "format", None) != "csr":
            raise InputError(f"A is a {type(A).__name__}: expected a CSR matrix of SciPy or CuPy; convert it with "
                             "scipy.sparse.csr_array(A), or give it to swell.solve as it is")
        if not A.has_canonical_format:
            raise InputError("A has rows whose columns are not sorted, or entries stored twice: call "
                             "A.sum_duplicates() first")
        data = A.data.astype(checked_dtype(A.dtype, "A"), copy=False)
        return cls(space, *(space.from_host(a) for a in (A.indptr, A.indices, data)), A.shape)

    def to_scipy(self):
        """The matrix as scipy.sparse.csr_matrix, on the host."""
        import scipy.sparse as sp
        host = self.space.to_host
        return sp.csr_matrix((host(self.data), host(self.indices), host(self.indptr)), shape=self.shape)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)    # one type, one compilation
        self._kernels.product(self.indptr, self.indices, self.data, x, out, self.lanes, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(self.indptr, self.indices, self.data, x, out, w, dots, self.lanes)
        self.space.collect(dots)

    def to_csr(self):
        return self

    def convert(self, csr):
        return CSR(self.lanes).build(csr)

    def update(self, csr):
        if csr.data is not self.data:            # else they were changed where they are, as a sweep does
            self.data[...] = csr.data
        self.discard_adjoint()

    def take(self, new):
        """Take the values of another CSR matrix.

        Raises
        ------
        InputError
            If its pattern is another one.
        """
        xp = self.space.xp
        shared = new.indptr is self.indptr and new.indices is self.indices         # as of one mesh: nothing to compare
        if new.shape != self.shape or new.nnz != self.nnz or not (shared or (
                bool(xp.array_equal(new.indptr, self.indptr)) and bool(xp.array_equal(new.indices, self.indices)))):
            raise InputError(f"the new matrix ({new.shape}, {new.nnz} entries) has another pattern than the prepared "
                             f"one ({self.shape}, {self.nnz} entries): prepare again")
        self.update(new)

    def rows(self):
        """The row of every entry."""
        return rows_of(self.indptr, self.nnz, self.space.xp)

    def diagonal(self):
        """The diagonal, zero where nothing is stored."""
        d = self.space.empty(self.shape[0], self.dtype)
        self._kernels.diagonal(self.indptr, self.indices, self.data, d)
        return d

    def transpose(self, conjugate=False):
        """Aᵀ, or Aᴴ."""
        xp = self.space.xp
        if self.space.name == "cpu":             # two passes, where sorting takes ten times as long
            from swell.formats.kernels.csr import transpose
            indptr, indices = np.zeros(self.shape[1] + 1, self.indptr.dtype), np.empty_like(self.indices)
            data = np.empty_like(self.data)
            transpose(self.indptr, self.indices, self.data, indptr, indices, data)
            return CSRMatrix(self.space, indptr, indices, data.conj() if conjugate else data, self.shape[::-1])
        order = xp.argsort(self.indices, kind="stable")          # rows ascend already, so they do within each column
        counts = xp.bincount(self.indices, minlength=self.shape[1])
        indptr = xp.zeros(self.shape[1] + 1, self.indptr.dtype)
        xp.cumsum(counts, out=indptr[1:])
        data = self.data[order]
        return CSRMatrix(self.space, indptr, self.rows()[order], data.conj() if conjugate else data, self.shape[::-1])

    def astype(self, dtype):
        """The same matrix with values of another type."""
        return CSRMatrix(self.space, self.indptr, self.indices, self.data.astype(dtype), self.shape)

    def scaled(self, left, right):
        """diag(left) A diag(right), of real vectors; either may be None."""
        xp = self.space.xp
        sides = [xp.ones(size, np.float32) if side is None else side for side, size in zip((left, right), self.shape)]
        dtype = np.result_type(self.dtype, *(side.dtype for side in sides))
        data = self.data.astype(dtype, copy=False)
        sides = [xp.ascontiguousarray(side, dtype=np.dtype(dtype.char.lower())) for side in sides]
        scaled = CSRMatrix(self.space, self.indptr, self.indices, xp.empty_like(data), self.shape)
        scaled._kernels.scale(self.indptr, self.indices, data, *sides, scaled.data)
        return scaled

    def power(self, p):
        """The matrix of the aᵢⱼᵖ, for aᵢⱼ ≥ 0."""
        return CSRMatrix(self.space, self.indptr, self.indices, self.data**p, self.shape)

    def absolute(self):
        """The matrix of the moduli |aᵢⱼ|, which are real."""
        return CSRMatrix(self.space, self.indptr, self.indices, abs(self.data), self.shape)

    def row_sums(self):
        """Σⱼ aᵢⱼ of each row, summed row by row: differences of one running sum would lose the small rows."""
        return self.times(self.space.xp.ones(self.shape[1], self.dtype))

    def row_lengths(self):
        """The number of entries of each row."""
        return self.indptr[1:] - self.indptr[:-1]

    def modulus_sums(self):
        """Σⱼ |aᵢⱼ| of each row, in double."""
        sums = self.space.empty(self.shape[0], np.float64)
        self._kernels.modulus_sums(self.indptr, self.data, sums)
        return sums

    def times(self, x):
        """A x as a new array."""
        y = self.space.empty(self.shape[0], self.dtype)
        self.apply(x, y)
        return y

    def row_maxima(self, x):
        """maxⱼ |aᵢⱼ| xⱼ of each row, for x ≥ 0."""
        y = self.space.empty(self.shape[0], x.dtype)
        self._kernels.maxima(self.indptr, self.indices, self.data, x, y)
        return y

    def stored_as(self, settings):
        """The matrix in another format, given by its settings."""
        return settings.build(self)

    @cached_property
    def adjoining(self) -> float:
        """The share of entries whose neighbour to the right is an entry too, as in dense blocks."""
        columns = self.indices                   # the last of a row and the first of the next may count too
        return int((columns[1:] == columns[:-1] + 1).sum()) / max(self.nnz, 1)       # sync

    def bandwidth(self) -> int:
        """The largest |i − j| of an entry."""
        xp = self.space.xp
        rows = xp.nonzero(self.row_lengths())[0]                 # columns ascend, so a row's ends are its extremes
        first, last = self.indices[self.indptr[rows]], self.indices[self.indptr[rows + 1] - 1]
        return int(xp.maximum(abs(rows - first), abs(last - rows)).max()) if self.nnz else 0

    def norm_inf(self):
        """‖A‖∞."""
        return float(self.modulus_sums().max()) if self.shape[0] else 0.0

    def norm_frobenius(self):
        """‖A‖ in the Frobenius norm."""
        return self.space.norms(self.data)[0]

    @property
    def nbytes(self):
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def describe(self):
        lanes = f", {self.lanes} lanes a row" if self.lanes else ""
        return f"csr, {self.indices.dtype.itemsize * 8}-bit columns{lanes}"
