"""Steady incompressible flow by SIMPLE: ∇·u = 0, ∇·(u u) − ∇·(ν ∇u) = −∇p (2.1, 2.2); swell solves both equations.

Patankar and Spalding 1972; SIMPLEC of Van Doormaal and Raithby 1984; Rhie and Chow 1983 for the fluxes, since velocity
and pressure share the cells' centres (Ferziger and Perić, Computational Methods for Fluid Dynamics).

An iteration, with D the diagonal of the momentum matrix A_u (2.4):

1. Solve A_u u = −V ∇p, relaxed: D/α on the diagonal, (1 − α)/α D u on the right. Convection is upwind in the matrix and
   second-order on the right (deferred). All components are one solve: the right-hand sides of one matrix, or, beside
   planes of symmetry, which fix only the normal component, the unknowns of one larger matrix (``coupling.py``).
2. Compute the fluxes φ = u_f·s − (αV/D)_f g (p_N − p_O − d·(∇p)_f) + (1 − α)(φ_old − (u_old)_f·s). They depend on the
   pressure difference across the face, not on the interpolated gradient alone, so that a chequerboard of pressures has
   an effect. The last term (Majumdar 1988) relaxes the fluxes as step 1 relaxes the velocity.
3. Solve −∇·(V/D' ∇p') = −∇·φ, (2.6) for a correction p', with D' = D/α − Σ|off-diagonal| (SIMPLEC) or D/α. The matrix
   is symmetric positive definite. With walls all round, p' is determined only up to a constant: a null space.
4. Correct: φ += flux of p' (φ then conserves to the tolerance of the solve), u −= (V/D') ∇p', p += p', relaxed.

By Majumdar's term the converged solution does not depend on α. Without it the fluxes keep 1 − α of the last velocities
in the cells, and on flat cells at bent walls the residuals stay near 1.

What differs from the textbook: convection is ∇·(u u) − u ∇·u, which is the same once φ conserves, and until then keeps
A_u an M-matrix, D' positive. The pressure at walls is extrapolated with the cell's least-squares gradient. Both
matrices keep their pattern: once the momentum solver is chosen, both solvers reuse analysis, buffers and captured
graphs, and assembly writes in place.

Cost, beside the two linear solves: 15 launches for three components (kernels/flow), and one read of six numbers.
Storage, beside the mesh's metrics and the solvers, for k components: some 12 k + 26 words a cell and 4 k + 22 a face;
the gradients' weights and inverses are a half of it.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swell.core.errors import InputError
from swell.core.settings import choose_by_none, positive, real
from swell.core.stopping import Stopping
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated, Neumann
from swell.pde.fvm.convection import check_scheme
from swell.pde.fvm.coupling import Coupling
from swell.pde.fvm.flux import Flux
from swell.pde.fvm.gradient import LeastSquares
from swell.pde.fvm.laplacian import Laplacian

if TYPE_CHECKING:
    from swell.core.preconditioner import Preconditioner
    from swell.krylov.method import Method

TOO_FAST = 1e6          # growth of the largest speed, over the boundary's and the start's, that counts as divergence
LOST = 1e10             # ratio of the residual to the first one that counts as divergence


@dataclass(frozen=True)
class SIMPLE:
    """Settings of the SIMPLE iteration.

    Attributes
    ----------
    velocity : float
        Relaxation α of the momentum equation, in (0, 1).
    pressure : float
        Fraction of p' that is added to p: 1 for SIMPLEC, about 1 − α for SIMPLE.
    consistent : bool
        True: SIMPLEC; False: SIMPLE.
    scheme : {"linear_upwind", "linear", "upwind"}
        Scheme of convection; deferred.
    rtol : float
        The iteration ends when both residuals are below it. Momentum: Σ |residual| over all cells, divided by the sum
        of boundary fluxes and pressure forces. Continuity: Σ |∇·φ| before the correction, divided by the mean flow
        through the domain's cross-section, ∫ |u| dV / L.
    maxiter : int
        Maximum of outer iterations.
    momentum, pressure_solver : str or settings object
        Methods of the two linear solves. None: the advisor chooses, once, for the first momentum matrix of a fluid
        that moves; with a preconditioner named, bicgstab.
    momentum_precond, pressure_precond : str, settings object or None
        Their preconditioners; without one, the pressure equation is scaled by its diagonal.
    momentum_rtol, pressure_rtol : float
        Relative tolerance of each linear solve in one outer iteration.
    pressure_renewal : int
        The pressure equation keeps its preconditioner until a solve takes this many iterations more than the first
        solve with it. 0: the preconditioner is recomputed in every iteration.
    """

    velocity: float = 0.8
    pressure: float = 1.0
    consistent: bool = True
    scheme: str = "linear_upwind"
    rtol: float = 1e-6
    maxiter: int = 2000
    momentum: str | type | Method | None = None
    momentum_precond: str | type | Preconditioner | None = None
    momentum_rtol: float = 0.1
    pressure_solver: str | type | Method = "cg"
    pressure_precond: str | type | Preconditioner | None = "amg"
    pressure_rtol: float = 0.02
    pressure_renewal: int = 2

    def __post_init__(self):
        choose_by_none(self, "auto", "momentum")
        check_scheme(self.scheme)
        for name, most in (("velocity", 1.0), ("pressure", 1.0 + 1e-12), ("rtol", 1.0), ("momentum_rtol", 1.0),
                           ("pressure_rtol", 1.0)):
            value = getattr(self, name)
            if not real(value) or not 0 < value < most:
                raise InputError(f"SIMPLE({name}={value!r}): expected a number above 0 and "
                                 + ("at most 1" if most > 1 else "below 1"))
        positive(self, "maxiter")
        positive(self, "pressure_renewal", minimum=0)


class Steady(Coupling):
    """One run of SIMPLE."""

    def __init__(self, flow, settings, space, forces=()):
        super().__init__(flow, settings, space, forces)
        metrics, xp = self.metrics, space.xp
        zero = {name: Dirichlet(0.0) if name in flow.pressure else Extrapolated() for name in flow.velocity}
        fixed = {name: Dirichlet(0.0) if name in flow.pressure else Neumann() for name in flow.velocity}
        self.slope_of_correction = LeastSquares(metrics, Boundary.of(metrics, zero))
        self.grad_correction = xp.zeros((3, metrics.n))
        pressure = Laplacian(metrics, Boundary.of(metrics, fixed), correction="none")
        self.g, self.floating = pressure.g, pressure.boundary.floating
        self.given = ~(self.p_sides.free | self.p_sides.natural)
        self.others = xp.zeros(metrics.owner.size)                              # the fluxes of every other iteration
        self.imbalance = xp.zeros(metrics.n)
        self.stopping = Stopping(rtol=settings.momentum_rtol, relative_to="r0")

    def run(self, start, watch):
        """Iterate from ``start`` (a FlowSolution, or None for the fluid at rest) until converged; return the
        FlowSolution. ``watch``: as in `Flow.solve`."""
        settings = self.settings
        self.begin(start)
        residuals, notes, converged, diverged = [], [], False, False
        for _ in range(settings.maxiter):
            momentum, mass, fastest = self.iterate()
            residuals.append((momentum, mass))
            self.record_forces()
            if watch is not None:
                watch(len(residuals), momentum, mass)
            if self.interrupted:
                notes.append("interrupted: this is the current iterate, from which a new run may start (start=...)")
                break
            if self.lost(fastest, TOO_FAST) or not momentum + mass <= LOST * max(sum(residuals[0]), settings.rtol):
                diverged = True
                notes.append("it diverged: relax more, velocity=0.5 (--relax 0.5), or begin with scheme='upwind'")
                break
            if len(residuals) > 1 and max(momentum, mass) <= settings.rtol:
                converged = True
                break
        if self.failed and not converged:
            notes.append(f"{self.failed}, in one iteration or more: take another preconditioner or method for it")
        solution = self.solution(converged, residuals, notes)
        solution.diverged = diverged
        return solution

    def iterate(self):
        """Do steps 1 to 4. Return the relative residual of the momentum equation and the relative
        imbalance of the fluxes, both before their correction, and the largest speed."""
        pattern = self.metrics.pattern
        self.slope(self.p, self.grad_p)
        self.momentum(self.u, self.phi, self.u, 0.0, self.settings.velocity)
        before = self.u
        self.u = self.solve_momentum(before)
        self.interpolate_fluxes(before)
        self.kernels.balance(pattern.ptr, pattern.faces, self.phi, self.way, self.imbalance, *self.measures[2:])
        self.P = pattern.matrix(Flux(self.a, self.b, None), out=self.P)
        self.update_pressure()
        self.correct(self.solve_pressure(self.imbalance))
        lost, acting, imbalance, through, fastest = self.measure()
        return lost / acting if acting else float(lost > 0), imbalance / (through or 1.0), fastest    # 0: at rest

    def interpolate_fluxes(self, before):
        """Do step 2: write the fluxes to ``phi``, and the coefficients of the pressure correction to ``a`` and ``b``.
        ``before``: the velocities before the solve."""
        metrics, settings = self.metrics, self.settings
        old, self.phi, self.others = self.phi, self.others, self.phi
        self.D_prime = self.row_sums if settings.consistent else self.D / settings.velocity
        self.kernels.rhie_chow(metrics.owner, metrics.neighbour, metrics.weight, metrics.s, metrics.d, self.g,
                               metrics.tangent, self.closed, self.given, self.side_rows, self.p_sides.share,
                               self.p_sides.offset, self.axis_numbers, settings.velocity, metrics.volumes, self.D,
                               self.D_prime, self.u, before, old, self.p, self.grad_p, self.phi, self.a, self.b)

    def correct(self, correction):
        """Do step 4, with the pressure correction p'."""
        metrics = self.metrics
        self.kernels.correct_fluxes(metrics.owner, metrics.neighbour, self.a, correction, self.phi)
        self.slope_of_correction(correction, self.grad_correction)
        self.kernels.correct_cells(self.axis_numbers, metrics.volumes, self.D_prime, correction,
                                   self.grad_correction, self.settings.pressure, self.u, self.p)
