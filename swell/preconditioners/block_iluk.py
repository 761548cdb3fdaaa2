"""Block ILU(k): incomplete LU with dense blocks as entries and fill up to level k. PETSc has it for its BAIJ matrices.

A block of A has level 0; ILU(k) in the graph of the blocks gives the levels of fill (iluk.py). So the host finds a
pattern of n/s block rows, and a level costs s² times less there than for points. Inside a block all fill is kept.
Level 0 is block ILU(0), whose file block_ilu0.py has the factorisation, its cost and its storage. Blocks of 1 give
ILU(k).
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.formats.blocks import BlockPattern, chosen_size
from swell.preconditioners.block_ilu0 import BlockILU0
from swell.preconditioners.iluk import estimated, filled


@dataclass(frozen=True)
class BlockILUK(BlockILU0):
    """Incomplete LU with dense blocks as entries and fill up to a level.

    Attributes
    ----------
    level : int
        Fill up to this level is kept, in whole blocks; 0 is `BlockILU0`.
    """

    level: int = 1

    def __post_init__(self):
        super().__post_init__()
        positive(self, "level", 0)

    def estimate(self, A) -> int:
        """Return an estimate of the number of blocks of L and U together; exact for at most 400 block rows."""
        blocks = BlockPattern(A, chosen_size(A, self, "BlockILUK"))
        return estimated(*(A.space.to_host(a) for a in (blocks.indptr, blocks.indices)), self.level)     # sync

    def pattern(self, A, entry_bytes):
        return filled(A, self.level, entry_bytes, f"block ILU({self.level})", "blocks")
