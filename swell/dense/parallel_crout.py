"""PCM_x(PP): Crout's method with the elements of a column, and of a row, in parallel. Section 2.2.2 and Appendix B of
the thesis.

For every j: column j of L (1.11), its pivot by a parallel reduction (2.5), the swap, row j of U (1.12); no host read.

``form="plain"`` is the thesis' form: whole sums for every element. It reads n³/3 words, each used at most once, and
makes 4 launches a column. ``form="blocked"`` is the default: matrix products subtract the contributions of finished
fronts of x columns (blocked.py). One launch completes a front: the blocks of a cluster keep its rows in shared memory,
and exchange a candidate each for every pivot (core/kernels/front.cuh). Neither form reads on the host.

Storage: the factors, and A.

Differs from the thesis: pivots are chosen on the device. In the plain form blocks of x² threads share the terms of a
sum (a warp's lanes read neighbours); the thesis gives every element one thread. By default every column gets a pivot.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import one_of, without_effect
from swell.dense.blocked import by_sections, check_section, cluster, parts, section_size
from swell.dense.decomposer import Decomposer, check_order, check_pivoting, check_x, threshold

FORMS = ("blocked", "plain")
THREADS = 512           # threads of a block that completes a front
BESIDE = 64             # columns of U that a block completes beside a front


@dataclass(frozen=True)
class PCM(Decomposer):
    """Crout's method, a column and a row at a time in parallel.

    Attributes
    ----------
    x : {8, 16, 32}
        Width of a front; blocks have x² threads.
    pivoting : {"full", "conditional", "none"}
        Choose a pivot in every column; only in columns with |l_jj| <= ``pivot_tolerance``; in none.
    pivot_tolerance : float
        Absolute bound of conditional pivoting.
    form : {"blocked", "plain"}
        "blocked": subtract the contributions of finished steps by matrix products; "plain": compute whole sums.
    section : int or None
        Rows of a section, a multiple of x; None: min(max(n / 10, 256), 1024), as in the thesis.
    order : {"C", "F"}
        Memory order of the factors: "C", rows contiguous, or "F", columns contiguous. A matrix in this order is copied
        as it lies, without being transposed.
    """

    x: int = 32
    pivoting: str = "full"
    pivot_tolerance: float = 1e-5
    form: str = "blocked"
    section: int | None = None
    order: str = "C"

    cost = "2/3 n³, in products; n² x / 2 in the fronts"

    def __post_init__(self):
        check_x(self, (8, 16, 32))
        check_pivoting(self, "pivot_tolerance")
        check_section(self)
        check_order(self)
        one_of(self, "form", FORMS)
        if self.form == "plain":
            without_effect(self, "with form='plain'", "give form='blocked'", "section")

    def supports_batches(self, space):
        return self.form == "blocked"

    def decompose(self, work):
        section, x = section_size(work.n, self.x, self.section), self.x
        if self.form == "plain":
            self._columns(work)
            return work.n, None
        kernels, tiles, tolerance = work.kernels("parallel_crout"), work.tiles(x), float(threshold(self))
        place = work.lu, work.row, work.column

        def front(f, g):
            blocks, shared, of_a_matrix = cluster(work, tiles, work.n - g, x)
            kernels.front(*place, f, g - f, self.pivoting != "none", x, THREADS, shared, of_a_matrix, tolerance, work.n,
                          work.pivots, blocks)

        def right(f, g, left, end):
            kernels.beside(*place, f, g - f, left, end, x, BESIDE, work.n, parts(tiles, end - left, BESIDE, work.count))

        by_sections(work, section, x, front, right)
        return section, None

    def _columns(self, work):
        """Decompose ``work.matrix`` in place by the plain form: whole columns and rows, one after the other."""
        kernels, swaps, tiles = work.kernels("parallel_crout"), work.kernels("pivoting"), work.tiles(self.x)
        x, n, tolerance, place = self.x, work.n, float(threshold(self)), (work.lu, work.row, work.column)
        for j in range(n):
            kernels.column_step(*place, j, 0, x, x * x, n, parts(tiles, n - j, x))
            if self.pivoting != "none":
                swaps.pick_pivot(*place, j, tolerance, n, work.pivots)
                swaps.swap_rows(*place, j, n, work.pivots)
            kernels.row_step(*place, j, 0, j + 1, x, x * x, n, parts(tiles, n - j - 1, x))
