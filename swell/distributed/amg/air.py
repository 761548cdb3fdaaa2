"""AIR across ranks: with the coarse rows, and all bits of the levels, of one device.

The kernels of one device (preconditioners/amg/local_restriction.py) run on this rank's rows and the rows of ghosts
within two links, as far as the neighbours of a coarse row are away. So R needs no transposition: row i of R follows
from rows of A that row i reaches, whether or not these have links back. Only PMIS asks how many rows depend on a row;
ghosts' shares of these numbers go back to their owners.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.level import RankLevel
from swell.distributed.amg.pmis import influences, states
from swell.distributed.amg.rows import RankRows, coarse_space
from swell.distributed.amg.window import Window, own_rows, selected
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.preconditioners.amg.local_restriction import (
    Filtered,
    LocalRestriction,
    one_point,
    restriction,
    strong_moduli,
    weigh,
)
from swell.preconditioners.amg.pmis import coarse_numbers
from swell.preconditioners.amg.slots import State


class RankLocalRestriction:
    """Makes one level after the other; ``settings`` is an `AIR`."""

    def __init__(self, settings):
        self.settings = settings

    def level(self, A):
        """Return the `RestrictedLevel` of some RankRows."""
        return RestrictedLevel(A, self.settings)

    def gathered(self, rows, whole, settings):
        """Return the `LocalRestriction` for the levels below some gathered RankRows."""
        return LocalRestriction(settings)


class RestrictedLevel(RankLevel):
    """A level with local restriction, on one rank.

    Parameters
    ----------
    A : RankRows
    settings : AIR

    Attributes
    ----------
    state, numbers : integer arrays
        The `State` of this rank's rows, and the numbers of the coarse ones, from 0 on.
    parents : int array
        The place of the entry of each of this rank's rows of P in P's window; −1 for a row without one.
    AP : CSRMatrix
        This rank's rows of A P.
    """

    def __init__(self, A, settings):
        self.settings, self.filter, self._separate = settings, None, None
        super().__init__(A)

    def _interpolate(self):
        s, window, space, A = self.settings, self.window, self.A.space, self.extended.matrix
        strong, none = strong_moduli(A, s.strength), space.empty(0, np.uint8)
        entries = self.extended.own
        counts = influences(window, A.indices[entries], strong[entries])
        counts = counts[window.own] + self.border.sums(window.of_ghosts(counts))
        state = states(A, window, self.border, strong, none, counts)
        numbers = coarse_numbers(A, state)
        first, stop, count = (int(n) for n in space.to_host(
            numbers[[window.own.start, window.own.stop, window.size]]))  # sync
        self.coarse = coarse_space(space, stop - first)
        _, P = one_point(A, strong, state, numbers)
        rows = space.empty(count, A.indices.dtype)
        _kernels(A).coarse_rows(state, numbers, rows)
        self._coarse_rows = rows[first:stop].copy()
        self.R = restriction(A, strong_moduli(A, s.neighbours), state, self._coarse_rows, s.distance)
        self.state, self.numbers = state[window.own].copy(), numbers[window.own] - numbers.dtype.type(first)
        owned = self.numbers.astype(np.int64) + self.coarse.ranks.first
        coarse = (window.of_ghosts(state) == State.COARSE).astype(np.uint8)
        ghosts, = selected(space, coarse, self.border.values(owned))
        begin, end = (int(k) for k in space.to_host(P.indptr[[window.own.start, window.own.stop]]))  # sync
        return RankRows(own_rows(P, window, slice(begin, end)), Window(self.coarse, ghosts), space)

    def _restrict(self):
        """R is known since `_interpolate`."""

    def _coarse(self):
        C, window, whole = self._product.C, self.P.window, self._product.AP
        square = CSRMatrix(C.space, window.pointers(C.indptr), C.indices, C.data, (window.size, window.size))
        self.filter = Filtered(square, self.settings.drop)           # its diagonal is that of the window
        if whole is None:
            self._separate = Product(self.own, self.wide.matrix)
        else:
            ends = whole.indptr[[self.window.own.start, self.window.own.stop]]
            self._extent = slice(*(int(k) for k in self.A.space.to_host(ends)))  # sync
        kept = self.filter.matrix
        indptr = kept.indptr[window.own.start:window.own.stop + 1]
        return CSRMatrix(kept.space, indptr, kept.indices, kept.data, C.shape)

    @property
    def AP(self):
        if self._separate is not None:
            return self._separate.C
        return own_rows(self._product.AP, self.window, self._extent)

    @property
    def parents(self):
        P, xp = self.P.csr, self.A.space.xp
        if not P.nnz:
            return xp.full(P.shape[0], -1, P.indices.dtype)
        at = xp.minimum(P.indptr[:-1], P.nnz - 1)
        return xp.where(P.indptr[1:] > P.indptr[:-1], P.indices[at], P.indices.dtype.type(-1))

    def _reinterpolate(self):
        """P has no values of A."""
        weigh(self.extended.matrix, self._coarse_rows, self.R)

    def update(self, A):
        super().update(A)
        if self._separate is not None:
            self._separate.update(self.own, self.wide.matrix)
        self.filter.update()
        self.next.renewed()
        return self.next

    def _release(self):
        """Not called: AIR keeps its setup."""

    @property
    def nbytes(self):
        more = self.state, self.numbers, self._coarse_rows, self.filter
        separate = 0 if self._separate is None else self._separate.C.nbytes
        return super().nbytes + separate + sum(part.nbytes for part in more if part is not None)


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "local_restriction", np.float64)
