"""Steady incompressible flow by SIMPLE: ∇·u = 0, ∇·(u u) − ∇·(ν ∇u) = −∇p (2.1, 2.2); swell solves both equations.

Patankar and Spalding 1972; SIMPLEC of Van Doormaal and Raithby 1984; Rhie and Chow 1983 for the fluxes, since velocity
and pressure share the cells' centres (Ferziger and Perić, Computational Methods for Fluid Dynamics).

An iteration, with D the diagonal of the momentum matrix A_u (2.4):

1. Solve A_u u = −V ∇p, relaxed: D/α on the diagonal, (1 − α)/α D u on the right. Convection is upwind in the matrix and
   second-order on the right (deferred). All components share one matrix, and are solved together as its right-hand
   sides; except on the diagonal at symmetry planes, which fix only the normal component.
2. Compute the fluxes φ = u_f·s − (V/D)_f g (p_N − p_O − d·(∇p)_f). They depend on the pressure difference across the
   face, not on the interpolated gradient alone, so that a chequerboard of pressures has an effect.
3. Solve −∇·(V/D' ∇p') = −∇·φ, (2.6) for a correction p', with D' = D/α − Σ|off-diagonal| (SIMPLEC) or D/α. The matrix
   is symmetric positive definite. With walls all round, p' is determined only up to a constant: a null space.
4. Correct: φ += flux of p' (φ then conserves to the tolerance of the solve), u −= (V/D') ∇p', p += p', relaxed.

What differs from the textbook: D in step 2 is not relaxed, so that the converged solution does not depend on α. The
pressure at walls is extrapolated with the cell's least-squares gradient. Both matrices keep their pattern: from the
second iteration on, both solvers reuse analysis, buffers and captured graphs, and assembly writes in place.
"""
from __future__ import annotations

import difflib
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.core.devices import make_space
from swell.core.stopping import Reason, Stopping
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated, Neumann, Symmetry, by_patch, lines
from swell.pde.fvm.convection import Convection, check_scheme
from swell.pde.fvm.gradient import LeastSquares
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.metrics import Metrics
from swell.pde.fvm.solution import FlowSolution
from swell.solving.results import Results

if TYPE_CHECKING:
    from swell.core.preconditioner import Preconditioner
    from swell.krylov.method import Method

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
        Methods of the two linear solves.
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
    momentum: str | type | Method = "bicgstab"
    momentum_precond: str | type | Preconditioner | None = "jacobi"
    momentum_rtol: float = 0.1
    pressure_solver: str | type | Method = "cg"
    pressure_precond: str | type | Preconditioner | None = None
    pressure_rtol: float = 0.02
    pressure_renewal: int = 2

    def __post_init__(self):
        check_scheme(self.scheme)
        for name, most in (("velocity", 1.0), ("pressure", 1.0 + 1e-12), ("rtol", 1.0), ("momentum_rtol", 1.0),
                           ("pressure_rtol", 1.0)):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 < value < most:
                raise InputError(f"SIMPLE({name}={value!r}): expected a number above 0 and "
                                 + ("at most 1" if most > 1 else "below 1"))
        positive(self, "maxiter")
        positive(self, "pressure_renewal", minimum=0)


