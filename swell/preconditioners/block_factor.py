"""L and U of a block factorisation, in one array of blocks on one pattern: PETSc's layout for BAIJ, which "A Parallel
Preconditioned GMRES for Block-Sparse Matrices on GPUs" copies to the GPU, section 3.3.

- ``data``: the strictly lower blocks N of L = I + N by block rows, the inverse diagonal blocks D⁻¹, the strictly upper
  blocks N of U = (I + N) D by block rows. Blocks are row-major;
- ``indices``: the block column of each of them;
- ``lower[i]``, ``upper[i]``: where the blocks of block row i begin in both triangles.

Factorisations overwrite these arrays (lu_factorisation.py), and the solves read them (block_triangular.py): no
solve has blocks of its own, and every sweep reads one contiguous part of ``data``. Block rows are in elimination order.

Storage: the blocks and 4 bytes each, 8 bytes a block row, one work vector (two for four sweeps and more).

Differs from PETSc: U's strict blocks are multiplied by D⁻¹ once, so a sweep with U multiplies no diagonal block.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type, rows_of


class BlockFactor:
    """L and U of one factorisation, or one triangle, in one array of blocks.

    Parameters
    ----------
    space : Space
    lower, upper : int arrays, shape (block rows + 1,)
        Where the strictly lower and upper blocks of each block row begin.
    indices : int array
        Block columns, ascending in each block row of a triangle.
    data : array, shape (blocks, s, s)
    n : int
        Length of the vectors; their last block may be shorter than s.
    below : int
        Number of strictly lower blocks: the place of the first inverse diagonal block.
    diagonals : int
        Number of inverse diagonal blocks; 0 for a unit triangle.
    divides_first : bool
        The triangle is D (I + N), not (I + N) D.
    """

    scratch = ("_work",)

    def __init__(self, space, lower, upper, indices, data, n, below, diagonals, divides_first=False):
        self.space, self.n, self.below, self.diagonals = space, n, below, diagonals
        self.lower, self.upper, self.indices, self.data, self.shape = lower, upper, indices, data, (n, n)
        self.block, self.dtype, self.divides_first = data.shape[1], data.dtype, divides_first
        self._work = self._single = None

    @classmethod
    def on_pattern(cls, pattern, size, dtype, n):
        """Return a factor without values.

        Parameters
        ----------
        pattern : CSRMatrix
            One entry for each block of L and U, the diagonal's included; its values are never read.
        size : int
            Rows of a block.
        dtype : numpy.dtype
        n : int
            Length of the vectors.
        """
        space, xp, count, rows = pattern.space, pattern.space.xp, pattern.shape[0], pattern.rows()
        parts = [xp.flatnonzero(which) for which in (pattern.indices < rows, pattern.indices > rows)]
        index = index_type(count * size, count * size, pattern.nnz * size**2)
        lower, upper = (space.row_pointers(rows[part], count, index) for part in parts)
        upper += index.type(parts[0].size + count)
        indices = xp.concatenate([pattern.indices[parts[0]], xp.arange(count), pattern.indices[parts[1]]])
        data = space.empty((indices.size, size, size), dtype)
        return cls(space, lower, upper, indices.astype(index), data, n, parts[0].size, count)

    @classmethod
    def of(cls, T, lower, unit=False):
        """Return one triangle of the BSRMatrix T as a BlockFactor, a copy; T itself if it is a BlockFactor.

        Raises
        ------
        FactorisationError
            If a diagonal block is singular.
        """
        if isinstance(T, cls):
            return T
        xp, rows = T.space.xp, rows_of(T.indptr, T.indices.size, T.space.xp)
        strict = xp.flatnonzero(T.indices < rows if lower else T.indices > rows)
        diagonal = T.data[:0] if unit else T.data[T.indices == rows]
        first, singular = T.space.find_true(xp.linalg.slogdet(diagonal)[0] == 0)  # sync
        if singular:
            raise FactorisationError(f"the diagonal block {first} of the triangular factor is "
                                     "singular: the factorisation broke down; choose another preconditioner")
        inverse, blocks, columns = xp.linalg.inv(diagonal), T.data[strict], T.indices[strict]
        if not unit:
            blocks = xp.matmul(blocks, inverse[columns])
        ptr = T.space.row_pointers(rows[strict], T.indptr.size - 1, T.indptr.dtype)
        return cls._of_triangle(T.space, lower, ptr, columns, blocks, inverse, T.shape[0])

    @classmethod
    def _of_triangle(cls, space, lower, ptr, columns, blocks, inverse, n, divides_first=False):
        """Return a factor with one triangle: ``ptr``, ``columns`` and ``blocks`` of its N, and its D⁻¹, empty for a
        unit triangle."""
        xp, diagonals, below = space.xp, inverse.shape[0], blocks.shape[0] if lower else 0
        numbers = xp.arange(diagonals, dtype=columns.dtype)
        indices = xp.concatenate([columns, numbers] if lower else [numbers, columns])
        data = xp.ascontiguousarray(xp.concatenate([blocks, inverse] if lower else [inverse, blocks]))
        other = xp.zeros_like(ptr)
        return cls(space, *((ptr, other) if lower else (other, ptr + ptr.dtype.type(diagonals))), indices, data, n,
                   below, diagonals, divides_first)

    @property
    def count(self) -> int:
        """Number of block rows."""
        return self.lower.size - 1

    @property
    def nnz(self) -> int:
        """Number of entries of the stored blocks."""
        return self.data.size

    @property
    def inverse(self):
        """The inverse diagonal blocks, a view of ``data``."""
        return self.data[self.below:self.below + self.diagonals]

    def triangle(self, lower):
        """Return (ptr, columns, blocks) of the strict triangle N of L if ``lower``, else of U; ``ptr`` from 0."""
        if lower:
            return self.lower, self.indices[:self.below], self.data[:self.below]
        first = self.below + self.diagonals
        return self.upper - self.upper.dtype.type(first), self.indices[first:], self.data[first:]

    def pattern(self, lower):
        """Return the strict triangle as a CSRMatrix with one entry for each block; its values have no meaning."""
        ptr, columns, _ = self.triangle(lower)
        return CSRMatrix(self.space, ptr, columns, self.space.empty(columns.size, np.float32), (self.count,) * 2)

    def rows(self):
        """Return the block row of each block, an int array."""
        xp, first = self.space.xp, self.below + self.diagonals
        return xp.concatenate([rows_of(self.lower, self.below, xp), xp.arange(self.diagonals),
                               rows_of(self.triangle(False)[0], self.indices.size - first, xp)])

    def adjoint(self, lower, unit):
        """Return Tᴴ as a new BlockFactor, T the lower triangle if ``lower``, else the upper one."""
        xp, (ptr, columns, blocks) = self.space.xp, self.triangle(lower)
        order = xp.argsort(columns, kind="stable")               # block rows ascend already
        rows = rows_of(ptr, columns.size, xp)[order].astype(columns.dtype)
        inverse = self.inverse[:0] if unit else self.inverse
        return self._of_triangle(self.space, not lower, self.space.row_pointers(columns, self.count, ptr.dtype), rows,
                                 blocks[order].transpose(0, 2, 1).conj(), inverse.transpose(0, 2, 1).conj(), self.n,
                                 not self.divides_first and not unit)

    def scale_columns(self):
        """Overwrite the strict blocks of U by N, U = (I + N) D: the last step of a factorisation."""
        kernels = self.space.kernels("swell.preconditioners", "block_ilu", self.dtype)
        kernels.scale_columns(self.indices, self.data, self.block, self.below, self.below + self.diagonals)

    def values(self, dtype):
        """Return ``data`` in the type ``dtype``: itself, or a copy that is kept and refreshed by this call."""
        if dtype == self.dtype:
            return self.data
        if self._single is None:
            self._single = self.space.empty(self.data.shape, dtype)
        self._single[...] = self.data
        return self._single

    def work(self, vectors):
        """Return ``vectors`` work vectors of whole blocks, a matrix, which solves with both triangles may share. Every
        row begins at a multiple of 16 bytes."""
        if self._work is None or self._work.shape[0] < vectors:
            self._work = self.space.xp.zeros((vectors, -(-self.count * self.block // 4) * 4), self.dtype)
        return self._work[:vectors] if vectors < self._work.shape[0] else self._work

    @property
    def nbytes(self):
        arrays = self.lower, self.upper, self.indices, self.data, self._work, self._single
        return sum(a.nbytes for a in arrays if a is not None)
