"""The rows of A in whole blocks and in elimination order, for incomplete factorisations of blocks."""
from __future__ import annotations

import numpy as np

from swell.formats.blocks import BlockPattern
from swell.formats.csr import CSRMatrix
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.incomplete_lu import diagonal_places, largest_moduli, moved
from swell.transforms.permutation import Permutation


class BlockRows:
    """The block rows of a CSRMatrix in the order in which they are eliminated.

    Parameters
    ----------
    A : CSRMatrix
    size : int
        Rows of a block; the last block may reach past A, where the matrix is the identity.

    Attributes
    ----------
    pattern : CSRMatrix
        One entry for each nonempty block of A; its values have no meaning. None after `arrange`.
    count : int
        Number of block rows.
    fill : float
        Values of A's blocks over entries of A.
    """

    def __init__(self, A, size):
        blocks, self._size, self._space, self._rows = BlockPattern(A, size), size, A.space, A.shape[0]
        values = A.space.xp.empty(blocks.indices.size, np.float32)
        self.pattern = CSRMatrix(A.space, blocks.indptr, blocks.indices, values, (blocks.rows, blocks.columns))
        self.count, self.fill = blocks.rows, self.pattern.nnz * size**2 / max(A.nnz, 1)
        self._kernels = A.space.kernels("swell.preconditioners", "block_ilu", A.dtype)

    def arrange(self, order):
        """Set the order, and return ``pattern`` in it. Block row i of a factor is block row ``order[i]`` of A, an int
        array of the space; None for equal numbers."""
        xp, pattern, index = self._space.xp, self.pattern, self.pattern.indptr.dtype
        self.order, self._place, self.pattern = order, xp.empty(0, index), None
        if order is not None:
            self._place = xp.empty(order.size, index)
            self._place[order] = xp.arange(order.size, dtype=index)
            indptr, indices, _ = Permutation(pattern, order).pattern(pattern)
            pattern = CSRMatrix(self._space, indptr, indices, pattern.data, pattern.shape)
        return pattern

    def name(self, row):
        """Return the name of block row ``row`` of a factor, by its numbers in A, for a message."""
        block = row if self.order is None else int(self.order[row])
        last = min((block + 1) * self._size, self._rows) - 1
        return f"diagonal block {block} (rows {block * self._size} to {last})"

    def factor(self, indptr, indices, dtype, name):
        """Return a BlockFactor without values on a pattern that contains A's.

        ``indptr``, ``indices``: the pattern in CSR form, the diagonal included. ``name``: the settings' class, for
        messages. Raises InputError if a diagonal block is missing, OutOfMemory if the blocks would not fit."""
        values = self._space.xp.empty(indices.size, np.float32)
        pattern = CSRMatrix(self._space, indptr, indices, values, (self.count, self.count))
        diagonal_places(pattern, name, self.name, "diagonal blocks have no entry")
        self._space.check_fits(indices.size * self._size**2 * np.dtype(dtype).itemsize,
                               f"L and U in blocks of {self._size}", "use smaller blocks, or a level of 0")
        return BlockFactor.on_pattern(pattern, self._size, dtype, self._rows)

    def scale(self, A):
        """Return the largest modulus of each row of A, in elimination order; 1 for an empty row and past A."""
        xp = self._space.xp
        scale = xp.ones(self.count * self._size, A.data.real.dtype)
        scale[:self._rows] = largest_moduli(A.row_maxima(xp.ones(A.shape[1], scale.dtype)))
        return scale if self.order is None else scale.reshape(self.count, self._size)[self.order].reshape(-1)

    def write(self, A, T, scale, shift):
        """Write A + ``shift`` S into the BlockFactor T, with zeros where A has no entry and the identity past A. S is
        diagonal: ``scale``, the result of `scale`, with the signs of A's diagonal."""
        T.data[...] = 0
        place = self._place.astype(T.indices.dtype, copy=False)
        self._kernels.load(A.indptr, A.indices, A.data, place, T.lower, T.upper, T.indices, T.data, self._size,
                           T.below)
        if not T.count:
            return
        diagonal = T.inverse.reshape(T.count, -1)[:, ::self._size + 1]
        last, inside = T.count - 1, A.shape[0] - (T.count - 1) * self._size
        diagonal[self._place[last] if self._place.size else last, inside:] = 1
        if shift:
            diagonal[...] = moved(self._space.xp, diagonal, scale.reshape(T.count, -1), shift)

    def scale_columns(self, T):
        """Overwrite the strict blocks of U in the BlockFactor T by N, U = (I + N) D."""
        self._kernels.scale_columns(T.indices, T.data, self._size, T.below, T.below + T.diagonals)

    @property
    def nbytes(self):
        return self._place.nbytes
