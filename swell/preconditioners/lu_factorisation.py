"""Incomplete LU factorisation of single entries on a given pattern, by four algorithms; see incomplete_lu.py.

Row by row (IKJ, Saad, Iterative Methods, algorithm 10.3) a row costs its multiplications, without a search. By levels,
on threads and on a GPU, rows are merged instead, so that no row needs a work vector. A fixed-point sweep reads, for
each entry, its row of L and its column of U.

On a CPU the first two give the same bits, so ``factor="exact"`` takes the faster one (``fastest_exact``). The rows of a
level lie far apart in memory: by levels the work takes about 1 + 4/s times as long, with s the rows of a block.
"""
from __future__ import annotations

import numpy as np

from swell.core.cpu import SERIAL
from swell.core.library import _native, native_kernels
from swell.core.space import accumulator
from swell.formats.matrix import rows_of
from swell.preconditioners.exact import halves
from swell.preconditioners.factorisation import Factorisation
from swell.preconditioners.level_schedule import Schedule

TINY = 100                  # a pivot below 100 ε times its row's largest entry is a breakdown


class LUFactorisation(Factorisation):
    """Base of the four algorithms. Arguments of a call: A's entries on the pattern, the largest modulus of each row,
    and the replacement of a tiny pivot, as a fraction of it."""

    def __init__(self, factor, diagonal):
        super().__init__(factor, "ilu", TINY)
        self.diagonal = diagonal
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
    native_kernels("swell.preconditioners", "ilu").find_depths(indptr, indices, diagonal, depth)
    return np.argsort(depth, kind="stable").astype(indptr.dtype), np.concatenate([[0], np.cumsum(np.bincount(depth))])


def fastest_exact(factor, diagonal):
    """Return the fastest exact algorithm on a CPU, a `Sequential` or `Threaded`: two halves if there are, else levels
    if they pay, else row by row.

    ``factor`` is the CSRMatrix of L and U to be written, ``diagonal`` the places of its diagonal entries."""
    by_rows = Sequential(factor, diagonal)
    by_levels = by_rows.cuts is None and levels_pay(diagonal.size, 1)
    return Threaded(factor, diagonal) if by_levels else by_rows


def levels_pay(rows, size):
    """True if this CPU has enough threads to factor ``rows`` block rows of ``size`` rows each by levels.

    By levels the work takes longer, as measured on two cores: 4 times for single entries, 2.4 to 3 for blocks of 3, 2
    for 4, 1.3 to 1.5 for 8. A quarter is added for the waits at the ends of levels.
    """
    return rows * size >= SERIAL and _native.threads() > 1.25 * (1 + 4 / size)


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
