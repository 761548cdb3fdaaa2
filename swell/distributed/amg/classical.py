"""Classical coarsening across ranks: with the coarse rows, and all bits of the levels, of one device.

The kernels of one device run on this rank's rows and the rows of ghosts within two links: strong links, PMIS,
interpolation. Windows keep the order of global numbers, so P and R A P have the same bits as on one device.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.level import TransposedLevel
from swell.distributed.amg.pmis import states
from swell.distributed.amg.rows import RankRows, coarse_space, together
from swell.distributed.amg.window import Window, own_rows, selected
from swell.preconditioners.amg.classical import Classical
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers
from swell.preconditioners.amg.real_part import mirrored
from swell.preconditioners.amg.slots import State
from swell.preconditioners.amg.smoother import scales
from swell.preconditioners.amg.strength import MAX_FORCED, strong_links, with_neighbours


class RankClassical:
    """Makes one level after the other.

    Parameters
    ----------
    settings : AMG
    symmetry : Symmetry
        Of A, real.
    """

    def __init__(self, settings, symmetry):
        self.settings, self.symmetry, self.marked = settings, symmetry, None

    def level(self, A):
        """Return the `ClassicalLevel` of some RankRows. Goes on to the next level."""
        level = ClassicalLevel(A, self.settings, self.symmetry, self.marked)
        self.marked = level.marked
        return level

    def gathered(self, rows, whole, settings):
        """Return the `Classical` for ``whole``, the gathered matrix of ``rows``, and the levels below."""
        marked = None if self.marked is None else together(rows.space, self.marked)
        return Classical(whole, settings, self.symmetry, marked)

    def scales(self, rows, omega):
        """Return the diagonal of D of RankRows that are gathered."""
        return scales(rows.csr, omega)


class ClassicalLevel(TransposedLevel):
    """A level with PMIS and interpolation, on one rank.

    Parameters
    ----------
    A : RankRows
    settings : AMG
    symmetry : Symmetry
        Of A, real.
    marked : uint8 array, shape (own rows,) or (0,), or None
        1 for a row that must stay on every level; None: find these rows (strength.py of one device).

    Attributes
    ----------
    marked : uint8 array
        Of the next level's rows.
    """

    def __init__(self, A, settings, symmetry, marked):
        self.settings, self._symmetric, self.marked = settings, symmetry.symmetric, marked
        super().__init__(A)

    def _split(self):
        """Find strong links, and the state and the coarse number of every row of the window."""
        A, window = self.extended.matrix, self.window
        marked = self._positive_rows() if self.marked is None else self.marked
        marked = window.around(marked, self.border.values(marked)) if marked.size else marked
        self._strong, forced = strong_links(A, self.settings), with_neighbours(A, marked)
        self._state = states(A, window, self.border, self._strong, forced[window.own] if forced.size else forced)
        self._numbers = coarse_numbers(A, self._state)
        ends = self._numbers[[window.own.start, window.own.stop, window.size]]
        self._first, stop, count = (int(n) for n in A.space.to_host(ends))  # sync
        self.coarse = coarse_space(self.A.space, stop - self._first)
        self.marked = carried(A, self._state, self._numbers, marked, count)[self._first:stop].copy()

    def _positive_rows(self):
        """Return ``marked`` of the finest level; empty if no row of any rank is marked, or too many are."""
        A, space, bound = self.extended.matrix, self.A.space, self.settings.positive
        if not bound:
            return space.empty(0, np.uint8)
        marked = space.empty(A.shape[0], np.uint8)
        space.kernels("swell.preconditioners.amg", "strength", A.dtype).positive_rows(
            A.indptr, A.indices, A.data, bound, marked)
        marked = marked[self.window.own].copy()
        count = sum(space.ranks.allgather(space.find_true(marked)[1]))         # sync
        return marked if 0 < count <= MAX_FORCED * self.A.shape[0] else space.empty(0, np.uint8)

    def _interpolate(self):
        """Return this rank's rows of P. Rows of ghosts are computed too, but some are incomplete."""
        self._split()
        window, space, A = self.window, self.A.space, self.extended.matrix
        self._P = interpolation(A, mirrored(A, self._symmetric), self._strong, self._state, self._numbers,
                                self.settings)
        numbers = self._numbers[window.own].astype(np.int64) - self._first + self.coarse.ranks.first
        coarse = (window.of_ghosts(self._state) == State.COARSE).astype(np.uint8)
        ghosts, = selected(space, coarse, self.border.values(numbers))
        begin, end = (int(k) for k in space.to_host(self._P.indptr[[window.own.start, window.own.stop]]))  # sync
        rows = own_rows(self._P, window, slice(begin, end))
        return RankRows(rows, Window(self.coarse, ghosts), space)

    def _recompute_P(self):
        matrix = self.extended.matrix
        reinterpolate(matrix, mirrored(matrix, self._symmetric), self._strong, self._state, self._numbers,
                      self.settings, self._P)

    def _release(self):
        super()._release()
        self._strong = self._state = self._numbers = self._P = None

    def scales(self, omega):
        return scales(self.own, omega)

    def next_scales(self, omega):
        return scales(self.next.csr, omega)

    @property
    def nbytes(self):
        parts = self._strong, self._state, self._numbers, self._P
        return super().nbytes + sum(part.nbytes for part in parts if part is not None)
