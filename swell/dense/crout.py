"""CM(PP): Crout's method, sequential, on a CPU. Section 1.3.2 and Appendix A of the thesis; Forsythe, Algorithm 16
(1960).

For every j: column j of L (1.11), its pivot (1.13), row j of U (1.12), each element a whole sum. The other methods are
compared with it. It is no method for large matrices: 2/3 n³ sequential operations, with strided access.

Differs from the thesis: by default every column gets a pivot (``pivoting="full"``). The sums have the matrix's type
(Appendix A declares them as integers, surely a slip). A zero pivot is an error in the last column too.
"""
from dataclasses import dataclass

from swell.dense.sequential import Sequential


@dataclass(frozen=True)
class CM(Sequential):
    """Crout's method, sequential, on a CPU.

    Attributes
    ----------
    pivoting : {"full", "conditional", "none"}
        Choose a pivot in every column; only in columns with |l_jj| <= ``pivot_tolerance``; in none.
    pivot_tolerance : float
        Absolute bound of conditional pivoting.
    order : {"C", "F"}
        Memory order of the factors: "C", rows contiguous, or "F", columns contiguous. A matrix in this order is copied
        as it lies, without being transposed.
    """

    kernel = "crout"
