"""ICM by fronts: finished sections and fronts as matrix products, and iterations only where something has not settled.

A front is x rows and columns. Its diagonal block is iterated by one block of threads in shared memory, up to a bad
element; then every row below it on its own, from the columns that the diagonal block has completed; a pivot, and the
rest anew. The part to the right is iterated column by column. Within a block, a row or a column the iteration knows how
far all is final, and computes only what comes after: a dense front takes 2 x iterations of x³/6 operations on average.

A host read for every front and pivot: how far the diagonal block came.
"""
from __future__ import annotations

import numpy as np

from swell.dense.blocked import by_sections


class Fronts:
    """One decomposition.

    Parameters
    ----------
    settings : ICM
    work : Work
        With ``estimate``, an array like ``work.lu``, where the user has one.
    section : int
    """

    def __init__(self, settings, work, section):
        self.settings, self.work, self.section = settings, work, section
        self.kernels, self.swaps = work.kernels("fronts"), work.kernels("pivoting")
        self.own = work.estimate is None
        self.estimate = work.lu if self.own else work.estimate
        sections, tiles = -(-work.n // section), -(-work.n // settings.x)
        self.status = work.space.empty(2, np.int32)
        self.diagonal = np.zeros(sections, np.int64)
        self.below, self.right_of = (work.space.xp.zeros((sections, tiles + 1), np.int32) for _ in range(2))

    def run(self):
        """Decompose; the iterations of every section."""
        by_sections(self.work, self.section, self.settings.x, self.panel, self.right)
        return self._iterations()

    def panel(self, f, g):
        """Columns f to g of L, and U between them."""
        work, settings, size = self.work, self.settings, g - f
        lower, upper = settings.bounds
        place = work.lu, self.estimate, work.row, work.column, f, size
        d, x = f // self.section, settings.x
        done = search = front = 0
        while done < size:
            self.kernels.settle_diagonal(*place, front, search, x, settings.tolerance, lower, upper, self.status)
            iterations, bad = (int(k) for k in work.space.to_host(self.status))  # sync
            self.diagonal[d] += iterations
            end = min(bad + 1, size)
            if g < work.n:
                counts = self.below[d, g // x:]
                self.kernels.settle_lower(*place, done, end, x, x * x, settings.tolerance, work.n, counts)
            if bad < size and f + bad < work.n - 1 and settings.pivoting != "none":
                self._pivot(f + bad)
            # Columns up to the bad one are final, and rows before it.
            done = search = end
            front = 2 * bad + 1

    def _pivot(self, j):
        """Swap row j with that of the largest in its column."""
        work = self.work
        self.swaps.pick_pivot(work.lu, work.row, work.column, j, np.inf, work.n, work.pivots)
        self.swaps.swap_rows(work.lu, work.row, work.column, j, work.n, work.pivots)
        if not self.own:
            self.swaps.swap_rows(self.estimate, work.row, work.column, j, work.n, work.pivots)

    def right(self, f, g, left, end):
        """Rows f to g of U, columns left to end."""
        work, settings = self.work, self.settings
        x, tiles = settings.x, -(-end // settings.x)
        counts = self.right_of[f // self.section, left // x:tiles + 1]
        self.kernels.settle_right(work.lu, self.estimate, work.row, work.column, f, g - f, left, x, x * x,
                                  settings.tolerance, end, counts)

    def _iterations(self):
        """Of every section: of the diagonal ones all, of the others those of the slowest tile."""
        host, per = self.work.space.to_host, self.section // self.settings.x
        starts = range(0, self.below.shape[1] - 1, per)
        below = np.maximum.reduceat(host(self.below)[:, :-1], starts, axis=1)
        right = np.maximum.reduceat(host(self.right_of)[:, :-1], starts, axis=1)
        return np.tril(below.T, -1) + np.triu(right, 1) + np.diag(self.diagonal)
