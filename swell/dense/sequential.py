"""Base of GEM and CM: settings of their pivots, and a sequential kernel on a CPU."""
from __future__ import annotations

from dataclasses import dataclass

from swell.dense.decomposer import Decomposer, check_order, check_pivoting, threshold


@dataclass(frozen=True)
class Sequential(Decomposer):
    """A sequential decomposer.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        Choose a pivot in every column; only where the diagonal element is at most ``pivot_tolerance``; in none.
    pivot_tolerance : float
        Absolute bound of conditional pivoting.
    order : {"C", "F"}
        Memory order of the factors: "C", rows contiguous, or "F", columns contiguous. A matrix in this order is copied
        as it lies, without being transposed.
    """

    pivoting: str = "full"
    pivot_tolerance: float = 1e-5
    order: str = "C"

    cost = "2/3 n³, sequential"
    devices = ("cpu",)
    kernel = ""             # name of the kernel in kernels/crout.cpp

    def __post_init__(self):
        check_pivoting(self, "pivot_tolerance")
        check_order(self)

    def size(self, n):
        return n * n                             # one thread handles a whole matrix

    def decompose(self, work):
        getattr(work.kernels("crout"), self.kernel)(work.lu, work.row, work.column, self.pivoting != "none",
                                                    float(threshold(self)), work.n, work.pivots, work.matrices)
        return work.n, None
