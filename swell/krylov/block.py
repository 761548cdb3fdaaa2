"""What block methods share: k right-hand sides whose vectors span one Krylov space.

A method sees vectors as `Columns` where it multiplies by A or M, and as arrays of shape (k, n) where it mixes them; one
right-hand side is a block of one. The judge has a record for each right-hand side. One that has ended keeps its x, and
the iteration goes on with all vectors of the block until every right-hand side has ended.
"""
from __future__ import annotations

import numpy as np

from swell.core.columns import plain
from swell.core.slots import Norms
from swell.krylov.method import Iteration

MAX_SLICES, MIN_ROWS = 256, 256  # most slices of the rows, and fewest rows in a slice


def side_of(count: int) -> int:
    """Return the power of two that is not below ``count``: GPU kernels are compiled for these widths."""
    return 1 << (count - 1).bit_length()


class BlockIteration(Iteration):
    """An iteration whose kernels mix k vectors.

    Attributes
    ----------
    count, side : int
        k, and the power of two that is not below it.
    rows : int64 array
        Bounds of the slices of rows, each of which leaves its own sums.
    height : int
        Threads of a block on a GPU.
    """

    height = 256

    def __init__(self, system, stem):
        super().__init__(system)
        self.count, self.side = self.space.columns, side_of(self.space.columns)
        slices = min(max(-(-self.n // MIN_ROWS), 1), MAX_SLICES)
        bounds = np.linspace(0, self.n, slices + 1).astype(np.int64) // 32 * 32
        bounds[-1] = self.n
        self.rows = self.space.from_host(bounds)
        self.w = self.weights if self.weights.size else self.small("no weights", 0, "float32")
        self.norm2 = self.scalars("norm2", len(Norms))
        self.step = self.loop.block_kernels("swell.krylov", stem, self.dtype)
        self.inner = self.loop.block_kernels("swell.krylov", "gram", self.dtype)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def small(self, name, shape, dtype=None):
        """Return the work array ``name`` that all right-hand sides share, of this shape."""
        return self.workspace.shared(name, shape, dtype or self.scalar)

    def of_slices(self, name, *shape):
        """Return a work array for the sums of every slice, each of this shape."""
        return self.small(name, (self.rows.size - 1, *shape))

    def gram(self, left, right, out):
        """Write leftᴴ right of every slice to ``out``, for two blocks."""
        self.inner.gram(left, right, out, self.rows, self.count, self.height)

    def block(self, vectors):
        """Return the array of shape (k, n) behind ``vectors``, which are `Columns` or one vector."""
        return plain(vectors).reshape(self.count, self.b.size)
