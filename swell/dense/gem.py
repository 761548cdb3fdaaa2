"""GEM(PP): Gaussian elimination, sequential, on a CPU; the unit diagonal is in L. Table 2.1 of the thesis.

A multiple of row j is subtracted from each row below it (kij form). For comparison only: 2/3 n³ sequential operations.
"""
from dataclasses import dataclass

from swell.dense.factors import DoolittleFactors
from swell.dense.sequential import Sequential


@dataclass(frozen=True)
class GEM(Sequential):
    """Gaussian elimination, sequential, on a CPU.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        Choose a pivot in every column; only in columns with |u_jj| <= ``pivot_tolerance``; in none.
    pivot_tolerance : float
        Absolute bound of conditional pivoting.
    order : {"C", "F"}
        Memory order of the factors: "C", rows contiguous, or "F", columns contiguous. A matrix in this order is copied
        as it lies, without being transposed.
    """

    kernel = "eliminate"
    factors = DoolittleFactors
