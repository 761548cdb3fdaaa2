"""GEM(PP): Gaussian elimination, sequential, on a CPU; the unit diagonal is in L. Table 2.1 of the thesis.

Rows below j lose their multiple of row j (kij form). For comparison only: 2/3 n³ operations, none of them in parallel.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.dense.factors import DoolittleFactors
from swell.dense.sequential import Sequential


@dataclass(frozen=True)
class GEM(Sequential):
    """Gaussian elimination, sequential, on a CPU.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        A pivot for every column; where |u_jj| <= ``pivot_tolerance``; never.
    pivot_tolerance : float
        Absolute.
    """

    kernel = "eliminate"
    factors = DoolittleFactors
