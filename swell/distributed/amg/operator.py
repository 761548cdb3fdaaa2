"""Multigrid across ranks as a preconditioner: hierarchy and cycle of a DistributedMatrix."""
from __future__ import annotations

from swell.distributed.amg.cycle import RankCycle
from swell.preconditioners.amg.operator import AMGOperator, check, root

LEAN, KEPT = 60, 200    # bytes an entry of A at the peak of a setup: levels dropped one by one, or kept for `update`


class RankAMG(AMGOperator):
    """A multigrid cycle as a preconditioner of a DistributedMatrix.

    Every rank gets the same coarse rows, and the same bits of all levels, as one device would. `AMGOperator` says what
    is raised; here every rank raises it.
    """

    _builds = 0             # times that the cycle was built

    def _cycle(self, A):
        nnz, space = A.own.nnz + A.rest.nnz, A.space
        free = space.memory()[0]
        with space.agreed():
            space.local.check_fits(LEAN * nnz, f"algebraic multigrid for {nnz} entries a rank", "start more ranks")
        self._lean = bool(space.max_over_ranks(KEPT * nnz > free))
        return RankCycle(A, self.settings, self._lean)

    def update(self, A):
        if not self._lean:
            return super().update(A)
        check(A, type(self.settings).__name__)
        self.inner = self.hierarchy = None       # frees its memory first
        self._root, self.inner, self._builds = root(A), self._cycle(A), self._builds + 1
        self.hierarchy, self.scale = self.inner.hierarchy, self.inner.scale

    @property
    def revision(self):
        return self._builds

    @property
    def notes(self):
        found = super().notes
        return (*found, "AMG: the levels' setup does not fit beside the cycle and was dropped, so that new values "
                        "build multigrid anew") if self._lean else found

    def describe(self):
        h = self.hierarchy
        return super().describe() + f"; {len(h.levels)} levels in parts, the others whole on every rank"