class Flow:
    """A steady incompressible flow.

    Parameters
    ----------
    mesh : Mesh
    velocity : dict
        Patch name → ``Dirichlet((ux, uy, uz))`` (walls, lids, inlets), ``Neumann()`` (outlets) or ``Symmetry()``
        (planes normal to an axis). The name "*" stands for all patches that no other name fits.
    viscosity : number or array
        Kinematic viscosity, ν > 0.
    pressure : dict, optional
        Outlet name → ``Dirichlet(p)``. Everywhere else the pressure is extrapolated.

    Raises
    ------
    InputError
        For patches without a condition, outlets without a pressure, pressures for unknown patches, or, without an
        outlet, a net outflow through the boundary (the message says how much).
    """

    def __init__(self, mesh, velocity, viscosity, pressure=None):
        self.mesh, self.velocity = mesh, by_patch(mesh, velocity)
        self.viscosity, self.pressure = viscosity, dict(pressure or {})
        c = lines(mesh, self.velocity, components=3)[2]
        for name in self.pressure:
            if name not in self.velocity:
                near = difflib.get_close_matches(str(name), self.velocity, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise InputError(f"pressure: there is no patch {name!r}: {hint}There are: {', '.join(self.velocity)}")
        for name, condition in self.velocity.items():
            if isinstance(condition, (Dirichlet, Symmetry)) == (name in self.pressure):
                raise InputError(f"patch {name!r}: give either a velocity, Dirichlet((ux, uy, uz)), or Symmetry(), or "
                                 f"Neumann() with pressure={{{name!r}: Dirichlet(p)}}")
        if not self.pressure:
            through = (c * mesh.face_areas[mesh.neighbour.size:]).sum(1)
            if abs(through.sum()) > 1e-10 * np.abs(through).sum():
                raise InputError(f"the given boundary velocities let {through.sum():+.6g} out of the domain, and no "
                                 "patch is an outlet: correct them, or give one patch Neumann() and a pressure")

    def of_component(self, axis, mesh):
        """Return the conditions of the velocity component ``axis`` (0 to 2) on ``mesh``, as arrays (a, b, c) in the
        form of ``boundary.lines``.

        Raises
        ------
        InputError
            For planes of symmetry that are not normal to an axis.
        """
        a, b, c = lines(mesh, self.velocity, components=3)
        first = mesh.neighbour.size
        for patch in mesh.patches:
            name = patch.name
            if isinstance(self.velocity.get(name), Symmetry) and patch.size:
                areas = mesh.face_areas[patch.faces]
                share = np.abs(areas).sum(0) / np.linalg.norm(areas, axis=1).sum()
                if share.max() < 0.999:
                    raise InputError(f"patch {name!r}: Symmetry() takes planes normal to x, y or z; turn the mesh")
                if share[axis] > 0.5:            # u·n = 0
                    a[patch.start - first:patch.start - first + patch.size] = 1.0
                    b[patch.start - first:patch.start - first + patch.size] = 0.0
        return a, b, c[:, axis]

    def solve(self, settings=SIMPLE(), device="cpu", start=None) -> FlowSolution:
        """Iterate to the steady state.

        Parameters
        ----------
        settings : SIMPLE
        device : {"cpu", "cuda"}
        start : FlowSolution, optional
            A solution on the same mesh, for example at another Reynolds number; default: the fluid at rest.

        Returns
        -------
        FlowSolution
            After Ctrl-C: the current iterate, with a note that says so.
        """
        if not isinstance(settings, SIMPLE):
            raise InputError(f"settings={settings!r}: expected SIMPLE(...), such as SIMPLE(velocity=0.7)")
        sizes = (self.mesh.n_cells, 3), (self.mesh.n_cells,), (self.mesh.n_faces,)
        if start is not None and not isinstance(start, FlowSolution):
            raise InputError(f"start is of type {type(start).__name__}: expected the FlowSolution of an earlier solve")
        if start is not None and (start.velocity.shape, start.p.shape, start.fluxes.shape) != sizes:
            raise InputError(f"start is of a mesh of {start.p.size} cells and {start.fluxes.size} faces, and this one "
                             f"has {sizes[1][0]} and {sizes[2][0]}: solve it on the same mesh")
        space = make_space(device)
        with space.active(self.mesh.n_cells):
            return Iteration(self, settings, space).run(start)


class Iteration:
    """The state of one SIMPLE run on one device: fields, operators, and the two solvers."""

    def __init__(self, flow, settings, space):
        self.flow, self.settings, self.space = flow, settings, space
        self.metrics = metrics = Metrics(flow.mesh, space)
        self.axes = metrics.dimensions
        self.sides = {i: Boundary(metrics, *flow.of_component(i, metrics.mesh)) for i in self.axes}
        self.diffusion = {i: Laplacian(metrics, self.sides[i], flow.viscosity) for i in self.axes}
        known = {name: flow.pressure.get(name, Extrapolated()) for name in flow.velocity}
        zero = {name: Dirichlet(0.0) if name in flow.pressure else Extrapolated() for name in flow.velocity}
        fixed = {name: Dirichlet(0.0) if name in flow.pressure else Neumann() for name in flow.velocity}
        self.p_sides = Boundary.of(metrics, known)
        self.slope = LeastSquares(metrics, self.p_sides)                        # ∇p
        self.slope_of_correction = LeastSquares(metrics, Boundary.of(metrics, zero))
        self.pressure = Laplacian(metrics, Boundary.of(metrics, fixed), correction="none", interpolation="linear")
        mirrors = {name for name, condition in flow.velocity.items() if isinstance(condition, Symmetry)}
        closed = {name: Dirichlet(1.0) if name in mirrors else Neumann() for name in flow.velocity}
        self.closed = self.p_sides.natural | (Boundary.of(metrics, closed).offset != 0)     # nothing flows through
        self.mirrored = bool(mirrors)
        self.A = self.P = self.momentum_solver = self.pressure_solver = None
        self.linear_iterations, self.interrupted = [0, 0], False
        self.most = 0                            # pressure iterations at which its preconditioner is recomputed
        self.way = metrics.normal_distance / float(np.ptp(flow.mesh.face_centres, axis=0)[self.axes].max())      # d/L

    def run(self, start):
        """Iterate from ``start`` (a FlowSolution, or None for the fluid at rest) until converged; return the
        FlowSolution."""
        space, metrics, settings = self.space, self.metrics, self.settings
        xp, n = space.xp, metrics.n
        self.u = {i: xp.zeros(n) if start is None else space.from_host(start.velocity[:, i].copy()) for i in self.axes}
        self.p = xp.zeros(n) if start is None else space.from_host(start.p.copy())
        self.phi = xp.zeros(metrics.owner.size) if start is None else metrics.of_faces(start.fluxes.copy())
        self._flux_at_boundary(self.phi)
        residuals, notes, converged = [], [], False
        for _ in range(settings.maxiter):
            momentum = self.solve_momentum()
            mass = self.correct_pressure()
            residuals.append((momentum, mass))
            if self.interrupted:
                notes.append("interrupted: this is the current iterate, from which a new run may start (start=...)")
                break
            if not momentum + mass <= LOST * max(sum(residuals[0]), settings.rtol):
                notes.append("it diverged: relax more, SIMPLE(velocity=0.5), or begin with scheme='upwind'")
                break
            if len(residuals) > 1 and max(momentum, mass) <= settings.rtol:
                converged = True
                break
        if self.pressure.boundary.floating:
            self.p -= (metrics.volumes * self.p).sum() / metrics.volumes.sum()
        velocity = np.zeros((n, 3))
        for i in self.axes:
            velocity[:, i] = space.to_host(self.u[i])
        fluxes = metrics.mesh.on_mesh(space.to_host(self.phi))
        return FlowSolution(velocity, space.to_host(self.p), fluxes, converged, np.array(residuals),
                            tuple(self.linear_iterations), self.flow.mesh, notes)

    def solve_momentum(self):
        """Do step 1 (top of this file): update the velocity ``u``. Return the relative residual of the momentum
        equation before."""
        metrics, alpha, xp = self.metrics, self.settings.velocity, self.space.xp
        self.grad_p = self.slope(self.p)
        rhs, extra, outside, acting = {}, {}, slice(metrics.n_internal, None), 0.0
        for i in self.axes:
            diffusion = self.diffusion[i]
            convection = Convection(metrics, self.sides[i], self.phi, self.settings.scheme, deferred=True)
            flux = diffusion.flux() + convection.flux()
            gradient = diffusion.gradient(self.u[i])
            known = flux.c + diffusion.explicit(gradient) + convection.explicit(self.u[i], gradient)
            force = metrics.volumes * self.grad_p[i]
            rhs[i] = -metrics.divergence(known) - force
            acting = acting + abs(force).sum() + abs((flux.of(metrics, self.u[i]) + known - flux.c)[outside]).sum()
            if self.mirrored:                    # symmetry planes add to this component's diagonal only
                held = xp.zeros_like(flux.a)
                held[outside] = self.closed * flux.a[outside]
                flux.a[outside] -= held[outside]
                extra[i] = metrics.divergence(held)
        self.A = metrics.pattern.matrix(flux, out=self.A)                       # all components share it
        self.D = self.A.data[metrics.pattern.middle].copy()
        self.A.data[metrics.pattern.middle] = self.D / alpha
        self.room = self.A.row_sums()                                           # D/α − Σ|off-diagonal|
        lost = 0.0
        for i in self.axes:
            D = self.D + extra[i] if self.mirrored else self.D
            self.A.data[metrics.pattern.middle] = D / alpha
            rhs[i] += (1 - alpha) / alpha * D * self.u[i]
            r = self.space.empty(metrics.n, metrics.dtype)
            self.A.residual(self.u[i], rhs[i], r)
            lost = lost + abs(r).sum()
            if self.mirrored:                    # this component's own matrix
                self._update_momentum()
                self.u[i] = self._solved(0, self.momentum_solver.solve(rhs[i], x0=self.u[i])).x
        if not self.mirrored:
            self._update_momentum()
            b, x0 = (xp.stack([vectors[i] for i in self.axes], axis=1) for vectors in (rhs, self.u))
            for i, result in zip(self.axes, self._solved(0, self.momentum_solver.solve(b, x0=x0))):
                self.u[i] = result.x
        return float(lost / acting) if float(acting) else float(float(lost) > 0)           # 0: at rest

    def _update_momentum(self):
        """Prepare the momentum solver for the present values of the momentum matrix."""
        settings = self.settings
        self.momentum_solver = self._solver(self.momentum_solver, self.A, settings.momentum, settings.momentum_precond,
                                            None, Stopping(rtol=settings.momentum_rtol, relative_to="r0"))

    def correct_pressure(self):
        """Do steps 2 to 4 (top of this file): update ``phi``, ``p`` and ``u``. Return the relative imbalance of the
        fluxes before their correction."""
        metrics, settings = self.metrics, self.settings
        self.phi = self.interpolated_flux(metrics.volumes / self.D)
        imbalance = metrics.divergence(self.phi)
        mass = float(abs(imbalance).sum() / ((abs(self.phi) * self.way).sum() or 1.0))
        room = self.D / settings.velocity
        if settings.consistent:                  # the bound keeps D' positive while fluxes do not conserve yet
            room = self.space.xp.maximum(self.room, 0.5 * (room - self.D))
        mobility = metrics.volumes / room
        self.pressure.diffuse(mobility)
        flux = self.pressure.flux()
        self.P = metrics.pattern.matrix(flux, out=self.P)
        self.pressure_solver = self._solver(self.pressure_solver, self.P, settings.pressure_solver,
                                            settings.pressure_precond, None if settings.pressure_precond else "jacobi",
                                            Stopping(rtol=settings.pressure_rtol),
                                            "constants" if self.pressure.boundary.floating else None,
                                            keep=self.most > 0)
        if self.pressure.boundary.floating:
            imbalance -= imbalance.mean()        # no p' can produce the mean, which is rounding
        before = self.linear_iterations[1]
        correction = self._solved(1, self.pressure_solver.solve(-imbalance)).x
        count = self.linear_iterations[1] - before
        self.most = self.most or count + settings.pressure_renewal
        if count >= self.most:
            self.most = 0
        self.phi += flux.of(metrics, correction)
        gradient = self.slope_of_correction(correction)
        for i in self.axes:
            self.u[i] = self.u[i] - mobility * gradient[i]
        self.p = self.p + settings.pressure * correction
        return mass

    def interpolated_flux(self, mobility):
        """Return Rhie and Chow's fluxes φ of step 2, shape (f,); ``mobility``: V/D of each cell."""
        metrics, g = self.metrics, self.pressure.g
        inside, outside = slice(0, metrics.n_internal), slice(metrics.n_internal, None)
        phi = self.space.xp.zeros(metrics.owner.size)
        for i in self.axes:
            phi[inside] += metrics.interpolate(self.u[i]) * metrics.s[i, inside]
        seen = metrics.difference(self.p) - (metrics.d[:, inside] * metrics.interpolate(self.grad_p)).sum(0)
        phi[inside] -= metrics.interpolate(mobility) * g[inside] * seen
        self._flux_at_boundary(phi)
        cells = self.p_sides.cells
        seen = self.p_sides.values(self.p, self.grad_p) - self.p[cells]
        seen -= (metrics.d[:, outside] * self.grad_p[:, cells]).sum(0)
        phi[outside] -= ~self.p_sides.free * ~self.p_sides.natural * mobility[cells] * g[outside] * seen
        return phi

    def _flux_at_boundary(self, phi):
        """Overwrite phi on the boundary faces with u_b·s; zero through symmetry planes and patches of kind "empty"."""
        outside = slice(self.metrics.n_internal, None)
        phi[outside] = 0
        for i in self.axes:
            phi[outside] += self.sides[i].values(self.u[i]) * self.metrics.s[i, outside]
        phi[outside][self.closed] = 0

    def _solver(self, solver, A, method, precond, scaling, stopping, nullspace=None, keep=False):
        """Return a Solver for A: a new one if ``solver`` is None, else ``solver`` after an update. ``keep``: keep its
        preconditioner. The other arguments are those of ``swell.prepare``."""
        from swell.advisor.choose import default_format
        from swell.api import prepare
        if solver is not None:
            return solver.update(A, keep_preconditioner=keep)
        return prepare(A, method=method, precond=precond, scaling=scaling, format=default_format(A), stopping=stopping,
                       nullspace=nullspace)

    def _solved(self, which, result):
        """Count the iterations of a Result or Results, of the solver ``which``, and note an interruption."""
        self.linear_iterations[which] += result.iterations
        reasons = result.reasons if isinstance(result, Results) else [result.reason]
        self.interrupted |= Reason.INTERRUPTED in reasons
        return result
