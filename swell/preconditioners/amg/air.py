"""AIR: algebraic multigrid by local approximate ideal restriction. Manteuffel, Münzenmaier, Ruge and Southworth 2019.

For nonsymmetric matrices in which convection dominates, by upwind finite volumes or differences, with any share of
diffusion. The iterations of FGMRES or BiCGSTAB hardly grow with the number of unknowns. local_restriction.py builds the
levels, air_cycle.py applies them.

Setup: PMIS coarsening, a small dense system for each coarse row, R A P in double precision. An application has no
presmoothing: coarse correction, two Jacobi sweeps over fine rows, one over coarse rows, in single precision. It reads
some 2 to 3 times the entries of all levels' matrices. Storage: the levels in double precision for `update`, and the
matrices of the cycle.

Across ranks all ranks build one multigrid, with the levels of one device (distributed/amg/air.py).

Differs from the textbook: rows are scaled by the diagonal, and all levels share one order of rows (air_cycle.py).
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.in_precision import InPrecision
from swell.core.operator import LinearOperator
from swell.core.registry import rank_operator
from swell.core.settings import positive, share
from swell.preconditioners.amg.air_cycle import AIRCycle
from swell.preconditioners.amg.local_restriction import LocalRestriction
from swell.preconditioners.amg.multigrid import Multigrid
from swell.preconditioners.amg.operator import AMGOperator


@dataclass(frozen=True)
class AIR(Multigrid):
    """Algebraic multigrid by approximate ideal restriction.

    Attributes
    ----------
    strength : float
        Links of at least this share of their row's largest one decide about coarse rows. 0.5 coarsens less.
    neighbours : float
        Links of at least this share lead to the neighbours of a coarse row, in its local system. 0.2 has thinner
        levels.
    distance : {1, 2}
        Links between a coarse row and its neighbours, at most. 1 has thinner levels and more iterations.
    drop : float
        Entries of coarse matrices below this share of their row's largest one are added to the diagonal; 0: none.
    f_sweeps : int
        Jacobi sweeps over the fine rows of a level, 1 to 4; one over the coarse rows follows.
    coarsest : int
        Most rows of a level that is not coarsened further; a dense inverse solves it. 0: 300 on a CPU, 1000 on a GPU.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision.
    """

    strength: float = 0.3
    neighbours: float = 0.05
    distance: int = 2
    drop: float = 1e-3
    f_sweeps: int = 2

    problem = "nonsymmetric, convection dominates: upwind finite volumes or differences"
    cost = "coarse correction and three sweeps in single precision: some 2.5 times the entries of all levels"
    kinds = "f"
    across_ranks = True
    against_scaling = "AIR scales rows itself, and a scaling of columns hides how strong links are: compare without it"

    positive_diagonal = False
    entry_bytes = 250
    instead = "ilu0"
    last = "Jacobi steps alone"

    def __post_init__(self):
        super().__post_init__()
        share(self, "strength", most=1)
        share(self, "neighbours", most=1)
        share(self, "drop", most=1)
        positive(self, "distance", most=2)
        positive(self, "f_sweeps", most=4)

    @property
    def form(self):
        return f"approximate ideal restriction at distance {self.distance}"

    @property
    def sweeps(self):
        return f"{self.f_sweeps} F sweeps and a C sweep"

    def coarsening(self, A):
        return LocalRestriction(self)

    def links(self):
        return f"strength={self.strength:g}"

    def build(self, A):
        """Return the cycle for a matrix, a new `AIROperator`; `AMGOperator` says what is raised."""
        return (AIROperator if A.space.ranks.single else rank_operator("air"))(A, self)


class AIROperator(AMGOperator):
    """A cycle of AIR as a preconditioner of A. It divides right-hand sides by the diagonal, and brings vectors into the
    cycle's order of rows."""

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self.shape, self._kernels = A.shape, A.space.kernels("swell.preconditioners.amg", "air_cycle", A.dtype)
        for vector in (self._x, self._y):        # also where the order has empty places
            vector.fill(0)

    def _cycle(self, A):
        self.hierarchy = self._levels(A)
        return AIRCycle(self.hierarchy)

    def _stays(self, A):
        return True

    def expect(self, norm):
        InPrecision.expect(self, norm / self._norm)

    def apply(self, x, out, alpha=1, beta=0):
        places, kind = self.inner.places, out.dtype.type
        self._kernels.enter(x, places, self.scale, True, self.factor, self._x)
        self.inner.apply(self._x, self._y)
        self._kernels.leave(self._y, places, self.scale, False, self.factor, out, kind(alpha), kind(beta))

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        places, kind = self.inner.places, out.dtype.type
        self._kernels.enter(x, places, self.scale, False, self.factor, self._x)
        self.inner.apply_adjoint(self._x, self._y)
        self._kernels.leave(self._y, places, self.scale, True, self.factor, out, kind(alpha), kind(beta))

    apply_dots, apply_dot = LinearOperator.apply_dots, LinearOperator.apply_dot
