"""Multigrid across ranks as a preconditioner: hierarchy and cycle of a DistributedMatrix."""
from __future__ import annotations

from swell.core.errors import InputError
from swell.distributed.amg.aggregation import RankAggregation
from swell.distributed.amg.air_cycle import RankAIRCycle
from swell.distributed.amg.classical import RankClassical
from swell.distributed.amg.cycle import RankCycle
from swell.formats.symmetry import hermitian
from swell.preconditioners.amg.air import AIROperator
from swell.preconditioners.amg.operator import AMGOperator
from swell.preconditioners.amg.symmetry import Symmetry

LEAN, KEPT = 60, 200    # bytes an entry of A at the peak of a setup: levels dropped one by one, or kept for `update`


class RankAMG(AMGOperator):
    """A multigrid cycle as a preconditioner of a DistributedMatrix.

    Every rank gets the same coarse rows, and the same bits of all levels, as one device would. Errors are as in
    `AMGOperator`, on every rank. A must be real, with an entry (j, i) wherever it has one (i, j).
    """

    def _cycle(self, A):
        self.inner = self.hierarchy = None       # frees the memory of an earlier cycle
        symmetry, settings = Symmetry.of(A), self.settings
        coarsening = self._coarsening(A, symmetry)
        space, nnz = A.space, A.own.nnz + A.rest.nnz
        with space.ranks.agreed():
            space.local.check_fits(LEAN * nnz, f"algebraic multigrid for {nnz} entries a rank", "start more ranks")
        lean = bool(space.ranks.max(KEPT * nnz > space.memory()[0]))
        cycle = RankCycle(A, settings, symmetry, coarsening, lean)
        self.hierarchy = cycle.hierarchy
        return cycle

    def _coarsening(self, A, symmetry):
        """Return the object that makes the levels; check ``settings`` before."""
        _check(A, self.settings, symmetry)
        return RankClassical(self.settings, symmetry)

    def in_double_precision(self, why):
        return None if self.hierarchy.lean else super().in_double_precision(why)

    def _stays(self, A):
        return not self.hierarchy.lean and super()._stays(A)

    @property
    def notes(self):
        notes = super().notes
        return (*notes, f"{type(self.settings).__name__}: the levels' setup does not fit beside the cycle and was "
                        "dropped, so that new values build multigrid anew") if self.hierarchy.lean else notes

    def describe(self):
        return described(super().describe(), self.hierarchy)


class RankSmoothedAggregation(RankAMG):
    """A cycle of smoothed aggregation as a preconditioner of a DistributedMatrix.

    Errors are as in `AMGOperator` and `SmoothedAggregation.coarsening`, on every rank."""

    def _coarsening(self, A, symmetry):
        return RankAggregation(self.settings, self.settings.coarsening(A))


class RankAIR(AIROperator):
    """A cycle of AIR as a preconditioner of a DistributedMatrix, with the levels of one device.

    Errors are as in `AMGOperator`, on every rank. It has no adjoint."""

    def _cycle(self, A):
        self.inner = self.hierarchy = None       # frees the memory of an earlier cycle
        nnz = A.own.nnz + A.rest.nnz
        with A.space.ranks.agreed():
            A.space.local.check_fits(self.settings.entry_bytes * nnz, f"AIR for {nnz} entries a rank",
                                     "start more ranks")
        cycle = RankAIRCycle(A, self.settings)
        self.hierarchy = cycle.hierarchy
        return cycle

    def describe(self):
        return described(super().describe(), self.hierarchy)


def described(text, hierarchy):
    """Return ``text`` with the number of levels in parts."""
    return f"{text}; {len(hierarchy.levels)} levels in parts, the others whole on every rank"


def _check(A, settings, symmetry):
    """Raise InputError, on every rank, for settings that work on one device only."""
    instead = "use precond='schwarz(inner=amg)', multigrid of each rank's rows"
    if symmetry.complex:
        raise InputError(f"AMG across ranks got a matrix of {A.dtype.name}: expected a real one; {instead}")
    if settings.restriction != "transpose":
        raise InputError(f"AMG(restriction={settings.restriction!r}) works on one device: across ranks leave it out")
    if not symmetry.symmetric and not hermitian(A.absolute().power(0)):
        raise InputError("AMG across ranks got a matrix that has an entry (i, j) and none at (j, i): expected a "
                         f"symmetric pattern, in which zeros may be stored; or {instead}")
