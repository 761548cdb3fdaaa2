"""ILU(0): incomplete LU on the pattern of A. Meijerink and van der Vorst 1977; Saad, Iterative Methods, section 10.3.2.

This file holds only the pattern; incomplete_lu.py has the algorithm and its cost. With ``block`` other than 1, ILU0
builds block ILU(0), block_ilu0.py.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from swell.core.registry import counterpart
from swell.formats.blocks import check_blocks, chosen_size
from swell.preconditioners.incomplete_lu import PatternLU


@dataclass(frozen=True)
class ILU0(PatternLU):
    """Incomplete LU without fill.

    Attributes
    ----------
    block : int
        1: ILU(0) of single entries. 2 to 32: `BlockILU0` with blocks of that size. 0: the size that `BSR` detects.
    pad : bool
        Allow a size that does not divide the number of rows; the identity fills the last block.
    """

    block: int = 1
    pad: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_blocks(self)

    def build(self, A):
        size = 1 if self.block == 1 else chosen_size(A, self, "ILU0")
        if size == 1:
            return super().build(A)
        return replace(counterpart(self, "precond", "block_ilu0"), block=size).build(A)

    def pattern(self, A, entry_bytes):
        return A.indptr, A.indices
