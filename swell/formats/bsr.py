"""BSR: block sparse rows, with dense s × s blocks in place of entries; for systems of PDEs, several unknowns a vertex.

PETSc's BAIJ has this format; see also "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", chapter 2.

Layout:

- ``indptr``, ``indices``: block row pointers, and the block column of every block, ascending in each block row.
- ``data[k]``: block k, of shape (s, s), row-major; zero where A has no entry (these zeros are the fill).
- ``stored``: a bit for every value of ``data``, set if A has an entry there; empty if every block is full. With it
  ``to_csr`` restores the original pattern, explicit zeros too. A product does not read it.

If s does not divide the rows or columns, and padding is allowed, the last block row or column reaches past the matrix.
Values past the matrix are zero. Vectors keep their length: a product reads no x and writes no y there.

A product reads 8 + 4/s² bytes an entry (double) instead of CSR's 12, times the fill. The fill's zeros are multiplied
with x: an Inf or NaN in x also spoils rows that have no entry in that column, only fill.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import InputError
from swell.formats.blocks import MAX_BLOCK, BlockPattern, Blocks, chosen_size
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of



@dataclass(frozen=True)
class BSR(Blocks):
    """Block sparse rows: dense blocks in place of entries, one column index a block.

    Attributes
    ----------
    block : int
        Rows and columns of a block, 1 to 32; None: the largest with a fill of at most 1.2 (1 if there is none).
    pad : bool
        Allow a size that does not divide the rows and columns; the last blocks are filled with zeros.
    """

    def build(self, csr):
        pattern = BlockPattern(csr, chosen_size(csr, self, "BSR"))
        s, count, space = pattern.size, pattern.indices.size, csr.space
        space.check_fits(count * s * s * csr.dtype.itemsize, f"the matrix in blocks of {s}",
                         "use a smaller block, or format='sell'")
        data, stored = space.xp.zeros((count, s, s), csr.dtype), None
        data.reshape(-1)[pattern.positions] = csr.data
        if data.size > csr.nnz:
            stored = space.xp.zeros(data.shape, bool)
            stored.reshape(-1)[pattern.positions] = True
        return BSRMatrix(space, pattern.indptr, pattern.indices, data, csr.shape, stored, self)


class BSRMatrix(Matrix):
    """A matrix in BSR.

    Parameters
    ----------
    space : Space
    indptr, indices, data : arrays of the space
        Block row pointers, block columns (ascending in each block row), blocks of shape (count, s, s), row-major.
    shape : (int, int)
        Rows and columns of the matrix, not blocks.
    stored : bool array, shaped like ``data``, optional
        True where ``data`` holds an entry; by default everywhere inside the matrix.
    settings : BSR, optional

    Attributes
    ----------
    block : int
        The block size s.
    fill : float
        Fill ratio: stored values over entries.
    """

    name = "bsr"

    def __init__(self, space, indptr, indices, data, shape, stored=None, settings=None):
        indptr, indices, data = (space.from_host(array) for array in (indptr, indices, data))
        s = data.shape[1]
        stored = self._inside(space, indptr, indices, data, shape) if stored is None else stored
        nnz = int(data.size if stored is None else stored.sum())
        super().__init__(shape, data.dtype, space, nnz)
        index = index_type(*(count + s for count in shape), data.size)   # the last blocks may reach past the matrix
        self.indptr, self.indices = indptr.astype(index, copy=False), indices.astype(index, copy=False)
        self.data, self.block = data, s
        self.stored = space.xp.empty(0, np.uint8) if stored is None else space.xp.packbits(stored.reshape(-1))
        self.settings = settings or BSR(s, any(count % s for count in shape))
        self._kernels = space.kernels("swell.formats", "bsr", data.dtype)

    @staticmethod
    def _inside(space, indptr, indices, data, shape):
        """Return a bool array, shaped like ``data``: True inside the matrix. None if no block reaches past it.

        ``indptr``, ``indices``, ``data``: block row pointers, block columns, blocks. ``shape``: rows, columns."""
        xp, s = space.xp, data.shape[1]
        if all(count % s == 0 for count in shape):
            return None
        rows = rows_of(indptr, indices.size, xp)[:, None] * s + xp.arange(s)
        columns = indices.astype(np.int64)[:, None] * s + xp.arange(s)
        return (rows < shape[0])[:, :, None] & (columns < shape[1])[:, None, :]

    @classmethod
    def from_blocks(cls, space, indptr, indices, blocks, shape, order="row"):
        """Build a matrix from dense blocks; every value of a block inside the matrix becomes an entry.

        Parameters
        ----------
        space : Space
        indptr, indices : arrays
            Block row pointers and block columns; columns in any order, without duplicates in a block row.
        blocks : array of shape (count, s, s)
            ``blocks[k, i, j]`` is row i and column j of block k with ``order="row"``, and row j and column i with
            ``order="column"``. The array is not changed.
        shape : (int, int)
            Rows and columns of the matrix; the last blocks may reach past it, and their values there are dropped.
        order : {"row", "column"}

        Raises
        ------
        InputError
            If the arrays are inconsistent, or a block occurs twice.
        """
        xp = space.xp
        indptr, indices, blocks = (space.from_host(a) for a in (indptr, indices, blocks))
        _check_blocks(indptr, indices, blocks, shape, order)
        indptr, indices, s = indptr.astype(np.int64), indices.astype(np.int64), blocks.shape[1]
        keys = rows_of(indptr, indices.size, xp) * max(-(-shape[1] // s), 1) + indices
        by_column = xp.argsort(keys)
        keys = keys[by_column]
        twice = xp.nonzero(keys[1:] == keys[:-1])[0]
        if twice.size:
            row, column = divmod(int(keys[twice[0]]), -(-shape[1] // s))
            raise InputError(f"block ({row}, {column}) came twice: expected each block once; add the two")
        data = xp.ascontiguousarray((blocks if order == "row" else blocks.transpose(0, 2, 1))[by_column])
        inside = cls._inside(space, indptr, indices[by_column], data, shape)
        if inside is not None:
            data = xp.where(inside, data, data.dtype.type(0))
        return cls(space, indptr, indices[by_column], data, shape, inside)

    def _stored(self):
        """Return a new bool array, shaped like ``data``: True where a value is an entry, not filled in."""
        xp = self.space.xp
        if not self.stored.size:
            return xp.ones(self.data.shape, bool)
        return xp.unpackbits(self.stored)[:self.data.size].reshape(self.data.shape).astype(bool)

    def _arrays(self):
        return self.indptr, self.indices, self.data.reshape(-1)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(*self._arrays(), x, out, self.block, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(*self._arrays(), x, out, w, dots, self.block)
        self.space.collect(dots)

    def _by_rows(self):
        """Return (indices into the flattened ``data`` of all entries, in CSR order; number of entries of each row)."""
        xp, s, count = self.space.xp, self.block, self.indices.size
        owner = rows_of(self.indptr, count, xp)
        first, length = self.indptr[owner].astype(np.int64), xp.diff(self.indptr)[owner]
        r, c = xp.arange(s)[:, None], xp.arange(s)
        k = (xp.arange(count) - first)[:, None, None]
        target = first[:, None, None] * s * s + r * (length * s)[:, None, None] + k * s + c
        places = xp.empty(self.data.size, np.int64)
        places[target.reshape(-1)] = xp.arange(self.data.size)
        stored = self._stored()
        counts = xp.bincount((owner[:, None] * s + xp.arange(s)).reshape(-1),
                             weights=stored.sum(axis=2).reshape(-1), minlength=(self.indptr.size - 1) * s)
        return places[stored.reshape(-1)[places]], counts[:self.shape[0]].astype(np.int64)

    def to_csr(self):
        xp, s = self.space.xp, self.block
        places, counts = self._by_rows()
        indptr = xp.zeros(self.shape[0] + 1, np.int64)
        xp.cumsum(counts, out=indptr[1:])
        columns = self.indices[places // (s * s)].astype(np.int64) * s + places % s
        return CSRMatrix(self.space, indptr, columns, self.data.reshape(-1)[places], self.shape)

    def convert(self, csr):
        return self.settings.build(csr)

    def adjoint(self):
        if self._adjoint is None:
            xp, (n, m) = self.space.xp, self.shape
            order = xp.argsort(self.indices, kind="stable")      # block rows ascend already
            indptr = self.space.row_pointers(self.indices, -(-m // self.block))
            data = xp.ascontiguousarray(self.data[order].transpose(0, 2, 1).conj())
            rows = rows_of(self.indptr, order.size, xp)[order]
            stored = self._stored()[order].transpose(0, 2, 1) if self.stored.size else None
            self._adjoint = BSRMatrix(self.space, indptr, rows, data, (m, n), stored,
                                      replace(self.settings, block=self.block))
        return self._adjoint

    def _find_positions(self, csr):
        return BlockPattern(csr, self.block).positions.astype(self.indptr.dtype, copy=False)

    def update(self, csr):
        self.data.reshape(-1)[self.positions(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        return self.matrix_bytes + self.stored.nbytes + (0 if self._positions is None else self._positions.nbytes)

    @property
    def matrix_bytes(self):
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    @property
    def fill(self) -> float:
        """Fill ratio: stored values over entries of the matrix."""
        return self.data.size / max(self.nnz, 1)

    def describe(self):
        return f"bsr, block {self.block}, fill {self.fill:.2f}, {self.indices.dtype.itemsize * 8}-bit columns"


def _check_blocks(indptr, indices, blocks, shape, order):
    """Raise InputError for block row pointers, block columns and blocks that are invalid or inconsistent.

    The arguments are as in `BSRMatrix.from_blocks`; ``blocks`` has shape (count, s, s)."""
    if order not in ("row", "column"):
        raise InputError(f"order={order!r}: expected 'row' (blocks[k, i, j] is row i, column j) or 'column'")
    if blocks.ndim != 3 or blocks.shape[1] != blocks.shape[2] or not 1 <= blocks.shape[1] <= MAX_BLOCK:
        raise InputError(f"blocks have shape {blocks.shape}: expected (count, s, s) with s from 1 to {MAX_BLOCK}")
    if blocks.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise InputError(f"blocks are {blocks.dtype.name}: expected float32, float64, complex64 or complex128")
    if not (indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"):
        raise InputError(f"indptr is {indptr.dtype} and indices {indices.dtype}: expected integers")
    rows, columns = (-(-count // blocks.shape[1]) for count in shape)
    if indices.shape != (blocks.shape[0],):
        raise InputError(f"{indices.size} block columns came with {blocks.shape[0]} blocks: expected one a block")
    if (indptr.shape != (rows + 1,) or int(indptr[0]) != 0 or int(indptr[-1]) != indices.size
            or bool((indptr[1:] < indptr[:-1]).any())):
        raise InputError(f"indptr is inconsistent: expected {rows + 1} ascending values from 0 to {indices.size}, for "
                         f"{shape[0]} rows in blocks of {blocks.shape[1]}")
    if indices.size and not (0 <= int(indices.min()) and int(indices.max()) < columns):
        raise InputError(f"block columns run from {int(indices.min())} to {int(indices.max())}: expected 0 to "
                         f"{columns - 1}; are they columns of entries, or one-based?")
