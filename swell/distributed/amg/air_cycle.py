"""The cycle of AIR across ranks: levels in parts, and below them the cycle that every rank computes alone.

Each rank has the order of rows of one device (preconditioners/amg/air_cycle.py) for its own rows: fine rows of each
level, then the next level's. The four products of a level exchange ghost values. A ghost's column is its place in its
owner's order, in a window over the places of all ranks.
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.distributed.amg.hierarchy import RankHierarchy
from swell.distributed.amg.air import RankLocalRestriction
from swell.distributed.amg.products import RankProduct
from swell.distributed.amg.rows import coarse_space
from swell.distributed.amg.window import Border, Window, own_rows
from swell.distributed.halo import Halo
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.air_cycle import AIRCycle, Order, Picked, SweptLevel, picked, relaxed_diagonal
from swell.preconditioners.amg.cycle import Cycle
from swell.preconditioners.amg.polynomial import Smoothed


class RankAIRCycle(AIRCycle):
    """A cycle over the levels of a RankHierarchy, for this rank's parts of vectors.

    Parameters
    ----------
    A : DistributedMatrix
    settings : AIR
    """

    def __init__(self, A, settings):
        h = self.hierarchy = RankHierarchy(A, settings, RankLocalRestriction(settings))
        last = h.last if h.below is not None else h.stalled.A
        rows = h.space.xp.arange(last.space.ranks.local_rows(last.shape[0]), dtype=np.int32)
        orders = [Order(rows, rows, 0, 0)]       # from the finest in the end
        for level in reversed(h.levels):
            below = orders[0]
            below.places = below.places.astype(level.numbers.dtype)
            orders.insert(0, Order.around(h.space, level.state, level.numbers, level.R.shape[0], below))
        Cycle.__init__(self, orders[0].size, settings.dtype, h.space)
        self.places, self.scales = orders[0].places, self._scaling()
        spaces = [coarse_space(last.space, order.size) for order in orders]
        self.levels = [RankSweptLevel(*parts, settings.f_sweeps, self.dtype)
                       for parts in zip(h.levels, pairwise(orders), pairwise(spaces), pairwise(self.scales))]
        self.levels.append(RankJacobi(h.stalled, self.scales[-1], self.dtype) if h.below is None else
                           WholeAIR(h, self.dtype))
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def _scaling(self, first=None):
        h = self.hierarchy
        inner = [relaxed_diagonal(level.extended.matrix)[level.window.own].copy()
                 for level in (*h.levels, *([] if h.stalled is None else [h.stalled]))]
        return inner if h.below is None else [*inner, of_rows(h.last)]

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        raise InputError("AIR across ranks has no adjoint: choose a method that needs none (fgmres or bicgstab)")


def of_rows(rows):
    """Return the diagonal of D of some RankRows."""
    csr, window = rows.csr, rows.window
    square = CSRMatrix(csr.space, window.pointers(csr.indptr), csr.indices, csr.data, (window.size, window.size))
    return relaxed_diagonal(square)[window.own].copy()


@dataclass
class Columns:
    """The columns of a matrix in the cycle's order, across ranks.

    Attributes
    ----------
    places : int array
        The place of each column of a Window in ``window``.
    window : Window
        Over the places of all ranks.
    """

    places: Any
    window: Window

    @classmethod
    def of(cls, columns, border, order, space):
        """Return the Columns of the Window ``columns``, whose `Border` is ``border``. ``space``: the DistributedSpace
        of the places of an `Order`."""
        xp, index = space.xp, order.places.dtype
        there = border.values(order.places.astype(np.int64) + space.ranks.first)
        window = Window(space, xp.sort(there))
        return cls(columns.around((order.places + index.type(window.below)).astype(index), window.places(there, index)),
                   window)

    @property
    def size(self):
        return self.window.size


class RankSweptLevel(SweptLevel):
    """One level of the cycle across ranks; the parameters are those of `SweptLevel`, for this rank's rows.

    ``spaces``: the DistributedSpace of the places of both orders.
    """

    def __init__(self, level, orders, spaces, diagonals, sweeps, dtype):
        order, below = orders
        self.level, self._diagonals, self.sweeps = level, diagonals, sweeps
        self.space, self.fine, self.begin = level.A.space.local, order.fine, order.begin
        xp, own, rows = self.space.xp, level.own, order.rows
        self._identity = xp.arange(own.shape[0], dtype=own.indices.dtype) + own.indices.dtype.type(level.window.below)
        here = Columns.of(level.window, level.border, order, spaces[0])
        there = Columns.of(level.P.window, Border(level.P.window), below, spaces[1])
        fine, coarse = rows[:order.fine], rows[order.begin:]
        self._picked = picked(dtype, (level.R, below.rows, here), (level.AP, fine, there), (own, fine, here),
                              (own, coarse, here))
        self._write_values()
        self.b_coarse, self._w = (self.space.xp.zeros(each.size, dtype) for each in (below, order))
        self.x_coarse = self._w[order.begin:]
        self.R, self.Q, self.S_fine, self.S_coarse = self.matrices = [
            RankProduct(p.matrix, columns.window) for p, columns in zip(self._picked, (here, there, here, here))]

    def _write_values(self):
        R, Q, S_fine, S_coarse = self._picked
        level, (diagonal, below), own = self.level, self._diagonals, self.level.own
        around = level.window.around(diagonal, level.border.values(diagonal))
        R.balance(level.R, around, below)
        Q.complement(level.AP, diagonal, level.parents)
        S_fine.complement(own, diagonal, self._identity)
        S_coarse.complement(own, diagonal, self._identity)


class RankJacobi(Smoothed):
    """The coarsest level if coarsening ended on many rows: x = b + S b + S² b, in parts."""

    def __init__(self, level, diagonal, dtype):
        self._level, self._dtype = level, dtype
        self._use(RankProduct(self._of(diagonal), level.window), [(0, 1, 1)] * 3)

    def _of(self, diagonal):
        """Return this rank's rows of S = I − D⁻¹A."""
        own, index = self._level.own, self._level.own.indices.dtype
        every = own.space.xp.arange(own.shape[0], dtype=index)
        S = own.with_values(own.space.empty(own.nnz, self._dtype))
        Picked(every, S).complement(own, diagonal, every + index.type(self._level.window.below))
        return S

    def update(self, last, diagonal):
        """Recompute S, in place, for new values of the level and its ``diagonal``."""
        self.S.update(self._of(diagonal))


