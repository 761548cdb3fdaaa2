"""A level of multigrid across ranks: interpolation and Galerkin product from this rank's rows and rows around them.

Each step runs a kernel of one device on this rank's rows and the rows of other ranks that it needs:

    A of ghosts within one link     strong links, PMIS, interpolation (which reaches rows at two links)
    P of the same ghosts            A P
    P and A P of the rows that      R (A P); R has this rank's coarse rows
    interpolate from here

Rows and columns are numbered in windows (window.py): the bits of P, A P and R A P are those of one device.
"""
from __future__ import annotations

from itertools import pairwise

import numpy as np

from swell.distributed.amg.pmis import states
from swell.distributed.amg.rows import RankRows, coarse_space, parted, trimmed
from swell.distributed.amg.window import Border, Stacked, Window, own_rows, selected
from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers
from swell.preconditioners.amg.slots import State
from swell.preconditioners.amg.strength import FEW, strong_links, with_neighbours


class RankLevel:
    """A matrix and its way to the next level, on one rank.

    Parameters
    ----------
    A : RankRows
    settings : AMG
    marked : uint8 array, shape (own rows,) or (0,), or None
        1 for a row that must stay on every level; None: find these rows (strength.py of one device).

    Attributes
    ----------
    A, P : RankRows
    extended : Stacked
        A with the rows of ghosts.
    PT : Stacked
        The rows of P that reach this rank's coarse rows, with only these columns; R is its transpose.
    R : CSRMatrix, shape (own coarse rows, fine window)
    next : RankRows
        The next level's matrix, R A P.
    marked : uint8 array
        ``marked`` of the next level's rows.
    """

    def __init__(self, A, settings, marked):
        self.A, self.settings = A, settings
        self._surround()
        self._split(marked)
        self.P = self._interpolate()

    def _surround(self):
        """Fetch the rows of A's ghosts, and make ``extended``, a square matrix of the wider window."""
        A = self.A
        self._near = Border(A.window)
        found = self._near.rows(A.csr, A.window)
        self.window = A.window.with_ghosts(found.columns)
        self.border = Border(self.window)
        self.extended = Stacked(A.csr, A.window, found, A.window, self.window, self.window)
        self._own = own_rows(self.extended.matrix, self.window, self.extended.own)

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
        """Return ``marked`` of the finest level: `positive_rows` of one device, its share taken over all ranks."""
        A, space, bound = self.extended.matrix, self.A.space, self.settings.positive
        if not bound:
            return space.empty(0, np.uint8)
        marked = space.empty(A.shape[0], np.uint8)
        space.kernels("swell.preconditioners.amg", "strength", A.dtype).positive_rows(
            A.indptr, A.indices, A.data, bound, marked)
        marked = marked[self.window.own].copy()
        count = sum(space.communicator.allgather(space.find_true(marked)[1]))  # sync
        return marked if 0 < count <= FEW * self.A.shape[0] else space.empty(0, np.uint8)

    def _interpolate(self):
        """Return this rank's rows of P. Rows of ghosts are computed too, but some are incomplete."""
        window, space = self.window, self.A.space
        self._P = interpolation(self.extended.matrix, self._strong, self._state, self._numbers, self.settings)
        numbers = self._numbers[window.own].astype(np.int64) - self._first + self.coarse.first
        coarse = (window.of_ghosts(self._state) == State.COARSE).astype(np.uint8)
        ghosts, = selected(space, coarse, self.border.values(numbers))
        begin, end = (int(k) for k in space.to_host(self._P.indptr[[window.own.start, window.own.stop]]))  # sync
        rows = own_rows(self._P, window, slice(begin, end))
        return RankRows(rows, space, Window(self.coarse, ghosts))

    def multiply(self):
        """Compute A P, R and R A P; ``next`` is the next level's matrix."""
        A, P = self.A, self.P
        found = self._near.rows(P.csr, P.window)
        wider = P.window.with_ghosts(found.columns)
        self._P_near = Stacked(P.csr, P.window, found, A.window, self.window, wider)
        self._AP = Product(self._own, self._P_near.matrix)
        inside, self.reaching = self._interpolated_elsewhere()
        self.fine, own = self.reaching.window, Window(self.coarse, A.space.empty(0, np.int64))
        self.PT = Stacked(inside, own, self._reaching_rows(), self.fine, self.fine, own)
        self.R, self.order = transposed(self.PT.matrix)
        found = self.reaching.rows(self._AP.C, wider)
        reached = wider.with_ghosts(found.columns)
        self._AP_rows = Stacked(self._AP.C, wider, found, self.fine, self.fine, reached)
        self._RAP = Product(self.R, self._AP_rows.matrix)
        csr, window = trimmed(self._RAP.C, reached)
        self.next, self._wider = RankRows(csr, self.coarse, window), wider

    def _interpolated_elsewhere(self):
        """Return (this rank's rows of P with own columns, the Border of other ranks' rows that interpolate from here).
        """
        P, space = self.P, self.A.space
        inside, boundary, rest = parted(P.csr, P.window)
        kernels, sent = space.kernels("swell.distributed", "window", np.float64), []
        for begin, end in pairwise(P.window.cuts.tolist()):      # the coarse ghosts of each rank
            marked = space.empty(boundary.size, np.uint8)
            kernels.mark_rows(rest.indptr, rest.indices, begin, end, marked)
            sent.append(selected(space, marked, boundary)[0].astype(np.int64) + space.first)
        received = space.communicator.alltoall_arrays(space.local, sent)
        return inside, Border(Window(space, space.xp.concatenate(received)))

    def _reaching_rows(self):
        return self.reaching.rows(self.P.csr, self.P.window).within(self.coarse)

    def refill(self, A):
        """Take new values of A (RankRows), for this rank's rows and the ghosts'."""
        self.A = A
        self.extended.fill(A.csr.data, self._near.rows(A.csr, A.window).data)
        self._own.discard_adjoint()

    def update(self, A):
        """Recompute P, R and the products, in place, for new values of A (RankRows). Returns the next level's."""
        self.refill(A)
        reinterpolate(self.extended.matrix, self._strong, self._state, self._numbers, self.settings, self._P)
        P = self.P
        self._P_near.fill(P.csr.data, self._near.rows(P.csr, P.window).data)
        self._AP.update(self._own, self._P_near.matrix)
        self.PT.fill(parted(P.csr, P.window)[0].data, self._reaching_rows().data)
        self.R.data[...] = self.PT.matrix.data[self.order]
        self._AP_rows.fill(self._AP.C.data, self.reaching.rows(self._AP.C, self._wider).data)
        self._RAP.update(self.R, self._AP_rows.matrix)
        self.next.csr.discard_adjoint()
        return self.next

    @property
    def nbytes(self):
        parts = (self.A, self.extended, self._strong, self._state, self._numbers, self._P, self._P_near, self._AP.C,
                 self.PT, self.R, self.order, self._AP_rows, self._RAP.C)
        return sum(part.nbytes for part in parts)
