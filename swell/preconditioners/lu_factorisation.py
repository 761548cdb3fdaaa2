"""Incomplete LU factorisation on a given pattern, of single entries and of blocks, by four algorithms; see ilu.py.

Row by row (IKJ, Saad, Iterative Methods, algorithm 10.3) a row costs its multiplications, without a search. By levels,
on threads and on a GPU, rows are merged instead, so that no row needs a work vector. A fixed-point sweep reads, for
each entry, its row of L and its column of U.

With dense blocks as entries, each diagonal block is inverted with partial pivoting, and its inverse overwrites it. At
the end U's strict blocks are multiplied by the inverses of their columns' diagonal blocks, for the solves
(block_triangular.py).

On a CPU the first two give the same bits, so ``factor="exact"`` takes the faster one (`algorithm`). The rows of a level
lie far apart in memory: by levels the work takes about 1 + 4/s times as long, with s the rows of a block.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swell.core.cpu import SERIAL
from swell.core.library import _native, native_kernels
from swell.core.space import accumulator
from swell.formats.matrix import rows_of
from swell.preconditioners.exact import halves
from swell.preconditioners.incomplete import Factorisation
from swell.preconditioners.level_schedule import Schedule

MIN_PIVOT = 100             # a pivot below 100 ε times its row's largest entry is a breakdown


class LUFactorisation(Factorisation):
    """Base of the four algorithms for single entries. Arguments of a call: A's entries on the pattern, the largest
    modulus of each row, and the replacement of a tiny pivot, as a fraction of it.

    ``factor``: the CSRMatrix of L and U to be written. ``diagonal``: the places of its diagonal entries."""

    _kernels = "ilu_rows"

    def __init__(self, factor, diagonal):
        super().__init__(factor, self._kernels, MIN_PIVOT)
        self.diagonal, self.rows, self.block = diagonal, diagonal.size, 1
        self.pattern = factor.indptr, factor.indices, diagonal


class Sequential(LUFactorisation):
    """Factors row by row, on a CPU. Two halves that are independent except at their end run on two threads."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, diagonal)
        n = diagonal.size                        # columns ascend: a row's first entry is the earliest row it needs
        crossing = np.flatnonzero(factor.indices[factor.indptr[n // 2:-1]] < n // 2)
        self.cuts = halves(n // 2 + int(crossing[0]) if crossing.size else n, n, n // 2)

    def factorise(self, data, scale, replacement):
        n = self.diagonal.size
        arrays = *self.pattern, data, scale, self.factor.data, np.empty(n, data.dtype)
        if self.cuts is None:
            self.kernels.factor(*arrays, np.zeros(n, data.dtype), self.tiny, replacement, self.bad)
        else:
            self.kernels.factor_halves(*arrays, self.cuts, np.zeros((2, n), data.dtype), self.tiny, replacement,
                                       self.bad)


class Threaded(LUFactorisation):
    """Factors level by level; a CPU's threads share the rows of a level."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, diagonal)
        self.sequence, self.bounds = levels(*self.pattern)

    def factorise(self, data, scale, replacement):
        self.factor.data[...] = data
        inverse = np.empty(scale.size, data.dtype)
        self.kernels.factor_levels(*self.pattern, scale, self.factor.data, inverse, self.sequence, self.bounds,
                                   self.tiny, replacement, self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes + self.bounds.nbytes


def levels(indptr, indices, diagonal):
    """Return int arrays (sequence, bounds) for a factorisation on a CPU: level l has the rows
    sequence[bounds[l]:bounds[l + 1]], which do not need one another.

    ``indptr`` and ``indices`` are the pattern of L and U, ``diagonal`` the places of its diagonal entries."""
    depth = np.empty(diagonal.size, np.int64)
    native_kernels("swell.preconditioners", "ilu_rows").find_depths(indptr, indices, diagonal, depth)
    return np.argsort(depth, kind="stable").astype(indptr.dtype), np.concatenate([[0], np.cumsum(np.bincount(depth))])


class Scheduled(LUFactorisation):
    """Factors in level order on a GPU: each row starts as soon as the rows that it needs are done."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, diagonal)
        self.sequence = Schedule(factor, True).sequence

    def factorise(self, data, scale, replacement):
        xp = self.space.xp
        self.factor.data[...] = data
        done, drawn = xp.zeros(self.diagonal.size, np.int32), xp.zeros(1, np.int32)
        self.kernels.factor_rows(*self.pattern, scale, self.factor.data, done, self.sequence, drawn, self.tiny,
                                 replacement, self.bad)

    @property
    def nbytes(self):
        return self.sequence.nbytes


class ByColumns:
    """The entries of a pattern column by column, for fixed-point sweeps.

    Parameters
    ----------
    indptr, indices : int arrays
        CSR form of a square pattern, of entries or blocks.
    """

    def __init__(self, indptr, indices, space):
        xp, index = space.xp, indptr.dtype
        self.entry_rows = rows_of(indptr, indices.size, xp).astype(index)
        self.places = xp.argsort(indices, kind="stable").astype(index)
        self.column_rows = self.entry_rows[self.places]
        self.starts = space.row_pointers(indices, indptr.size - 1, index)

    @property
    def arrays(self):
        """The kernels' arguments: the row of each entry, where each column begins in the next two arrays, the rows of
        the columns' entries, and their places in CSR."""
        return self.entry_rows, self.starts, self.column_rows, self.places

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self.arrays)


def relative_change(space, old, fresh):
    """Return ‖fresh − old‖ / ‖old‖ in the 2-norm over all entries of two arrays of ``space``, a float; infinite if
    there is a NaN."""
    old, fresh = old.reshape(-1), fresh.reshape(-1)
    norms = space.empty(2, accumulator(old.dtype))
    space.norm(old, norms)
    space.norm(fresh - old, norms[1:])
    size, change = space.to_host(norms).real.tolist()  # sync
    change = change / size if size else 0.0
    return change if change == change else float("inf")


class FixedPoint(LUFactorisation):
    """Chow and Patel's sweeps. They start from the triangles of A, the columns of the lower one divided by aⱼⱼ."""

    _kernels = "ilu"

    def __init__(self, factor, diagonal, sweeps):
        super().__init__(factor, diagonal)
        self.sweeps, self.columns = sweeps, ByColumns(factor.indptr, factor.indices, self.space)

    def factorise(self, data, scale, replacement):
        xp = self.space.xp
        d = data[self.diagonal]
        d = xp.where(abs(d) > self.tiny * scale, d, scale.astype(d.dtype))
        indices = self.pattern[1]
        start = xp.where(indices < self.columns.entry_rows, data / d[indices], data)
        start[self.diagonal] = d
        self.change = relative_change(self.space, *self.iterate(
            self.sweeps, start, lambda old, fresh: self.kernels.fixed_point(
                *self.pattern, *self.columns.arrays, data, scale, old, fresh, self.tiny, replacement, self.bad)))

    @property
    def nbytes(self):
        return self.columns.nbytes


class BlockLUFactorisation(Factorisation):
    """Base of the four algorithms for blocks. Arguments as for `LUFactorisation`, with A's blocks in ``factor.data``
    itself: L and U overwrite them. ``factor``: a BlockFactor."""

    def __init__(self, factor):
        super().__init__(factor, "block_ilu", MIN_PIVOT)
        self.rows, self.block = factor.count, factor.block

    @property
    def arrays(self):
        """The kernels' first arguments."""
        T = self.factor
        return T.lower, T.upper, T.indices, T.data, self.block, T.below

    def factorise(self, data, scale, replacement):
        self.eliminate(scale, replacement)
        self.factor.scale_columns()

    @abstractmethod
    def eliminate(self, scale, replacement):
        """Overwrite A's blocks by L, the inverse diagonal blocks and U."""


class BlockSequential(BlockLUFactorisation):
    """Factors one block row after the other, on a CPU."""

    cuts = None

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
        self.entry_rows = factor.rows().astype(columns.dtype)
        self.columns.places += columns.dtype.type(factor.below + factor.diagonals)

    def eliminate(self, scale, replacement):
        xp, T, kernels, columns = self.space.xp, self.factor, self.kernels, self.columns
        data, inverse = T.data.copy(), xp.empty((T.diagonals, self.block, self.block), T.dtype)
        by_columns = columns.starts, columns.column_rows, columns.places

        def sweep(old, fresh):
            kernels.fixed_point(T.lower, T.indices, self.entry_rows, *by_columns, data, inverse, old, fresh, self.block)
            kernels.invert_blocks(fresh, inverse, self.block, T.below, scale, self.tiny, replacement, self.bad)

        start = data.copy()
        kernels.invert_blocks(start, inverse, self.block, T.below, scale, self.tiny, 1.0, self.bad)
        start[:T.below] = xp.matmul(start[:T.below], inverse[T.indices[:T.below]])
        self.change = relative_change(self.space, *self.iterate(self.sweeps, start, sweep))
        T.inverse[...] = inverse

    @property
    def nbytes(self):
        return self.entry_rows.nbytes + self.columns.nbytes


class Family(NamedTuple):
    """The algorithms for one kind of entries."""

    sequential: Callable
    threaded: Callable
    scheduled: Callable
    fixed_point: Callable


ENTRIES = Family(Sequential, Threaded, Scheduled, FixedPoint)
BLOCKS = Family(BlockSequential, BlockThreaded, BlockScheduled, BlockFixedPoint)


def algorithm(family, settings, factor, *diagonal):
    """Return the algorithm of a `Family` that the settings name for ``factor``; "exact" is the fastest exact one.

    On a CPU that is by rows in two halves if there are, else by levels if they pay, else row by row. ``diagonal``: the
    second argument of algorithms for single entries."""
    if settings.factor == "sweeps":
        return family.fixed_point(factor, *diagonal, settings.factor_sweeps)
    if factor.space.name != "cpu":
        return family.scheduled(factor, *diagonal)
    if settings.factor != "levels":
        by_rows = family.sequential(factor, *diagonal)
        if by_rows.cuts is not None or not levels_pay(by_rows.rows, by_rows.block):
            return by_rows
    return family.threaded(factor, *diagonal)


def levels_pay(rows, size):
    """True if this CPU has enough threads to factor ``rows`` block rows of ``size`` rows each by levels.

    By levels the work takes longer, as measured on two cores: 4 times for single entries, 2.4 to 3 for blocks of 3, 2
    for 4, 1.3 to 1.5 for 8. A quarter is added for the waits at the ends of levels.
    """
    return rows * size >= SERIAL and _native.threads() > 1.25 * (1 + 4 / size)
