"""Level scheduling: the exact triangular solve on a GPU. Anderson and Saad 1989; Saad, Iterative Methods, section 11.6;
without synchronisation, Liu et al. 2016, and Su et al. 2020 for a thread a row.

A row's level is one more than the highest level among the rows that it needs: rows of one level are independent. One
launch finds the levels on the device; its rows wait for one another. Then rows are sorted by level, and within a level
by length in windows. The strict triangle is stored in that order, in slices of 32 rows (``Sliced``), so that
neighbouring threads read neighbouring memory. T = (I + N) D: the sum of a row needs no diagonal; D⁻¹ is applied after
it.

``schedule="levels"``: one launch for each wide level; one block solves a run of levels of at most ``NARROW`` rows, with
a barrier between two levels. It fetches the entries of the next level while it solves the current one.
``schedule="sync_free"``: one launch; each row spins until the rows that it needs are solved. An unsolved row holds a
NaN. Both schedules launch the same work every time, and give the same bits.

A solve reads 12 bytes an entry (padding included), 20 and 4 vectors a row.
"""
from __future__ import annotations

import numpy as np

from swell.formats.matrix import index_type
from swell.preconditioners.triangular import Gathering, inverse_diagonal

NARROW = 2048           # rows of a level, at most, that one block solves, in at most two rounds
MAX_LEVELS = 32         # levels, at most, for which schedule=None takes "levels"
DEEP = 1000             # levels from which a note warns of them
SLICE, WINDOW = 32, 256


class Schedule:
    """The rows of a triangular pattern sorted by level.

    Parameters
    ----------
    T : CSRMatrix
        On a GPU.
    lower : bool
    narrow : int
        A level of at most this many rows shares a launch with neighbouring narrow levels.

    Attributes
    ----------
    sequence, place : int arrays, shape (n,)
        The rows in the order of the solve, and the place of each row in it.
    bounds : int device array, shape (levels + 1,)
        Where each level begins in ``sequence``.
    groups : list of (bool, int, int)
        (wide, first level, last level + 1) of every launch.
    """

    def __init__(self, T, lower, narrow=NARROW):
        xp, n = T.space.xp, T.shape[0]
        depth, ticket = xp.zeros(n, np.int32), xp.zeros(1, np.int32)
        kernels = T.space.kernels("swell.preconditioners", "triangular", T.dtype)
        kernels.find_levels(T.indptr, T.indices, depth, ticket, lower)
        levels = int(max(T.space.max_on_host(depth), 0))  # sync
        counts = T.space.to_host(T.space.count(depth, levels + 1))[1:]
        self.host_bounds = np.concatenate([[0], np.cumsum(counts)])
        self.bounds = T.space.from_host(self.host_bounds.astype(T.indptr.dtype))
        self.sequence, self.place = by_length(T, xp.argsort(depth, kind="stable"), depth, self.bounds)
        self.groups = grouped(counts, narrow)

    @property
    def levels(self) -> int:
        """The number of levels."""
        return self.host_bounds.size - 1

    def run(self, wide, narrow):
        """Call, for every group of levels in order, ``wide(first, last + 1)`` with the range of a wide level's places
        in ``sequence``, or ``narrow(bounds)`` with the part of ``bounds`` of a run of narrow levels."""
        for is_wide, first, last in self.groups:
            if is_wide:
                wide(int(self.host_bounds[first]), int(self.host_bounds[last]))
            else:
                narrow(self.bounds[first:last + 1])


def by_length(T, order, depth, bounds):
    """Sort rows by descending length inside windows, so that slices have little padding and neighbours stay near.

    Parameters
    ----------
    T : CSRMatrix
    order : int64 array, shape (n,)
        The rows of T, sorted by level.
    depth, bounds : int arrays
        The level of each row, from 1, and where each level begins; rows move only within their level. Both empty: all
        rows are one level.

    Returns
    -------
    sequence, place : int arrays, shape (n,)
        The sorted rows, and the place of each row in ``sequence``.
    """
    sequence, place = T.space.empty((2, order.size), T.indptr.dtype)
    keys, kernels = T.space.empty(order.size, np.int64), T.space.kernels("swell.preconditioners", "slicing", T.dtype)
    kernels.sort_keys(order, depth, bounds, T.indptr, WINDOW, keys)
    kernels.take_order(order, T.space.xp.argsort(keys, kind="stable"), sequence, place)
    return sequence, place


def advice(levels, rows) -> tuple:
    """Return the notes of a solve, a tuple of str: a warning if there are many ``levels``, which keep a GPU waiting;
    else empty."""
    if levels < DEEP:
        return ()
    return (f"Exact(): {levels} levels of {rows / levels:.0f} rows on average, one after the other, keep a GPU "
            "waiting: ordering='multicolor' or solve='sweeps(count=2)' leave it more to do at a time",)


