"""CM(PP): Crout's method, sequential, on a CPU. Section 1.3.2 and Appendix A of the thesis; Forsythe, Algorithm 16
(1960).

For every j: column j of L (1.11), its pivot (1.13), row j of U (1.12), each element a whole sum. It is what the other
methods are measured by, not a method for large matrices: 2/3 n³ operations, none of them in parallel, with a stride.

Differs from the thesis: the pivot is looked for in every column by default (``pivoting="full"``); its sums are of the
matrix's type (Appendix A declares them as integers, surely a slip); a zero pivot is an error in the last column too.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.dense.sequential import Sequential


@dataclass(frozen=True)
class CM(Sequential):
    """Crout's method, sequential, on a CPU.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        A pivot for every column; where |l_jj| <= ``pivot_tolerance``; never.
    pivot_tolerance : float
        Absolute.
    """

    kernel = "crout"
