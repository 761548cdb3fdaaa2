"""Incomplete LU factorisation of blocks on a given pattern, by four algorithms; see block_ilu0.py.

They are the algorithms of lu_factorisation.py with dense blocks as entries. Each diagonal block is inverted with
partial pivoting, and the inverses are stored beside the factor.
"""
from __future__ import annotations

import numpy as np

from swell.formats.bsr import UNROLLED
from swell.formats.csr import CSRMatrix
from swell.preconditioners.factorisation import Factorisation
from swell.preconditioners.level_schedule import Schedule
from swell.preconditioners.lu_factorisation import TINY, ByColumns, levels, relative_change

APART = 16              # words between the work arrays of two threads, so that they share no cache line


class BlockLUFactorisation(Factorisation):
    """Base of the four algorithms. Arguments of a call: A's blocks on the pattern, the largest modulus of each row, and
    the replacement of a tiny pivot, as a fraction of it."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, "block_ilu", TINY)
        self.diagonal, self.block = diagonal, factor.block
        s = factor.block
        self.size = (0,) * (s if s <= UNROLLED else 0) if self.space.name == "cpu" else s

    def arrays(self, data, scale):
        """Copy A's blocks ``data`` into the factor, where the kernels overwrite them by L and U. Returns the kernels'
        first arguments, a tuple. ``scale`` has the largest modulus of each row."""
        T = self.factor
        T.data[...] = data
        return T.indptr, T.indices, self.diagonal, scale, T.data, T.inverse, self.size


class BlockSequential(BlockLUFactorisation):
    """Factors one block row after the other, on a CPU."""

    def factorise(self, data, scale, replacement):
        work, order = np.empty(self.block**2, data.dtype), np.empty(self.block, np.int64)
        self.kernels.factor(*self.arrays(data, scale), np.zeros(self.diagonal.size, np.int64), work, order, self.tiny,
                            replacement, self.bad)


class BlockThreaded(BlockLUFactorisation):
    """Factors level by level; a CPU's threads share the block rows of a level, each with its own work arrays."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, diagonal)
        self.sequence, self.bounds = levels(factor.indptr, factor.indices, diagonal)

    def factorise(self, data, scale, replacement):
        from numba import get_num_threads
        threads, s = get_num_threads(), self.block
        work, order = np.empty((threads, s * s + APART), data.dtype), np.empty((threads, s + APART), np.int64)
        places = np.zeros((threads, self.diagonal.size), np.int64)
        self.kernels.factor_levels(*self.arrays(data, scale), places, work, order, self.sequence, self.bounds,
                                   self.tiny, replacement, self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes + self.bounds.nbytes


class BlockScheduled(BlockLUFactorisation):
    """Factors in level order on a GPU: each block row starts as soon as the block rows that it needs are done."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, diagonal)
        xp, count = self.space.xp, diagonal.size
        pattern = CSRMatrix(self.space, factor.indptr, factor.indices, xp.empty(factor.indices.size, np.float32),
                            (count, count))
        self.sequence = Schedule(pattern, True).sequence.astype(factor.indptr.dtype)

    def factorise(self, data, scale, replacement):
        xp = self.space.xp
        done, drawn = xp.zeros(self.diagonal.size, np.int32), xp.zeros(1, np.int32)
        self.kernels.factor_rows(*self.arrays(data, scale), done, self.sequence, drawn, self.tiny, replacement,
                                 self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes


class BlockFixedPoint(BlockLUFactorisation):
    """Chow and Patel's sweeps. They start from A's triangles, the lower one times the inverse diagonal blocks."""

    def __init__(self, factor, diagonal, sweeps):
        super().__init__(factor, diagonal)
        self.sweeps, self.columns = sweeps, ByColumns(factor.indptr, factor.indices, self.space)
        if self.space.name == "cpu":
            self.size = ()                       # compiled once for all sizes

    def factorise(self, data, scale, replacement):
        xp, T, kernels = self.space.xp, self.factor, self.kernels

        def sweep(old, fresh):
            kernels.fixed_point(T.indptr, T.indices, *self.columns.arrays, data, T.inverse, old, fresh, self.size)
            kernels.invert_blocks(self.diagonal, scale, fresh, T.inverse, self.size, self.tiny, replacement, self.bad)

        start = data.copy()
        kernels.invert_blocks(self.diagonal, scale, start, T.inverse, self.size, self.tiny, 1.0, self.bad)
        lower = xp.flatnonzero(T.indices < self.columns.entry_rows)
        start[lower] = xp.matmul(start[lower], T.inverse[T.indices[lower]])
        self.change = relative_change(self.space, *self.iterate(self.sweeps, start, sweep))

    @property
    def nbytes(self):
        return self.columns.nbytes
