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

import numpy as np

from swell.core.settings import describe, positive
from swell.formats.blocks import LARGEST, BlockPattern, check_pad, chosen_size
from swell.formats.csr import CSRMatrix
from swell.preconditioners.block_lu_factorisation import BlockFixedPoint, BlockScheduled, BlockSequential, BlockThreaded
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.incomplete_lu import LUOperator, PatternLU, diagonal_places, largest_moduli, moved
from swell.preconditioners.lu_factorisation import levels_pay
from swell.transforms.permutation import Permutation


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

    def pattern(self, A):
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
    fill : float
        Values of A's blocks over entries of A.
    """

    def __init__(self, A, settings):
        self.block = chosen_size(A, settings, "BlockILU0")
        super().__init__(A, settings)

    def _find_order(self, A):
        self._pattern = block_pattern(A, self.block)
        return super()._find_order(self._pattern)

    def _analyse(self, A):
        xp, s, pattern = self.space.xp, self.block, self._pattern
        count, self.fill, self._pattern = pattern.shape[0], pattern.nnz * s * s / max(A.nnz, 1), None
        self._place = xp.empty(0, pattern.indptr.dtype)
        if self.order is not None:
            self._place = xp.empty(count, pattern.indptr.dtype)
            self._place[self.order] = xp.arange(count, dtype=pattern.indptr.dtype)
            indptr, indices, _ = Permutation(pattern, self.order).pattern(pattern)
            pattern = CSRMatrix(A.space, indptr, indices, pattern.data, pattern.shape)
        pattern = CSRMatrix(A.space, *self.settings.pattern(pattern), pattern.data, pattern.shape)
        diagonal_places(pattern, self._name, self._named, "diagonal blocks have no entry")
        self.space.check_fits(pattern.nnz * s * s * A.dtype.itemsize, f"L and U in blocks of {s}",
                              "use smaller blocks, or a level of 0")
        self.factor = BlockFactor.on_pattern(pattern, s, A.dtype, A.shape[0])
        self._factor = self._algorithm()

    def _algorithm(self):
        T, how = self.factor, self.settings.factor
        if how == "sweeps":
            return BlockFixedPoint(T, self.settings.factor_sweeps)
        if self.space.name != "cpu":
            return BlockScheduled(T)
        by_levels = how == "levels" or levels_pay(T.count, self.block)
        return (BlockThreaded if by_levels else BlockSequential)(T)

    def _named(self, row):
        block = self._row(row)
        last = min((block + 1) * self.block, self.shape[0]) - 1
        return f"diagonal block {block} (rows {block * self.block} to {last})"

    def _load(self, A):
        T = self.factor
        self._values = A
        scale = self.space.xp.ones(T.count * self.block, A.data.real.dtype)
        scale[:A.shape[0]] = largest_moduli(A.row_maxima(self.space.xp.ones(A.shape[1], scale.dtype)))
        self._scale = scale if self.order is None else scale.reshape(T.count, -1)[self.order].reshape(-1)

    def _factorise(self, shift, replacement):
        """Like `LUOperator._factorise`; the identity fills a last block that reaches past A."""
        A, T, xp, s = self._values, self.factor, self.space.xp, self.block
        T.data[...] = 0
        self._factor.kernels.load(A.indptr, A.indices, A.data, self._place, T.lower, T.upper, T.indices, T.data,
                                  self._factor.size, T.below)
        diagonal = T.inverse.reshape(T.count, s * s)[:, ::s + 1]     # A's diagonal, before the factorisation
        last, inside = T.count - 1, A.shape[0] - (T.count - 1) * s
        diagonal[self._place[last] if self._place.size else last, inside:] = 1
        if shift:
            diagonal[...] = moved(xp, diagonal, self._scale.reshape(T.count, s), shift)
        found = self._factor(self._scale, replacement)
        self.change = self._factor.change
        return self._check_finite(*found)

    def _row_at(self, place):
        return int(self.factor.rows()[place // self.block**2])

    def update(self, A):
        super().update(A)
        self._values = self._scale = None        # let go of A

    @property
    def nbytes(self):
        return super().nbytes + self._place.nbytes + self._factor.nbytes

    def _described(self):
        return f"{describe(self.settings)}, blocks of {self.block}, fill {self.fill:.2f}"


def block_pattern(A, size):
    """Return a CSRMatrix with one entry for each nonempty block of the CSRMatrix A; its values have no meaning."""
    blocks = BlockPattern(A, size)
    return CSRMatrix(A.space, blocks.indptr, blocks.indices, A.space.xp.empty(blocks.indices.size, np.float32),
                     (blocks.rows, blocks.columns))
