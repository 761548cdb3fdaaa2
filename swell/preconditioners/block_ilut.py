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

from swell.core.settings import describe, positive
from swell.formats.blocks import LARGEST, check_pad, chosen_size
from swell.formats.bsr import BSR, BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.block_rows import LACKING, BlockRows, block_name, block_pattern
from swell.preconditioners.block_triangular import BlockFactor
from swell.preconditioners.ilut import ILUT, ThresholdLUOperator
from swell.preconditioners.incomplete_lu import diagonal_places
from swell.transforms.permutation import Permutation


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
        positive(self, "block", 0, LARGEST)
        check_pad(self)

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
        L strictly below the diagonal blocks, and U, in elimination order, with the inverses of U's diagonal blocks.
    """

    lacking, _unit = LACKING, "blocks"

    def __init__(self, A, settings):
        size = chosen_size(A, settings, "BlockILUT")
        self._blocks = BSR(size, size > 1).build(A)
        self.block = self._blocks.block
        super().__init__(A, settings)

    def _find_order(self, A):
        return super()._find_order(block_pattern(self._blocks))

    def _named(self, row):
        return block_name(self._row(row), self.block, self.shape[0])

    def _load(self, A):
        space, T = self.space, self._blocks
        if self._builds:                         # at setup ``__init__`` has just built it from A
            T.update(A)
        pattern, blocks = block_pattern(T), T.data
        if self.order is not None:
            indptr, indices, entry = Permutation(pattern, self.order).pattern(pattern)
            pattern = CSRMatrix(space, indptr, indices, pattern.data, pattern.shape)
            blocks = blocks[entry]
        rows = BlockRows(space, diagonal_places(pattern, self._name, self._named, self.lacking), self.block,
                         A.shape[0], self.order)
        blocks = rows.completed(blocks, blocks is T.data)
        self._entries, self._scale = space.to_host(rows.entries), space.to_host(rows.scale(A))           # sync
        arrays = (space.to_host(a) for a in (pattern.indptr, pattern.indices, blocks))                   # sync
        size = pattern.shape[0] * self.block
        self._matrix = BSRMatrix(self._host, *arrays, (size, size))

    def _eliminate(self, data, *rest):
        from swell.preconditioners.kernels import block_ilut
        A = self._matrix
        ptr, columns, values, inverse, row = block_ilut.factor(A.indptr, A.indices, data, self._scale, *rest)
        return ptr, row, (columns, values, inverse)

    def _matrix_of(self, ptr, columns, values, inverse):
        s, space = self.block, self.space
        index = index_type(*self._matrix.shape, values.size)
        arrays = (ptr.astype(index), columns.astype(index), values.reshape(-1, s, s), inverse.reshape(-1, s, s))
        return BlockFactor(space, *map(space.from_host, arrays), self.shape[0])

    @property
    def nbytes(self):
        return super().nbytes + self._blocks.nbytes + self.factor.inverse.nbytes

    def _described(self):
        return f"{describe(self.settings)}, blocks of {self.block}, fill {self._blocks.fill:.2f}"
