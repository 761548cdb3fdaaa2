"""Block ILU(0): incomplete LU with dense blocks as entries, on the block pattern of A. Chow and Heroux 1998; the
factor of "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", section 3.3, as PETSc makes it.

For systems with several unknowns a vertex. (L U)ᵢⱼ = Aᵢⱼ holds in whole blocks, fill inside a block included. L is
block lower with identities on its diagonal. Each diagonal block is inverted with partial pivoting, so a zero on the
diagonal is no breakdown, but a singular block is. U's diagonal blocks are stored inverted. Blocks of 1 give ILU(0).

Setup: a product of two blocks takes 2 s³ operations. A CPU factors one block row after the other, or by levels on its
threads. On a GPU a warp factors a block row as soon as the block rows that it needs are done. ``factor_sweeps``
fixed-point sweeps with two buffers update all blocks at once and converge to the same factors (ParILU, Chow and Patel
2015, with blocks as entries). An application: two blockwise solves (block_triangular.py), exact or by sweeps.

Storage: A's blocks twice (the factor, and L and U in the layout of the solves), 2 s words a row for the inverses.

A pivot below 100 ε of the largest entry of its row of A is a breakdown. It is shifted or perturbed, and reported, as in
incomplete_lu.py. Differs from the textbook: pivots are compared after division by their rows' largest entries. So
equations of different scales in one block (flow in a well, and in a cell) do not make it count as singular.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import describe, positive
from swell.formats.blocks import LARGEST, check_pad, chosen_size
from swell.formats.bsr import BSR
from swell.preconditioners.block_lu_factorisation import BlockFixedPoint, BlockScheduled, BlockSequential, BlockThreaded
from swell.preconditioners.block_rows import LACKING, BlockRows, block_name, block_pattern
from swell.preconditioners.block_triangular import BlockFactor
from swell.preconditioners.incomplete_lu import PatternLU, PatternLUOperator
from swell.preconditioners.lu_factorisation import levels_pay


@dataclass(frozen=True)
class BlockILU0(PatternLU):
    """Incomplete LU with dense blocks as entries, without fill outside A's blocks.

    Attributes
    ----------
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

    def pattern(self, A, entry_bytes):
        return A.indptr, A.indices

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
            If the blocks would not fit.
        """
        return BlockILU0Operator(A, self)


class BlockILU0Operator(PatternLUOperator):
    """z = U⁻¹ L⁻¹ r, blockwise, for one matrix.

    Attributes
    ----------
    factor : BlockFactor
        L strictly below the diagonal blocks, and U, in elimination order, with the inverses of U's diagonal blocks.
    """

    lacking = LACKING

    def __init__(self, A, settings):
        size = chosen_size(A, settings, type(settings).__name__)
        self.matrix = BSR(size, size > 1).build(A)
        self.block = self.matrix.block
        super().__init__(A, settings)

    def _unknowns(self, A):
        return block_pattern(self.matrix)

    def _allocate(self, A, filled):
        xp, s, count = self.space.xp, self.block, filled.shape[0]
        self.factor = BlockFactor(self.space, filled.indptr, filled.indices, xp.empty((filled.nnz, s, s), A.dtype),
                                  xp.empty((count, s, s), A.dtype), A.shape[0])
        self.diagonal = self.diagonal.astype(self.factor.indptr.dtype, copy=False)
        self._rows = BlockRows(self.space, self.diagonal, s, A.shape[0], self.order)
        self._entries = self._rows.entries

    def _algorithm(self):
        T, diagonal, how = self.factor, self.diagonal, self.settings.factor
        if how == "sweeps":
            return BlockFixedPoint(T, diagonal, self.settings.factor_sweeps)
        if self.space.name != "cpu":
            return BlockScheduled(T, diagonal)
        by_levels = how == "levels" or levels_pay(diagonal.size, self.block)
        return (BlockThreaded if by_levels else BlockSequential)(T, diagonal)

    def _named(self, row):
        return block_name(self._row(row), self.block, self.shape[0])

    def _load(self, A):
        if self.L is not None:                   # at setup ``__init__`` has just built it from A
            self.matrix.update(A)
        self._values = self._placed(self.matrix.data)
        self._values = self._rows.completed(self._values, self._values is self.matrix.data)
        self._scale = self._rows.scale(A)

    @property
    def nbytes(self):
        return super().nbytes + self.matrix.nbytes + self.factor.inverse.nbytes + self._rows.nbytes

    def _described(self):
        return f"{describe(self.settings)}, blocks of {self.block}, fill {self.matrix.fill:.2f}"
