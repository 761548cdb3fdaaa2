"""The cycle across ranks: levels in parts, and below them the cycle that every rank computes alone."""
from __future__ import annotations

import copy

import numpy as np

from swell.core.errors import InputError
from swell.distributed.amg.hierarchy import RankHierarchy
from swell.distributed.amg.products import RankFourProducts, RankProduct, smoothing
from swell.distributed.amg.window import Border, Window
from swell.distributed.amg.rows import RankRows
from swell.distributed.halo import Halo
from swell.preconditioners.amg.balanced_cycle import BalancedCycle
from swell.preconditioners.amg.coarsest import SINGULAR
from swell.preconditioners.amg.polynomial import Polynomial, Smoothed
from swell.preconditioners.amg.precision import response, smoothest


class RankCycle(BalancedCycle):
    """A cycle over the levels of a RankHierarchy, for this rank's parts of vectors.

    An application exchanges the ghost values of four products a level, and gathers one vector. Hierarchy and cycle are
    built together, level after level: if memory is short, a level's setup is dropped before the next level's begins.

    Parameters
    ----------
    A : DistributedMatrix
    settings : AMG or SmoothedAggregation
    symmetry : Symmetry
        Of A.
    coarsening : RankClassical or RankAggregation
    lean : bool
        As in `RankHierarchy`.
    """

    def __init__(self, A, settings, symmetry, coarsening, lean):
        self._describe(A.own.shape[0], A.space.local, settings, settings.dtype, symmetry, 0)
        self._coarsening, self.scales, self.levels = coarsening, [], []
        self._end(RankHierarchy(A, settings, coarsening, lean, self))

    def in_double_precision(self):
        """Return a new cycle in double precision with the same hierarchy, which is not lean."""
        made, h = copy.copy(self), self.hierarchy
        made._describe(self.shape[0], self.space, h.settings, np.float64, self.symmetry, 0)
        made.scales, made.levels = [], []
        for level in h.levels:
            made.begin(level)
            made.complete(level)
        made._end(h)
        return made

    def least_response(self):
        h = self.hierarchy
        if h.lean or h.below is None:
            return 1.0
        whole = self.levels[-1].cycle
        if not h.levels:
            return whole.least_response()
        v = smoothest(whole)
        if v is None:
            return 1.0
        v, finest = v[h.last.space.ranks.first:h.last.space.ranks.stop], h.levels[0]
        for level in reversed(h.levels):
            fine = self.space.empty(level.P.csr.shape[0], np.float64)
            level.P.apply(v, fine)
            v = fine
        return response(RankRows(finest.own, finest.window, finest.A.space), self.scales[0], v)

    def _end(self, hierarchy):
        """Append the coarsest level."""
        self.hierarchy = hierarchy
        self.scales = self.scales or self._scaling()
        self.levels.append(self._coarsest())
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if not self.hermitian:
            raise InputError("AMG across ranks has no adjoint for a nonsymmetric matrix: choose a method that needs "
                             "none (gmres or bicgstab)")
        self.apply(x, out, alpha, beta)

    def begin(self, level):
        """Make the smoother's product of a new RankLevel, whose next level is not known yet."""
        if not self.scales:
            self.scales.append(level.scales(self._omega))
        self._begun = RankFourProducts(level, self.scales[-1], self.dtype)

    def complete(self, level):
        """Append the products of the RankLevel that `begin` got; its next level is known now."""
        products = self._begun
        self.scales.append(self._coarse_scale(level, self.scales[-1]))
        products.complete(self.scales[-1])
        self.levels.append(Polynomial(products, self._steps) if len(self._steps) > 1 else products)

    def _scaling(self, first=None):
        """Return the diagonal of D, this rank's rows, for each level in parts and for the gathered level. An entry is 0
        where a coarse diagonal entry is only rounding (preconditioners/amg/balancing.py)."""
        h = self.hierarchy
        finest = next((level for level in (*h.levels, h.stalled) if level is not None), None)
        scalings = [self._coarsening.scales(h.last, self._omega) if finest is None else finest.scales(self._omega)]
        for level in h.levels:
            scalings.append(self._coarse_scale(level, scalings[-1]))
        return scalings

    def _coarse_scale(self, level, fine):
        """Return the diagonal of D for the level below a RankLevel; ``fine``: the diagonal of D for that RankLevel."""
        window, R, C = level.next.window, level.R, level.next.csr
        fine, diagonal = level.window.around(fine, level.border.values(fine)), level.next_scales(self._omega)
        marked = R.space.xp.ones(window.size)
        _kernels(R).drop_rounding(window.pointers(R.indptr), R.indices, R.data, fine, window.pointers(C.indptr),
                                  C.indices, C.data, SINGULAR / self._omega, marked)
        diagonal[marked[window.own] == 0] = 0
        return diagonal

    def _coarsest(self):
        h, scale = self.hierarchy, self.scales[-1]
        if h.below is None:
            return RankSmoothed(h.stalled, scale, self.dtype, self._steps)
        return Whole(h, scale, self.dtype, self.symmetry)


class Whole:
    """The gathered level: every rank gathers the right-hand side and applies the cycle of all levels below.

    Parameters
    ----------
    hierarchy : RankHierarchy
    scale : float64 array
        The diagonal of D of this rank's rows.
    dtype : numpy.dtype
    symmetry : Symmetry
    """

    scratch = ("_b", "_x")

    def __init__(self, hierarchy, scale, dtype, symmetry):
        space = hierarchy.last.space
        others = np.r_[0:space.ranks.first, space.ranks.stop:space.ranks.starts[-1]].astype(np.int64)
        self._window, self._halo = Window(space, space.from_host(others)), Halo(space, others, dtype)
        self._border = Border(self._window)
        self.cycle = BalancedCycle(hierarchy.below, dtype, symmetry, len(hierarchy.levels), self._together(scale))
        self._b, self._x = (space.empty(self._window.size, dtype) for _ in range(2))

    def _together(self, scale):
        return self._window.around(scale, self._border.values(scale))

    def update(self, last, scale):
        """Recompute the cycle for new values of the hierarchy; ``scale`` as in the constructor."""
        self.cycle.refresh(self._together(scale))

    def solve(self, b, x):
        """Write this rank's part of the result for its part b of the right-hand side."""
        window, halo, b_whole = self._window, self._halo, self._b
        halo.start(b)
        b_whole[window.own] = b
        halo.finish()
        b_whole[:window.below] = halo.values[:window.below]
        b_whole[window.own.stop:] = halo.values[window.below:]
        self.cycle.apply(b_whole, self._x)
        x[...] = self._x[window.own]

    @property
    def nbytes(self):
        return self.cycle.nbytes + self._b.nbytes + self._x.nbytes + self._halo.nbytes


class RankSmoothed(Smoothed):
    """The coarsest level if coarsening ended on many rows: the smoother alone, in parts."""

    def __init__(self, level, scale, dtype, steps):
        self._level, self._dtype = level, dtype
        self._use(RankProduct(smoothing(level, scale, dtype), level.window), steps)

    def update(self, last, scale):
        """Recompute S, in place, for new values of the level and its ``scale``, the diagonal of D."""
        self.S.update(smoothing(self._level, scale, self._dtype))


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "cycle", np.float64)
