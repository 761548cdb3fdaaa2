"""ILU(0): incomplete LU on the pattern of A. Meijerink and van der Vorst 1977; Saad, Iterative Methods, section 10.3.2.

Nothing but the pattern of A; what is common to all patterns, the cost among it, is in incomplete_lu.py. With ``block``,
the pattern of the dense blocks that hold A's entries: what "A Parallel Preconditioned GMRES for Block-Sparse Matrices
on GPUs" solves with point by point (figure 5b). In exact arithmetic it is block ILU(0), as long as no pivot is tiny.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.formats.blocks import LARGEST, check_pad, chosen_size
from swell.formats.bsr import BSR, BSRMatrix
from swell.preconditioners.incomplete_lu import PatternLU


@dataclass(frozen=True)
class ILU0(PatternLU):
    """Incomplete LU without fill.

    Attributes
    ----------
    block : int
        The pattern is that of dense blocks of so many rows, 1 to 32, the zeros inside them kept; 0: as `BSR` detects
        them; 1: that of A.
    pad : bool
        Allow a size that does not divide the rows; the last blocks are cut short.
    """

    block: int = 1
    pad: bool = False

    def __post_init__(self):
        super().__post_init__()
        positive(self, "block", 0, LARGEST)
        check_pad(self)

    def filled(self, A):
        size = 1 if self.block == 1 else chosen_size(A, self, "ILU0")
        if size == 1:
            return A
        blocks = BSR(size, True).build(A)
        return BSRMatrix(A.space, blocks.indptr, blocks.indices, blocks.data, A.shape).to_csr()

    def pattern(self, A):
        return A.indptr, A.indices
