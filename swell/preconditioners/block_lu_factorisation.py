"""Incomplete LU factorisation of blocks on a given pattern, by four algorithms; see block_ilu0.py.

They are the algorithms of lu_factorisation.py with dense blocks as entries. Each diagonal block is inverted with
partial pivoting, and its inverse overwrites it. At the end U's strict blocks are multiplied by the inverses of their
columns' diagonal blocks, for the solves (block_triangular.py).
"""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from swell.preconditioners.factorisation import Factorisation
from swell.preconditioners.level_schedule import Schedule
from swell.preconditioners.lu_factorisation import TINY, ByColumns, levels, relative_change


class BlockLUFactorisation(Factorisation):
    """Base of the four algorithms. ``factor.data`` holds A's blocks before a call, L and U after it. Arguments of a
    call: the largest modulus of each row, in elimination order, and the replacement of a tiny pivot, as a fraction of
    it."""

    def __init__(self, factor):
        super().__init__(factor, "block_ilu", TINY)
        self.block = factor.block

    @property
    def arrays(self):
        """The kernels' first arguments."""
        T = self.factor
        return T.lower, T.upper, T.indices, T.data, self.block, T.below

    def factorise(self, scale, replacement):
        self.eliminate(scale, replacement)
        T = self.factor
        first = T.below + T.diagonals
        self.kernels.scale_columns(T.indices, T.data, self.block, T.below, first)

    @abstractmethod
    def eliminate(self, scale, replacement):
        """Overwrite A's blocks by L, the inverse diagonal blocks and U."""


class BlockSequential(BlockLUFactorisation):
    """Factors one block row after the other, on a CPU."""

    def eliminate(self, scale, replacement):
        self.kernels.factor(*self.arrays, scale, self.tiny, replacement, self.bad)


class BlockThreaded(BlockLUFactorisation):
    """Factors level by level; a CPU's threads share the block rows of a level."""

    def __init__(self, factor):
        super().__init__(factor)
        self.sequence, self.bounds = levels(factor.lower, factor.indices, factor.lower[1:])

    def eliminate(self, scale, replacement):
        self.kernels.factor_levels(*self.arrays, scale, self.sequence, self.bounds, self.tiny, replacement, self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes + self.bounds.nbytes


class BlockScheduled(BlockLUFactorisation):
    """Factors in level order on a GPU: each block row starts as soon as the block rows that it needs are done."""

    def __init__(self, factor):
        super().__init__(factor)
        self.sequence = Schedule(factor.pattern(True), True).sequence.astype(factor.lower.dtype, copy=False)

    def eliminate(self, scale, replacement):
        xp = self.space.xp
        done, drawn = xp.zeros(self.factor.count, np.int32), xp.zeros(1, np.int32)
        self.kernels.factor_rows(*self.arrays, scale, done, self.sequence, drawn, self.tiny, replacement, self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes


class BlockFixedPoint(BlockLUFactorisation):
    """Chow and Patel's sweeps. They start from A's triangles, the lower one times the inverse diagonal blocks. A call
    needs A's blocks, two iterates and the inverses beside the factor."""

    def __init__(self, factor, sweeps):
        super().__init__(factor)
        ptr, columns, _ = factor.triangle(False)
        self.sweeps, self.columns = sweeps, ByColumns(ptr, columns, self.space)
        self.rows = factor.rows().astype(columns.dtype)
        self.columns.places += columns.dtype.type(factor.below + factor.diagonals)

    def eliminate(self, scale, replacement):
        xp, T, kernels, columns = self.space.xp, self.factor, self.kernels, self.columns
        data, inverse = T.data.copy(), xp.empty((T.diagonals, self.block, self.block), T.dtype)
        by_columns = columns.starts, columns.column_rows, columns.places

        def sweep(old, fresh):
            kernels.fixed_point(T.lower, T.indices, self.rows, *by_columns, data, inverse, old, fresh, self.block)
            kernels.invert_blocks(fresh, inverse, self.block, T.below, scale, self.tiny, replacement, self.bad)

        start = data.copy()
        kernels.invert_blocks(start, inverse, self.block, T.below, scale, self.tiny, 1.0, self.bad)
        start[:T.below] = xp.matmul(start[:T.below], inverse[T.indices[:T.below]])
        self.change = relative_change(self.space, *self.iterate(self.sweeps, start, sweep))
        T.inverse[...] = inverse

    @property
    def nbytes(self):
        return self.rows.nbytes + self.columns.nbytes
