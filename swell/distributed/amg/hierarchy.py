"""The levels of multigrid across ranks: large levels in parts, small ones whole on every rank.

While a level has many rows a rank, a `RankLevel` makes the next one. Below that, messages would take longer than the
work: the ranks gather the matrix, and each of them makes and applies all further levels alone. Equal work on equal
numbers gives equal bits, so nothing is sent back.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from swell.distributed.amg.rows import RankRows, together
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.amg.hierarchy import COARSEST, STALLED, Hierarchy

# A level with at most this number of rows a rank is gathered.
GATHERED = {"cpu": 2000, "cuda": 50_000}


class RankHierarchy(Hierarchy):
    """The levels of a distributed matrix.

    Parameters
    ----------
    A : DistributedMatrix
    settings : AMG, SmoothedAggregation or AIR
    coarsening : RankClassical, RankAggregation or RankLocalRestriction
        Makes the levels.
    lean : bool
        Drop what `update` would need, level after level, to save memory.
    cycle : RankCycle, optional
        It makes the products of each `RankLevel`, by `begin` and `complete`; None: the caller makes all afterwards.

    Attributes
    ----------
    levels : list of RankLevel
        From the finest.
    below : Hierarchy or None
        The other levels, whole on every rank, from the gathered matrix on; None if coarsening ended before.
    last : RankRows
        The matrix that is gathered.
    stalled : RankLevel or None
        The last level in parts if coarsening ended there.
    ended : str
        Why the coarsest level was not coarsened further; empty if it is small.
    space : Space
        Of this rank's parts of vectors.
    """

    def __init__(self, A, settings, coarsening, lean=False, cycle=None):
        self.settings, self.levels, self.space, self.lean = settings, [], A.space.local, lean
        rows = RankRows.of(A, np.float64)
        while not _few(rows) and len(self.levels) < settings.levels - 1:
            level = coarsening.level(rows)
            if lean or not self.levels:          # the level has a copy; those below the first are updated in place
                rows.forget()
            if not 0 < level.P.shape[1] <= STALLED * rows.shape[0]:
                break
            if cycle is not None:
                cycle.begin(level)
            level.multiply(lean)
            self.levels.append(level)
            if cycle is not None:
                cycle.complete(level)
            if lean:
                level.release()
            rows = level.next
        self.last, self.below, self.stalled, self.ended = rows, None, None, ""
        if _few(rows) or len(self.levels) == settings.levels - 1:
            whole, remaining = gathered(rows), replace(settings, levels=settings.levels - len(self.levels))
            self.below = Hierarchy(whole, remaining, coarsening.gathered(rows, whole, remaining))
            self.ended = self.below.ended
        else:
            self.stalled = level
            self.ended = f"{level.P.shape[1]} of {rows.shape[0]} rows would stay"

    def update(self, A):
        """Recompute all levels, in place, for new values of the DistributedMatrix A, with the same pattern."""
        rows = RankRows.of(A, np.float64)
        for level in self.levels:
            rows = level.update(rows)
        if self.below is None:
            self.stalled.refill(rows)
        else:
            self.below.update(gathered(rows))

    @property
    def matrices(self):
        """The matrix of each level, from the finest: RankRows, then CSRMatrix."""
        below = [self.last] if self.below is None else self.below.matrices
        return [*(level.A for level in self.levels), *below]

    @property
    def dense(self) -> bool:
        """True if the coarsest level is small enough for a dense inverse."""
        return self.below is not None and self.below.dense

    @property
    def nbytes(self) -> int:
        """Bytes on this rank."""
        return sum(level.nbytes for level in self.levels) + (0 if self.below is None else self.below.nbytes)


def gathered(rows):
    """Return the whole matrix of some RankRows as a new CSRMatrix on every rank."""
    csr, space = rows.csr, rows.csr.space
    lengths, columns, data = (together(rows.space, part) for part in (
        csr.row_lengths().astype(np.int32), rows.window.numbers(csr.indices), csr.data))
    index = index_type(*rows.shape, data.size)
    indptr = space.empty(lengths.size + 1, index)
    space.prefix_sums(lengths, indptr)
    return CSRMatrix(space, indptr, columns.astype(index), data, rows.shape)


def _few(rows) -> bool:
    """True if a level is gathered: it has few rows a rank, or none on some rank."""
    space = rows.space
    most = GATHERED[space.name] * space.ranks.communicator.size
    return rows.shape[0] <= max(most, COARSEST[space.name]) or not np.diff(space.ranks.starts).all()
