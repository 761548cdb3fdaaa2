"""Block ILU(0): incomplete LU with dense blocks as entries, on the block pattern of A. Chow and Heroux 1998; the
factor of "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", section 3.3, as PETSc makes it.

For systems with several unknowns a vertex. (L U)ᵢⱼ = Aᵢⱼ holds in whole blocks, fill inside a block included. L is
block lower with identities on its diagonal. Each diagonal block is inverted with partial pivoting, so a zero on the
diagonal is no breakdown, but a singular block is. Blocks of 1 give ILU(0).

Setup: a product of two blocks takes 2 s³ operations. A CPU factors one block row after the other, or by levels on its
threads. On a GPU a warp factors a block row as soon as the block rows that it needs are done. ``factor_sweeps``
fixed-point sweeps with two buffers update all blocks at once and converge to the same factors (ParILU, Chow and Patel
2015, with blocks as entries). An application: two blockwise solves (block_triangular.py), exact or by sweeps.

Storage: A's blocks once. L, the inverses of U's diagonal blocks and U overwrite them, and the solves read them there.
Every call factors from A's entries, which go straight to their places in the factor; no other copy of A is kept.

A pivot below 100 ε of the largest entry of its row of A is a breakdown. It is shifted or perturbed, and reported, as in
incomplete_lu.py. Differs from the textbook: pivots are compared after division by their rows' largest entries. So
equations of different scales in one block (flow in a well, and in a cell) do not make it count as singular.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.formats.blocks import check_blocks, chosen_size
from swell.preconditioners.block_lu_factorisation import BlockFixedPoint, BlockScheduled, BlockSequential, BlockThreaded
from swell.preconditioners.block_rows import BlockRows
from swell.preconditioners.incomplete_lu import LUOperator, PatternLU
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
        check_blocks(self)

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


class BlockILU0Operator(LUOperator):
    """z = U⁻¹ L⁻¹ r, blockwise, for one matrix.

    Attributes
    ----------
    factor : BlockFactor
        L and U in elimination order.
    """

    def __init__(self, A, settings):
        self.block = chosen_size(A, settings, type(settings).__name__)
        self._rows = BlockRows(A, self.block)
        super().__init__(A, settings)

    def _analyse(self, A):
        pattern = self._rows.arrange(self.order)
        pattern = self.settings.pattern(pattern, A.dtype.itemsize * self.block**2 + 8)
        self.factor = self._rows.factor(*pattern, A.dtype, self._name)
        self._factor = self._algorithm()

    def _algorithm(self):
        T, how = self.factor, self.settings.factor
        if how == "sweeps":
            return BlockFixedPoint(T, self.settings.factor_sweeps)
        if self.space.name != "cpu":
            return BlockScheduled(T)
        by_levels = how == "levels" or levels_pay(T.count, self.block)
        return (BlockThreaded if by_levels else BlockSequential)(T)

    def _load(self, A):
        self._values, self._scale = A, self._rows.scale(A)

    def _factorise(self, shift, replacement):
        self._rows.write(self._values, self.factor, self._scale, shift)
        found = self._factor(self._scale, replacement)
        self.change = self._factor.change
        return self._check_finite(*found)

    @property
    def nbytes(self):
        return super().nbytes + self._rows.nbytes + self._factor.nbytes
