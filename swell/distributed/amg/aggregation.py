"""Smoothed aggregation across ranks: with the aggregates and tentative prolongators of one device (aggregates.py).

The smoothed prolongator P = (I − ω D⁻¹ A) T, ω = 4 / (3 λ), takes the rows of T of ghosts within one link, and one λ
for all ranks. λ is made of sums over ranks, so P equals one device's but for rounding.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.aggregates import Members, NodeGraph
from swell.distributed.amg.level import TransposedLevel
from swell.distributed.amg.rows import RankRows, together
from swell.distributed.amg.window import Border, Stacked
from swell.preconditioners.amg.aggregation import OMEGA, Aggregation, SmoothedInterpolation
from swell.preconditioners.amg.smoother import scales


class RankAggregation:
    """Makes one level after the other.

    Parameters
    ----------
    settings : SmoothedAggregation
    own : Aggregation
        Of this rank's nodes.
    """

    def __init__(self, settings, own):
        self.settings, self.own = settings, own

    def level(self, A):
        """Return the `AggregationLevel` of some RankRows. Goes on to the next level."""
        return AggregationLevel(A, self.own)

    def gathered(self, rows, whole, settings):
        """Return the `Aggregation` for ``whole``, the gathered matrix of ``rows``, and the levels below."""
        space, own = rows.space, self.own
        counts = space.ranks.allgather(own.count)
        first = sum(counts[:space.ranks.communicator.rank])
        nodes = space.xp.arange(own.modes.shape[0]) if own.nodes is None else own.nodes
        nodes = together(space, nodes.astype(np.int64) + first).astype(whole.indices.dtype)
        modes = together(space, own.modes.ravel()).reshape(-1, own.modes.shape[1])
        return Aggregation(settings, modes, nodes if sum(counts) < whole.shape[0] else None, sum(counts))

    def scales(self, rows, omega):
        """Return the diagonal of D of RankRows that are gathered."""
        return scales(rows, omega / rows.radius, self.settings.diagonal)


class AggregationLevel(TransposedLevel):
    """A level with aggregates of this rank's nodes.

    Parameters
    ----------
    A : RankRows
    aggregation : Aggregation
        Of this rank's nodes. It goes on to the next level.

    Attributes
    ----------
    interpolation : SmoothedInterpolation
        From the next level to this rank's rows.
    radius : float
        λ, of all ranks.
    """

    def __init__(self, A, aggregation):
        self._aggregation, self._diagonal = aggregation, aggregation.settings.diagonal
        super().__init__(A)

    def _reached(self):
        own = self._aggregation
        aggregates, roots, crossing = NodeGraph(self.A, own).aggregates()
        self._smoothed = crossing
        if own.nodes is not None:
            aggregates, self._smoothed = aggregates[own.nodes], crossing[own.nodes]
        self._members = Members(self.A, aggregates, roots)
        return self._members.near

    def _interpolate(self):
        A, space, window, own = self.A, self.A.space, self.window, self._aggregation
        self.radius = A.radius
        T, columns, own.modes, own.nodes = self._members.tentative(own.modes)
        own.count, self.coarse = self._members.count, columns.space
        ghost_rows = Border(A.window).rows(T, columns)
        reached = columns.with_ghosts(ghost_rows.columns)
        wide = Stacked(T, columns, ghost_rows, A.window, window, reached)
        self.interpolation = SmoothedInterpolation(self.own, wide.matrix, self._diagonal, self._smoothed, window.below,
                                                   lambda own: (self.radius, self.scales(OMEGA)), space.ranks)
        self._members = self._smoothed = None
        return RankRows(self.interpolation.P, reached, space)

    def refill(self, A):
        super().refill(A)
        self.radius = A.radius

    def _recompute_P(self):
        self.interpolation.update(self.own)

    def _release(self):
        super()._release()
        self.interpolation = None

    def scales(self, omega):
        scale = scales(self.extended.matrix, omega / self.radius, self._diagonal)
        return scale[self.window.own].copy()

    def next_scales(self, omega):
        return scales(self.next, omega / self.next.radius, self._diagonal)

    @property
    def nbytes(self):
        return super().nbytes + (0 if self.interpolation is None else self.interpolation.nbytes)
