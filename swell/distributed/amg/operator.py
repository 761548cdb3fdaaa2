"""Multigrid across ranks as a preconditioner: hierarchy and cycle of a DistributedMatrix."""
from __future__ import annotations

from swell.distributed.amg.cycle import RankCycle
from swell.distributed.amg.hierarchy import RankHierarchy
from swell.preconditioners.amg.operator import AMGOperator


class RankAMG(AMGOperator):
    """A multigrid cycle as a preconditioner of a DistributedMatrix.

    Every rank gets the same coarse rows, and the same bits of all levels, as one device would. `AMGOperator` says what
    is raised; here every rank raises it.
    """

    def _cycle(self, A):
        return RankCycle(RankHierarchy(A, self.settings), self.settings.dtype)

    def describe(self):
        h = self.hierarchy
        return super().describe() + f"; {len(h.levels)} levels in parts, the others whole on every rank"
