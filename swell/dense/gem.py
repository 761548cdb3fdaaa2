"""GEM(PP): Gaussian elimination, sequential, on a CPU; the unit diagonal is in L. Table 2.1 of the thesis.

Rows below j lose their multiple of row j (kij form). For comparison only: 2/3 n³ operations, none of them in parallel.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.dense.decomposer import Decomposer, check_not_negative, check_pivoting, threshold
from swell.dense.factors import DoolittleFactors


@dataclass(frozen=True)
class GEM(Decomposer):
    """Gaussian elimination, sequential, on a CPU.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        A pivot for every column; where |u_jj| <= ``pivot_tolerance``; never.
    pivot_tolerance : float
        Absolute.
    """

    pivoting: str = "full"
    pivot_tolerance: float = 1e-5

    cost = "2/3 n³, sequential"
    devices = ("cpu",)
    factors = DoolittleFactors

    def __post_init__(self):
        check_pivoting(self)
        check_not_negative(self, "pivot_tolerance")

    def decompose(self, work):
        from swell.dense.kernels.crout import eliminate
        eliminate(work.lu, work.row, work.column, self.pivoting != "none", float(threshold(self)), work.n, work.pivots)
        return work.n, None
