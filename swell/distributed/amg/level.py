"""A level of multigrid across ranks: interpolation and Galerkin product from this rank's rows and rows around them.

This rank's rows of A are extended by the rows of ghosts within some links. From these rows a subclass finds this rank's
rows of P: by strong links and coarse rows (classical.py), by aggregates (aggregation.py), or of AIR (air.py). Then the
ranks exchange rows of P, as far as one link more; R A P needs no more. Rows and columns are numbered in windows
(window.py).
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.distributed.amg.galerkin import Galerkin
from swell.distributed.amg.rows import RankRows, trimmed
from swell.distributed.amg.window import Border, Stacked, own_rows, selected
from swell.formats.csr import CSRMatrix
from swell.formats.transpose import transposed


class RankLevel(ABC):
    """A matrix and its way to the next level, on one rank.

    Parameters
    ----------
    A : RankRows

    Attributes
    ----------
    A, P : RankRows
    window : Window
        This rank's rows, ghosts that columns of R reach, and those within one link more.
    extended : Stacked
        A square matrix of the window: this rank's rows of A, and the rows of ghosts that columns of R reach.
    wide : Stacked
        P with the rows of all ghosts of the window.
    R : CSRMatrix, shape (own coarse rows, window.size)
        This rank's rows of the restriction.
    coarse : DistributedSpace
        Of the next level's rows.
    next : RankRows
        The next level's matrix, R A P.
    """

    def __init__(self, A):
        self.A = A
        self._surround()
        self._rows_of_P = self.P = self._interpolate()

    @abstractmethod
    def _interpolate(self):
        """Return this rank's rows of P, a `RankRows`; set ``coarse``."""

    @abstractmethod
    def _restrict(self):
        """Set R; ``wide`` is known."""

    @abstractmethod
    def _reinterpolate(self):
        """Recompute P, ``wide`` and R, in place, for new values of ``extended``."""

    @abstractmethod
    def _release(self):
        """Drop what only `update` needs."""

    def _reached(self):
        """Return the Window of this rank's rows and of ghosts within two links: R reaches no further."""
        A = self.A
        return A.window.with_ghosts(Border(A.window).columns(A.csr, A.window))

    def _surround(self):
        """Fetch the rows of ghosts that columns of R reach."""
        A, near = self.A, self._reached()
        self._near = Border(near)
        ghost_rows = self._near.rows(A.csr, A.window)
        self.window = near.with_ghosts(ghost_rows.columns)
        self.border = Border(self.window)
        self.extended = Stacked(A.csr, A.window, ghost_rows, near, self.window, self.window)

    def multiply(self, lean):
        """Compute R and R A P; ``next`` is the next level's matrix. ``lean``: drop what only `update` needs."""
        self._widen()
        self._restrict()
        if lean:
            self._rows_of_P = None
            self._release()
        self._product = Galerkin(self.R, self.extended.matrix, self.wide.matrix)
        self.next = RankRows(*trimmed(self._coarse(), self.P.window), self.coarse)
        if lean:
            self.extended = self._product = None

    def _coarse(self):
        """Return this rank's rows of the next level's matrix, their columns numbered by the window of P."""
        return self._product.C

    def _widen(self):
        """Fetch the rows of P of all ghosts."""
        P, space = self._rows_of_P, self.A.space
        ghost_rows = self.border.rows(P.csr, P.window)
        reached = P.window.with_ghosts(ghost_rows.columns)
        self.wide = Stacked(P.csr, P.window, ghost_rows, self.window, self.window, reached)
        self.P = RankRows(own_rows(self.wide.matrix, self.window, self.wide.own), reached, space)

    def refill(self, A):
        """Take new values of A (RankRows), for this rank's rows and the ghosts'."""
        self.extended.fill(A.csr.data, self._near.entries(A.csr))

    def update(self, A):
        """Recompute P, R and R A P, in place, for new values of A (RankRows). Returns the next level's."""
        self.refill(A)
        self._reinterpolate()
        self._product.update()
        self.next.renewed()
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
        parts = self.extended, self.wide, self.R, self._product
        return sum(part.nbytes for part in parts if part is not None)


class TransposedLevel(RankLevel):
    """A level whose restriction is Pᵀ, for a smoothed cycle.

    Attributes
    ----------
    order : int array
        The place of each value of R among the values of ``wide`` in own columns.
    """

    @abstractmethod
    def _recompute_P(self):
        """Recompute this rank's rows of P, in place, for new values of ``extended``."""

    @abstractmethod
    def scales(self, omega):
        """Return the diagonal of D of this rank's rows, √(ω / (λ dᵢ)), a new float64 array (amg/balancing.py)."""

    @abstractmethod
    def next_scales(self, omega):
        """Return the result of `scales` for the next level."""

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

    def _reinterpolate(self):
        self._recompute_P()
        P = self._rows_of_P
        self.wide.fill(P.csr.data, self.border.entries(P.csr))
        self.R.data[...] = selected(self.A.space, self._inside, self.wide.matrix.data)[0][self.order]
        self.R.discard_adjoint()

    def _release(self):
        self._inside = self.order = None

    @property
    def nbytes(self):
        return super().nbytes + sum(part.nbytes for part in (self._inside, self.order) if part is not None)
