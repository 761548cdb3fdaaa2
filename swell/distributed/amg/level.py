"""A level of multigrid across ranks: interpolation and Galerkin product from this rank's rows and rows around them.

This rank's rows of A are extended by the rows of ghosts within two links. The kernels of one device run on these rows:
strong links, PMIS, interpolation. Then the ranks exchange rows of P, as far as three links away; R A P needs no more.
Rows and columns are numbered in windows (window.py), so P and R A P have the same bits as on one device.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.galerkin import Galerkin
from swell.distributed.amg.pmis import states
from swell.distributed.amg.rows import RankRows, coarse_space, trimmed
from swell.distributed.amg.window import Border, Stacked, Window, own_rows, selected
from swell.formats.csr import CSRMatrix
from swell.formats.transpose import transposed
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers
from swell.preconditioners.amg.real_part import mirrored
from swell.preconditioners.amg.slots import State
from swell.preconditioners.amg.strength import MAX_FORCED, strong_links, with_neighbours


class RankLevel:
    """A matrix and its way to the next level, on one rank.

    Parameters
    ----------
    A : RankRows
    settings : AMG
    symmetry : Symmetry
        Of the finest matrix, real.
    marked : uint8 array, shape (own rows,) or (0,), or None
        1 for a row that must stay on every level; None: find these rows (strength.py of one device).

    Attributes
    ----------
    A, P : RankRows
    window : Window
        This rank's rows, and ghosts within three links.
    extended : Stacked
        A square matrix of the window: this rank's rows of A, and the rows of ghosts within two links.
    wide : Stacked
        P with the rows of all ghosts of the window.
    R : CSRMatrix, shape (own coarse rows, window.size)
        This rank's rows of Pᵀ.
    order : int array
        The place of each value of R among the values of ``wide`` in own columns.
    next : RankRows
        The next level's matrix, R A P.
    marked : uint8 array
        ``marked`` of the next level's rows.
    """

    def __init__(self, A, settings, symmetry, marked):
        self.A, self.settings, self._symmetric = A, settings, symmetry.symmetric
        self._surround()
        self._split(marked)
        self._rows_of_P = self.P = self._interpolate()

    def _surround(self):
        """Fetch the rows of ghosts within two links of this rank's rows."""
        A = self.A
        first = A.window.with_ghosts(Border(A.window).rows(A.csr, A.window).columns)
        self._near = Border(first)
        ghost_rows = self._near.rows(A.csr, A.window)
        self.window = first.with_ghosts(ghost_rows.columns)
        self.border = Border(self.window)
        self.extended = Stacked(A.csr, A.window, ghost_rows, first, self.window, self.window)

    def _split(self, marked):
        """Find strong links, and the state and the coarse number of every row of the window."""
        A, window = self.extended.matrix, self.window
        marked = self._positive_rows() if marked is None else marked
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
        window, space = self.window, self.A.space
        A = self.extended.matrix
        self._P = interpolation(A, mirrored(A, self._symmetric), self._strong, self._state, self._numbers,
                                self.settings)
        numbers = self._numbers[window.own].astype(np.int64) - self._first + self.coarse.ranks.first
        coarse = (window.of_ghosts(self._state) == State.COARSE).astype(np.uint8)
        ghosts, = selected(space, coarse, self.border.values(numbers))
        begin, end = (int(k) for k in space.to_host(self._P.indptr[[window.own.start, window.own.stop]]))  # sync
        rows = own_rows(self._P, window, slice(begin, end))
        return RankRows(rows, Window(self.coarse, ghosts), space)

    def multiply(self, lean):
        """Compute R and R A P; ``next`` is the next level's matrix. ``lean``: drop what only `update` needs."""
        self._widen()
        self._restrict()
        if lean:
            self._strong = self._state = self._numbers = self._P = self._rows_of_P = self._inside = self.order = None
        self._product = Galerkin(self.R, self.extended.matrix, self.wide.matrix)
        self.next = RankRows(*trimmed(self._product.C, self.P.window), self.coarse)
        if lean:
            self.extended = self._product = None

    def _widen(self):
        """Fetch the rows of P of all ghosts."""
        P, space = self._rows_of_P, self.A.space
        ghost_rows = self.border.rows(P.csr, P.window)
        reached = P.window.with_ghosts(ghost_rows.columns)
        self.wide = Stacked(P.csr, P.window, ghost_rows, self.window, self.window, reached)
        self.P = RankRows(own_rows(self.wide.matrix, self.window, self.wide.own), reached, space)

    def _restrict(self):
        """Transpose the own columns of ``wide``."""
        space, wide, local = self.A.space, self.wide.matrix, self.P.window.own
        self._inside = space.empty(wide.nnz, np.uint8)           # 1 for an entry in an own column
        space.kernels("swell.distributed", "window", np.float64).mark_range(wide.indices, local.start, local.stop, True,
                                                                            self._inside)
        starts = space.empty(wide.nnz + 1, wide.indices.dtype)
        space.prefix_sums(self._inside, starts)
        columns, data = selected(space, self._inside, wide.indices, wide.data)
        PT = CSRMatrix(wide.space, starts[wide.indptr], columns - local.start, data,
                       (wide.shape[0], self.P.window.rows))
        self.R, self.order = transposed(PT)

    def refill(self, A):
        """Take new values of A (RankRows), for this rank's rows and the ghosts'."""
        self.extended.fill(A.csr.data, self._near.rows(A.csr, A.window).data)

    def update(self, A):
        """Recompute P, R and R A P, in place, for new values of A (RankRows). Returns the next level's."""
        self.refill(A)
        matrix = self.extended.matrix
        reinterpolate(matrix, mirrored(matrix, self._symmetric), self._strong, self._state, self._numbers,
                      self.settings, self._P)
        P = self._rows_of_P
        self.wide.fill(P.csr.data, self.border.rows(P.csr, P.window).data)
        self.R.data[...] = selected(self.A.space, self._inside, self.wide.matrix.data)[0][self.order]
        self.R.discard_adjoint()
        self._product.update()
        self.next.csr.discard_adjoint()
        return self.next

    @property
    def own(self):
        """This rank's rows of A, a CSRMatrix whose columns the level's window numbers."""
        return own_rows(self.extended.matrix, self.window, self.extended.own)

    def release(self):
        """Free P and R after ``multiply(lean=True)``: the cycle has its own matrices. The next level's matrix stays."""
        self.wide = self.R = None
        self.P.forget()

    @property
    def nbytes(self):
        parts = (self.extended, self._strong, self._state, self._numbers, self._P, self.wide, self._inside, self.R,
                 self.order, self._product)
        return sum(part.nbytes for part in parts if part is not None)
