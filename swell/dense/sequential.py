"""What GEM and CM share: settings of their pivots, and a kernel on a CPU that takes one element after the other."""
from __future__ import annotations

from dataclasses import dataclass

from swell.dense.decomposer import Decomposer, check_pivoting, check_tolerances, threshold


@dataclass(frozen=True)
class Sequential(Decomposer):
    """A sequential decomposer.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        A pivot for every column; where the element on the diagonal is at most ``pivot_tolerance``; never.
    pivot_tolerance : float
        Absolute.
    """

    pivoting: str = "full"
    pivot_tolerance: float = 1e-5

    cost = "2/3 n³, sequential"
    devices = ("cpu",)
    kernel = ""             # its name in kernels/crout.py

    def __post_init__(self):
        check_pivoting(self)
        check_tolerances(self, "pivot_tolerance")

    def size(self, n):
        return n * n                             # all of a matrix is for one thread

    def decompose(self, work):
        getattr(work.kernels("crout"), self.kernel)(work.lu, work.row, work.column, self.pivoting != "none",
                                                    float(threshold(self)), work.n, work.pivots, work.matrices)
        return work.n, None