def grouped(counts, narrow=NARROW):
    """Return the list of launches, as in `Schedule.groups`: each wide level alone, runs of narrow levels together.

    ``counts`` has the rows of each level; a level of at most ``narrow`` rows is narrow."""
    groups = []
    for level, count in enumerate(counts):
        wide = bool(count > narrow)
        if not wide and groups and not groups[-1][0]:
            groups[-1] = (False, groups[-1][1], level + 1)
        else:
            groups.append((wide, level, level + 1))
    return groups


class Sliced:
    """The strict triangle N = (T − D) D⁻¹ in slices of 32 rows, in any order of the rows.

    Entry k of the row at place p lies at ptr[p // 32] + 32 k + p % 32; column −1 marks padding.

    Parameters
    ----------
    T : CSRMatrix
    lower, unit : bool
    sequence : int array, shape (n,)
        The row of T at each place.
    rows : int array, shape (n,)
        The entry of the vectors at each place.
    place_of : int array, shape (n,)
        The column number that is stored for column j of T, in T's index type.
    dtype : numpy.dtype
        Type of the stored values.
    """

    def __init__(self, T, lower, unit, sequence, rows, place_of, dtype):
        self.space, self.lower, self.unit = T.space, lower, unit
        self._kernels = T.space.kernels("swell.preconditioners", "slicing", T.dtype)
        n, empty = T.shape[0], self.space.empty
        self.sequence, self._place_of = sequence, place_of
        sizes, ptr = self.space.xp.zeros(-(-n // SLICE), np.int64), empty(-(-n // SLICE) + 1, np.int64)
        self._kernels.measure_slices(T.indptr, T.indices, sequence, lower, sizes)
        self.space.prefix_sums(sizes, ptr)
        stored, = self.space.last_entries(ptr)  # sync
        index = index_type(n, n, stored)
        self.ptr, self.rows, self.columns = ptr.astype(index), rows.astype(index, copy=False), empty(stored, index)
        self.values, self.inverse = empty(stored, dtype), empty(n, dtype)
        self.update(T)

    def update(self, T):
        """Overwrite the stored values by T's, a matrix with the same pattern."""
        scale = T.data[:0] if self.unit else inverse_diagonal(T)
        self._kernels.fill_slices(T.indptr, T.indices, T.data, scale, self.sequence, self._place_of, self.lower,
                                  self.ptr, self.columns, self.values, self.inverse)
        self.space.synchronize()                 # a solve may read the slices before the preceding kernel has ended

    @property
    def arrays(self):
        """The kernels' first arguments: rows, ptr, columns, values, inverse."""
        return self.rows, self.ptr, self.columns, self.values, self.inverse

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self.arrays)


class SlicedTriangular(Gathering):
    """Base of solves that store the strict triangle in slices, ``sliced``."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self._kernels = T.space.kernels("swell.preconditioners", "triangular", T.dtype)

    def load(self, T):
        self.sliced.update(T)

    @property
    def nbytes(self):
        return self.sliced.nbytes + (0 if self._adjoint is None else self._adjoint.nbytes)


class ScheduledTriangular(SlicedTriangular):
    """Substitution by levels, or without synchronisation, on a GPU."""

    scratch = ("_w", "_state")

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        xp, n = self.space.xp, T.shape[0]
        self.schedule = Schedule(T, lower)
        sequence = self.schedule.sequence
        rows = sequence if order is None else order[sequence]
        self.sliced = Sliced(T, lower, unit, sequence, rows, self.schedule.place, self.stored(T.dtype))
        self.schedule.bounds = self.schedule.bounds.astype(self.sliced.ptr.dtype, copy=False)
        self.notes += advice(self.schedule.levels, n) if lower else ()           # once for L and U
        deep = self.schedule.levels > MAX_LEVELS
        self.sync_free = deep if settings.schedule is None else settings.schedule == "sync_free"
        self._w = xp.empty((2 if self.sync_free else 1, n), T.dtype)
        self._w.view(np.uint8).fill(255)         # a NaN marks a row that is not yet solved
        self._state = xp.zeros(3, np.int32)

    def solve(self, x, out):
        if self.sync_free:
            self._kernels.sync_free(*self.sliced.arrays, x, self._w, out, self._state)
            return
        arrays, w, rows = self.sliced.arrays, self._w[0], self.sliced.rows
        self.schedule.run(
            lambda first, last: self._kernels.level(*arrays, rows[first:last], x, w, out, first),
            lambda bounds: self._kernels.levels(*arrays, bounds, x, w, out))

    def describe(self):
        name, launches = ("sync_free", 1) if self.sync_free else ("levels", len(self.schedule.groups))
        return f"Exact(schedule={name!r}), {self.schedule.levels} levels in {launches} launches"
