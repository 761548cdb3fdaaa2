"""ICM by fronts: finished sections and fronts as matrix products, and iterations only on entries that are not final.

A front is x rows and columns. One block of threads iterates its diagonal block in shared memory, up to a bad element.
Then every row below it is iterated on its own, in the columns that the diagonal block has completed. The bad element
gets a pivot, and the rest of the front follows in the same way. The part to the right is iterated column by column.
Within a block, a row or a column the iteration tracks the final entries, and computes only the entries behind them: a
dense front takes 2 x iterations of x³/6 operations on average.

Matrices of one size are decomposed together, with a block of threads for each diagonal block. Its progress is stored on
the device, where later kernels read it. The host reads the progress of all matrices once for every front and pivot, to
decide whether to continue. Matrices without a bad element wait for the others.
"""
from __future__ import annotations

import numpy as np

from swell.dense.blocked import by_sections, parts

THREADS = 1024          # threads of the block that searches for a pivot


class Fronts:
    """One decomposition by fronts.

    Parameters
    ----------
    settings : ICM
    work : Work
        Its ``estimate`` is None, or the user's initial estimate, an array like ``work.lu``.
    section : int
        Rows of a section.

    Attributes
    ----------
    state : int32 device array, shape (3 count,)
        For the diagonal block of each matrix: the columns that were complete before the last pass, the bad element at
        which the pass ended (or the block's size), and the iterations of the pass.
    """

    def __init__(self, settings, work, section):
        self.settings, self.work, self.section = settings, work, section
        self.kernels, self.tiles = work.kernels("fronts"), work.tiles(settings.x)
        self.own = work.estimate is None
        self.estimate = work.lu if self.own else work.estimate
        self.state = work.space.empty(3 * work.count, np.int32)
        shape = -(-work.n // section), self.tiles.size - 1
        self.diagonal = np.zeros((work.count, shape[0]), np.int64)
        self.below, self.right_of = (work.space.xp.zeros(shape, np.int32) for _ in range(2))

    def run(self):
        """Decompose ``work.matrix`` in place. Returns the iterations of every section, an array for each matrix."""
        by_sections(self.work, self.section, self.settings.x, self.panel, self.right)
        return self._iterations()

    def panel(self, f, g):
        """Complete columns f to g of L, and the block of U in rows and columns f to g, in place, with pivots and
        swaps."""
        work, settings, kernels, size = self.work, self.settings, self.kernels, g - f
        n, x, tolerance, (lower, upper) = work.n, settings.x, float(settings.tolerance), settings.bounds
        place = work.lu, self.estimate, work.row, work.column, f, size
        tiles, d, again = parts(self.tiles, n - g, x, work.count), f // self.section, 0
        while True:
            kernels.settle_diagonal(*place, again, x, x * x, tolerance, lower, upper, n, self.state, work.matrices)
            kernels.settle_lower(*place, x, x * x, tolerance, n, self.state, self.below[d], tiles)
            _, bad, iterations = work.space.to_host(self.state).reshape(-1, 3).T  # sync
            self.diagonal[:, d] += iterations
            if settings.pivoting != "none" and (bad < size).any():
                kernels.pivot(*place, THREADS, self.own, n, self.state, work.pivots, work.matrices)
            if (bad >= size - 1).all():
                return
            again = 1

    def right(self, f, g, left, end):
        """Complete rows f to g of U, columns ``left`` to ``end``, in place."""
        work, settings = self.work, self.settings
        x, counts = settings.x, self.right_of[f // self.section]
        self.kernels.settle_right(work.lu, self.estimate, work.row, work.column, f, g - f, left, end, x, x * x,
                                  float(settings.tolerance), work.n, counts,
                                  parts(self.tiles, end - left, x, work.count))

    def _iterations(self):
        """Return each matrix's array of iterations: all of a diagonal section, the slowest tile's of another one."""
        per, count = self.section // self.settings.x, self.work.count
        below, right = (self.work.space.to_host(counts).reshape(len(counts), count, -1)
                        for counts in (self.below, self.right_of))
        starts = range(0, below.shape[2], per)
        below, right = (np.maximum.reduceat(counts, starts, axis=2) for counts in (below, right))
        return [np.tril(below[:, k].T, -1) + np.triu(right[:, k], 1) + np.diag(self.diagonal[k]) for k in range(count)]
