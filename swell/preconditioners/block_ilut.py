"""Block ILUT: incomplete LU with dense blocks as entries, which keeps blocks by their size. Saad 1994, with blocks.

Block row i is eliminated in full. Blocks whose norm is below ``drop`` times the norm of block row i of A are dropped,
blocks of L before they are used. Then each side of the diagonal block keeps its largest blocks, at most ``fill`` times
half the blocks of block row i of A. Blocks of 1 give ILUT (ilut.py). Diagonal blocks are inverted and perturbed as in
block_ilu0.py; the solves are blockwise (block_triangular.py).

Setup: the host factors, block row after block row; a matrix on a GPU is sent there, and the factors back. A product of
two blocks takes 2 s³ operations, and one search of a list serves s² entries. ``update`` factors from the start.

Differs from the textbook: norms are Frobenius norms after each row of A is divided by its largest entry. So equations
of different scales in one block (flow in a well, and in a cell) count alike.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.library import native_kernels
from swell.formats.blocks import check_blocks, chosen_size
from swell.formats.matrix import index_type
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.block_rows import BlockRows
from swell.preconditioners.iluk import extended
from swell.preconditioners.ilut import ILUT, ThresholdLUOperator


@dataclass(frozen=True)
class BlockILUT(ILUT):
    """Incomplete LU with dense blocks as entries, which keeps blocks by their size.

    Attributes
    ----------
    drop : float
        Blocks whose norm is smaller than ``drop`` times the norm of their block row of A are dropped.
    fill : float
        A block row of L, and of U, keeps at most ``fill`` times half the blocks of that block row of A: the largest.
    block : int
        Rows of a block, 1 to 32; 0: the size that `BSR` detects, 1 for a matrix without blocks.
    pad : bool
        Allow a size that does not divide the number of rows; the identity fills the last block.
    ordering : str or Ordering
        Elimination order of the block rows.
    """

    block: int = 0
    pad: bool = False

    problem = "any matrix whose diagonal blocks are not singular; unknowns in groups"
    cost = "two blockwise triangular solves"

    def __post_init__(self):
        super().__post_init__()
        check_blocks(self)

    def build(self, A):
        """Return the operator (L U)⁻¹.

        Raises
        ------
        InputError
            If the block size does not divide the rows and ``pad`` is False, or a diagonal block has no entry.
        FactorisationError
            If a diagonal block stays singular in spite of ``pivot``, or ``pivot`` is "error"; the message names the
            first.
        OutOfMemory
            If L and U outgrow the memory.
        """
        return BlockThresholdLUOperator(A, self)


class BlockThresholdLUOperator(ThresholdLUOperator):
    """Incomplete LU of blocks whose pattern depends on the values.

    Attributes
    ----------
    factor : BlockFactor
        L and U in elimination order.
    """

    _unit = "blocks"

    def __init__(self, A, settings):
        self.block = chosen_size(A, settings, "BlockILUT")
        self._rows = BlockRows(A, self.block)
        super().__init__(A, settings)

    def _analyse(self, A):
        super()._analyse(A)
        pattern = self._rows.arrange(self.order)
        self._given = self._rows.factor(pattern.indptr, pattern.indices, A.dtype, self._name)

    def _load(self, A):
        self._values, self._scale = A, self.space.to_host(self._rows.scale(A))                   # sync

    def _eliminate(self, shift, *rest):
        T, space, s = self._given, self.space, self.block
        self._rows.write(self._values, T, space.from_host(self._scale), shift)
        lower, upper, columns, data = (space.to_host(a) for a in (T.lower, T.upper, T.indices, T.data))    # sync
        n, row, inverse = T.count, 0, np.empty((T.count, s, s), data.dtype)
        L, U = ([np.zeros(n + 1, np.int64), np.empty(size, np.int64), np.empty((size, s, s), data.dtype)]
                for size in (T.below, columns.size - T.below))
        factor = native_kernels("swell.preconditioners", "block_ilut").factor
        while (row := factor(lower, upper, columns, data, T.below, self._scale, *rest, row, *L, inverse, *U)) < n:
            if L[0][row] + U[0][row] > rest[-1]:
                self._check_memory(L[0][row] + U[0][row], row, n)
            for side in (L, U):
                side[1:] = map(extended, side[1:])
        lower, upper, left, right = L[0], U[0], L[1][:L[0][n]], U[1][:U[0][n]]
        first = left.size + n                      # the place of U
        indices = np.concatenate([left, np.arange(n), right])
        blocks = np.concatenate([L[2][:left.size], inverse, U[2][:right.size]])
        index = index_type(n * s, n * s, blocks.size)
        arrays = (space.from_host(a.astype(index)) for a in (lower, upper + first, indices))
        F = BlockFactor(space, *arrays, space.from_host(blocks), self.shape[0], left.size, n)
        self._rows.scale_columns(F)
        return F

    @property
    def nbytes(self):
        return self.L.nbytes + self.U.nbytes + self.factor.nbytes + self._given.nbytes + self._rows.nbytes
