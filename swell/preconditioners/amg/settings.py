"""AMG: classical algebraic multigrid. Ruge and Stüben 1987; in the form for GPUs of Li, Sjögreen and Yang 2021.

For symmetric positive (semi)definite matrices whose large off-diagonal entries are negative: diffusion, pressure, heat,
finite volumes and linear elements, isotropic or not, with jumping coefficients. The number of CG iterations hardly
depends on the number of unknowns. hierarchy.py builds the levels, cycle.py applies them.

Setup: PMIS coarsening, extended+i interpolation with at most 4 entries a row, Galerkin products in double precision.
An application is a V(1, 1) cycle: two products with A and one each with P and Pᵀ on each level, in single precision.
Together they read some 6.5 times the entries of A. Storage: the levels in double precision for `update`, and the
matrices of the cycle.

Differs from the textbook: the ℓ1 diagonal balances smoother and matrices. So all entries of the cycle are about 1, and
a smoothing step is a plain product (cycle.py). Rows with large positive entries stay on every level (strength.py).
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.registry import rank_operator
from swell.core.settings import choose_by_none, one_of, positive, share
from swell.preconditioners.amg.classical import Classical
from swell.preconditioners.amg.multigrid import SmoothedMultigrid
from swell.preconditioners.amg.nodes import like_elasticity, unknowns
from swell.preconditioners.amg.operator import AMGOperator
from swell.preconditioners.amg.symmetry import Symmetry


@dataclass(frozen=True)
class AMG(SmoothedMultigrid):
    """Classical algebraic multigrid.

    Attributes
    ----------
    strength : float, optional
        θ: a link is strong if −aᵢⱼ is at least θ times the largest −aᵢₖ of its row. 0.5 coarsens 3D problems less.
        None: 0.25, and up to 0.5 in rows with positive off-diagonal entries (strength.py).
    max_row_sum : float
        Rows whose entries sum to more than this share of their diagonal have no strong links; 1 or more: no such rule.
    interpolation : {"extended", "direct"}
        Extended+i; or direct interpolation, which is cheaper and takes more iterations.
    pmax : int
        Most entries of a row of P.
    positive : float
        Rows with an aᵢⱼ above this share of aᵢᵢ stay on every level, if at most one row in a hundred has one; 0: off.
    smoother : {"chebyshev", "l1_jacobi"}
        Chebyshev polynomials of the fourth kind, or plain steps; both with the ℓ1 diagonal.
    degree : int
        Products with A in a smoothing step, 1 to 4.
    cycle : {"V", "W"}
        "W": the three levels below the finest are visited twice, with fewer and dearer iterations.
    coarsest : int, optional
        Most rows of a level that is not coarsened further; a dense inverse solves it. None: 300 on a CPU, 1000 on a GPU
        and for a complex matrix.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle, also for complex numbers. The setup always works in double precision.
    restriction : {"transpose", "adjoint"}
        The restriction for a nonsymmetric matrix: Pᵀ, or the transposed interpolation of Aᴴ.
    """

    strength: float | None = None
    max_row_sum: float = 0.9
    interpolation: str = "extended"
    pmax: int = 4
    positive: float = 0.05
    restriction: str = "transpose"

    problem = "large off-diagonal entries negative: diffusion with or without convection, damped waves"
    cost = "a V-cycle: some 6.5 times the entries of A in single precision"
    across_ranks = True
    against_scaling = "AMG takes its interpolation from row sums, which a scaling changes: compare without it"

    def __post_init__(self):
        super().__post_init__()
        positive(self, "pmax", most=16)
        choose_by_none(self, "auto", "strength")
        share(self, "strength", most=1)
        share(self, "max_row_sum")
        share(self, "positive")
        one_of(self, "interpolation", ("extended", "direct"))
        one_of(self, "restriction", ("transpose", "adjoint"))

    def coarsening(self, A):
        return Classical(A, self, Symmetry.of(A))

    def links(self):
        return f"strength={self.strength} and max_row_sum={self.max_row_sum:g}"

    def build(self, A):
        """Return the cycle for a matrix, a new `AMGOperator`, which also says what is raised."""
        if not A.space.ranks.single:
            return rank_operator("amg")(A, self)
        operator = AMGOperator(A, self)
        if operator.inner.symmetry.real and like_elasticity(A):
            operator.advice = (
                f"AMG treats the {unknowns(A)} unknowns of a node as if each were a problem of its own, and A couples "
                "them as elasticity does: SmoothedAggregation, best with coordinates=, takes far fewer iterations",)
        return operator