class WholeAIR:
    """The gathered level: every rank gathers the right-hand side and applies the cycle of all levels below."""

    scratch = "_b", "_x", "_in", "_out"

    def __init__(self, hierarchy, dtype):
        space = hierarchy.last.space
        others = np.r_[0:space.ranks.first, space.ranks.stop:space.ranks.starts[-1]].astype(np.int64)
        self._window, self._halo = Window(space, space.from_host(others)), Halo(space, others, dtype)
        self.cycle = AIRCycle(hierarchy.below)
        self._b, self._x = (space.empty(self._window.size, dtype) for _ in range(2))
        self._in, self._out = (space.xp.zeros(self.cycle.shape[0], dtype) for _ in range(2))
        self._ones = space.xp.ones(1)
        self._kernels = space.kernels("swell.preconditioners.amg", "air_cycle", dtype)

    def update(self, last, scale):
        """Recompute the cycle for new values of the hierarchy."""
        self.cycle.refresh()

    def solve(self, b, x):
        """Write this rank's part of the result for its part b of the right-hand side."""
        window, halo, cycle, whole = self._window, self._halo, self.cycle, self._b
        halo.start(b)
        whole[window.own] = b
        halo.finish()
        whole[:window.below] = halo.values[:window.below]
        whole[window.own.stop:] = halo.values[window.below:]
        kind = whole.dtype.type
        self._kernels.enter(whole, cycle.places, cycle.scales[0], False, self._ones, self._in)
        cycle.apply(self._in, self._out)
        self._kernels.leave(self._out, cycle.places, cycle.scales[0], False, self._ones, self._x, kind(1), kind(0))
        x[...] = self._x[window.own]

    @property
    def nbytes(self):
        vectors = self._b, self._x, self._in, self._out
        return self.cycle.nbytes + self._halo.nbytes + sum(vector.nbytes for vector in vectors)
