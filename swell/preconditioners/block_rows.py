"""The rows of A as block incomplete factorisations take them: whole blocks, in elimination order, none of them cut."""
from __future__ import annotations

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.preconditioners.incomplete_lu import largest_moduli

LACKING = "diagonal blocks have no entry"


def block_pattern(T):
    """Return a CSRMatrix with one entry for each block of the BSRMatrix T; its values have no meaning."""
    count = T.indptr.size - 1
    return CSRMatrix(T.space, T.indptr, T.indices, T.space.xp.empty(T.indices.size, np.float32), (count, count))


def block_name(block, size, n):
    """Return the name of a diagonal block of ``size`` rows of a matrix of n rows, for a message."""
    return f"diagonal block {block} (rows {block * size} to {min((block + 1) * size, n) - 1})"


class BlockRows:
    """The rows of A in the order in which its block rows are eliminated.

    Parameters
    ----------
    diagonal : int array of the space
        The place of each diagonal block among the blocks, in elimination order.
    size, n : int
        Rows of a block, and of A; the last block may reach past A, where the matrix is the identity.
    order : int array of the space, or None
        The block rows in elimination order.

    Attributes
    ----------
    entries : int array of the space
        The flat index, among the numbers of all blocks, of each diagonal entry.
    """

    def __init__(self, space, diagonal, size, n, order):
        xp, every = space.xp, space.xp.arange(size)
        self._space, self._n = space, n
        blocks = xp.arange(diagonal.size) if order is None else order
        self._rows = (blocks[:, None] * size + every).reshape(-1)
        self.entries = ((diagonal.astype(np.int64) * size)[:, None] * size + every * (size + 1)).reshape(-1)
        self._beyond = self.entries[self._rows >= n]

    def completed(self, blocks, kept):
        """Return ``blocks`` with the identity past A; a copy if they change and are ``kept`` by somebody else."""
        if self._beyond.size:
            blocks = blocks.copy() if kept else blocks
            blocks.reshape(-1)[self._beyond] = 1
        return blocks

    def scale(self, A):
        """Return the largest modulus of each row of the CSRMatrix A, 1 for an empty row and past A."""
        xp = self._space.xp
        scale = xp.ones(self._rows.size, A.data.real.dtype)
        scale[:self._n] = largest_moduli(A.row_maxima(xp.ones(A.shape[1], scale.dtype)))
        return scale[self._rows]

    @property
    def nbytes(self):
        return self.entries.nbytes + self._rows.nbytes
