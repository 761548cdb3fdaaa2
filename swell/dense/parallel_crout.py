"""PCM_x(PP): Crout's method with the elements of a column, and of a row, in parallel. Section 2.2.2 and Appendix B of the
thesis.

For every j: column j of L (1.11), its pivot by a parallel reduction (2.5), the swap, row j of U (1.12); no host read.

``form="plain"`` is the thesis': whole sums for every element, so that n³/3 words are read (at most one use of each);
``form="blocked"`` subtracts what finished fronts of x contribute as matrix products (blocked.py), and only sums within a
front are left: n² x words. The default.

Launches: 4 a column, and those of the products. Storage: the factors, and A.

Differs from the thesis: pivots are chosen on the device, without a host read; blocks of x² threads share out a sum's terms
(a warp's lanes read neighbours), where the thesis gives every element one thread; a pivot for every column by default.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.dense.blocked import by_sections, check_section, section_size
from swell.dense.decomposer import Decomposer, check_not_negative, check_pivoting, check_x, threshold

FORMS = ("blocked", "plain")


@dataclass(frozen=True)
class PCM(Decomposer):
    """Crout's method, a column and a row at a time in parallel.

    Attributes
    ----------
    x : {8, 16, 32}
        Blocks of x² threads; the width of a front.
    pivoting : {"full", "conditional", "none"}
        A pivot for every column; where |l_jj| <= ``pivot_tolerance``; never.
    pivot_tolerance : float
        Absolute.
    form : {"blocked", "plain"}
        Whether finished steps are added as matrix products, or every sum is whole.
    section : int or None
        Rows of a section, a multiple of x; None: by the thesis' rule.
    """

    x: int = 32
    pivoting: str = "full"
    pivot_tolerance: float = 1e-5
    form: str = "blocked"
    section: int | None = None

    cost = "2/3 n³, in products; 4 launches a column"

    def __post_init__(self):
        check_x(self, (8, 16, 32))
        check_pivoting(self)
        check_not_negative(self, "pivot_tolerance")
        check_section(self)
        if self.form not in FORMS:
            raise InputError(f"PCM(form={self.form!r}): expected one of {', '.join(FORMS)}")

    def decompose(self, work):
        kernels, swaps, tiles = work.kernels("parallel_crout"), work.kernels("pivoting"), work.tiles(self.x)
        lu, row, column, n, x, tolerance = work.lu, work.row, work.column, work.n, self.x, float(threshold(self))

        def part(length):
            return tiles[:-(-length // x) + 1]

        def panel(f, g):
            for j in range(f, g):
                kernels.column_step(lu, row, column, j, f, x, x * x, n, part(n - j))
                if self.pivoting != "none":
                    swaps.pick_pivot(lu, row, column, j, tolerance, n, work.pivots)
                    swaps.swap_rows(lu, row, column, j, n, work.pivots)
                kernels.row_step(lu, row, column, j, f, j + 1, x, x * x, g, part(g - j - 1))

        def right(f, g, left, end):
            for j in range(f, g):
                kernels.row_step(lu, row, column, j, f, left, x, x * x, end, part(end - left))

        section, front = (n, n) if self.form == "plain" else (section_size(n, x, self.section), x)
        by_sections(work, section, front, panel, right)
        return section, None
