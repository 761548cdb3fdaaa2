"""ICM by fronts: finished sections and fronts as matrix products, and iterations only on entries that are not final.

A front is x rows and columns. One kernel (`settle`) iterates its diagonal block in shared memory, up to a bad element.
Then it iterates every row below on its own, in the columns that the diagonal block has completed. The bad element gets
a pivot, and so on until no bad element is left. A second kernel (`rest`) iterates the rows below in the columns behind
the last bad element, with the whole device. The part to the right is iterated column by column. Within a block, a row
or a column the iteration tracks the final entries, and computes only the entries behind them: a dense front takes 2 x
iterations of x³/6 operations on average.

Matrices of one size are decomposed together, with a cluster of blocks for each. Each block iterates the diagonal block
itself, so that the blocks exchange only candidates for a pivot. The host reads nothing until the end.
"""
import numpy as np

from swell.dense.blocked import by_sections, cluster, parts


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
    state : int32 device array, shape (count,)
        For each matrix the columns of the front that are complete in the rows below its diagonal block.
    diagonal : int32 device array, shape (sections, count)
        Iterations of the diagonal blocks.
    below, right_of : int32 device arrays, shape (sections, tiles)
        Iterations of the slowest line in each tile of x lines, of all matrices.
    """

    def __init__(self, settings, work, section):
        self.settings, self.work, self.section = settings, work, section
        self.kernels, self.tiles = work.kernels("fronts"), work.tiles(settings.x)
        self.own = work.estimate is None
        self.estimate = work.lu if self.own else work.estimate
        self.state = work.space.empty(work.count, np.int32)
        shape = -(-work.n // section), self.tiles.size - 1
        self.diagonal = work.space.xp.zeros((shape[0], work.count), np.int32)
        self.below, self.right_of = (work.space.xp.zeros(shape, np.int32) for _ in range(2))

    def run(self):
        """Decompose ``work.matrix`` in place. Returns the iterations of every section, an array for each matrix."""
        by_sections(self.work, self.section, self.settings.x, self.panel, self.right)
        return self._iterations()

    def panel(self, f, g):
        """Complete columns f to g of L, and the block of U in rows and columns f to g, in place, with pivots and
        swaps."""
        work, settings, kernels = self.work, self.settings, self.kernels
        n, x, tolerance = work.n, settings.x, float(settings.tolerance)
        place, d = (work.lu, self.estimate, work.row, work.column, f, g - f), f // self.section
        blocks, shared, cluster_blocks = cluster(work, self.tiles, n - g, x)
        kernels.settle(*place, settings.pivoting != "none", self.own, x, x * x, shared, cluster_blocks, tolerance,
                       *settings.bounds, n, self.state, work.pivots, self.diagonal[d], self.below[d], blocks)
        if g < n:
            kernels.rest(*place, x, x * x, tolerance, n, self.state, self.below[d],
                         parts(self.tiles, n - g, x, work.count))

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
        diagonal = self.work.space.to_host(self.diagonal)  # sync
        below, right = (self.work.space.to_host(counts).reshape(len(counts), count, -1)
                        for counts in (self.below, self.right_of))
        starts = range(0, below.shape[2], per)
        below, right = (np.maximum.reduceat(counts, starts, axis=2) for counts in (below, right))
        return [np.tril(below[:, k].T, -1) + np.triu(right[:, k], 1) + np.diag(diagonal[:, k]) for k in range(count)]
