"""Block Jacobi: M = diag(A₁₁, A₂₂, …)⁻¹, the inverses of the diagonal blocks. Saad, Iterative Methods, section 10.3.2.

For systems whose unknowns come in groups: the displacements of a node, the species of a cell. All blocks have the same
size, but the last may be smaller. The library of the space (NumPy or CuPy) inverts them once, as dense matrices.
For blocks that are large parts of the domain take ``Schwarz(overlap=0)``.

An application is one launch. It reads the inverses (s words a row) and a vector, and writes one. Storage: s n words.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import FactorisationError
from swell.core.operator import LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.core.settings import choose_by_none, positive
from swell.formats.blocks import MAX_BLOCK, divisors

WITHOUT_BLOCKS = 4      # rows of a block for a matrix without dense blocks
SINGULAR = 1e-14        # reciprocal condition number in the infinity norm; a block below it counts as singular


@dataclass(frozen=True)
class BlockJacobi(Preconditioner):
    """The inverses of the diagonal blocks, as a preconditioner.

    Attributes
    ----------
    block : int
        Rows of a block, 1 to 32; None: A's block size, or 4 if A has no dense blocks.
    """

    block: int | None = None

    problem = "any matrix whose diagonal blocks are not singular; unknowns in groups"
    cost = "`block` + 2 words a row"

    def __post_init__(self):
        choose_by_none(self, 0, "block")
        positive(self, "block", most=MAX_BLOCK)

    def build(self, A):
        return BlockJacobiOperator(A, self)


class BlockJacobiOperator(LinearOperator):
    """z = M r for one matrix.

    Attributes
    ----------
    block : int
        Rows of a block.
    inverses : device array, shape (blocks, block, block)

    Raises
    ------
    FactorisationError
        If a block is singular; the message names the first.
    """

    self_adjoint = True

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        s = settings.block or divisors(A.block_size)[-1]
        self.block = s = WITHOUT_BLOCKS if settings.block is None and s == 1 else s
        self._blocks = -(-A.shape[0] // s)
        self.inverses = A.space.empty((self._blocks, s, s), A.dtype)
        self._kernels = A.space.kernels("swell.preconditioners", "block_jacobi", A.dtype)
        self.update(A)

    def update(self, A):
        """Invert the diagonal blocks of a matrix of the same shape, into ``inverses``."""
        xp, s, n = self.space.xp, self.block, self.shape[0]
        rows = A.rows()
        inside = rows // s == A.indices // s
        blocks = xp.zeros((self._blocks, s, s), A.dtype)
        blocks[rows[inside] // s, rows[inside] % s, A.indices[inside] % s] = A.data[inside]
        padding = xp.arange(n, self._blocks * s)                 # the identity fills the last block
        blocks[padding // s, padding % s, padding % s] = 1
        self._refuse_any(xp.linalg.slogdet(blocks)[0] == 0)      # NumPy's inversion would not name the block
        inverses = xp.linalg.inv(blocks) if n else blocks
        size = abs(blocks).sum(axis=2).max(axis=1) * abs(inverses).sum(axis=2).max(axis=1) if n else xp.ones(0)
        self._refuse_any(~(size < 1 / SINGULAR))                 # not finite, or no correct digit left
        self.inverses[...] = inverses

    def _refuse_any(self, bad):
        """Raise FactorisationError if a flag in ``bad`` is true; the message names the first such block. ``bad`` is a
        bool array with an entry for each block."""
        block, count = self.space.find_true(bad)  # sync
        if not count:
            return
        s = self.block
        raise FactorisationError(f"BlockJacobi(block={s}): the diagonal block {block} (rows {block * s} to "
                                 f"{min((block + 1) * s, self.shape[0]) - 1}) is singular: choose another block size, "
                                 "or method='direct'")

    def apply(self, x, out, alpha=1, beta=0):
        kind = out.dtype.type
        self._kernels.apply(self.inverses, x, out, self.block, kind(alpha), kind(beta))

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        kind = out.dtype.type
        self._kernels.apply_adjoint(self.inverses, x, out, self.block, kind(alpha), kind(beta))

    @property
    def nbytes(self):
        return self.inverses.nbytes

    def describe(self):
        return f"BlockJacobi(block={self.block}), {self._blocks} blocks"
