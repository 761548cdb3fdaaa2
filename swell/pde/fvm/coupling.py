"""Coupling: the fields and operators of an incompressible flow on one device, shared by SIMPLE and PISO.

The momentum matrix, convection upwind in the matrix and second-order on the right (deferred); Rhie and Chow's fluxes;
the two linear solvers, which keep analysis, buffers and captured graphs from one update of the values to the next.

All components share one momentum matrix, and are solved together as its right-hand sides; except beside planes of
symmetry, which add nₐ² to the diagonal of component a, and couple it with the others on the right.
"""
from __future__ import annotations

import math
from abc import ABC

import numpy as np

from swell.core.stopping import Reason
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated, InletOutlet, Neumann, Symmetry
from swell.pde.fvm.convection import Convection
from swell.pde.fvm.forces import Forces
from swell.pde.fvm.gradient import LeastSquares
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.metrics import Metrics
from swell.pde.fvm.solution import FlowSolution
from swell.solving.results import Results


class Coupling(ABC):
    """The state of one run: velocity ``u`` by axis, pressure ``p``, fluxes ``phi``, and the operators on them.

    Parameters
    ----------
    flow : Flow
    settings : SIMPLE or PISO
    space : Space
    forces : sequence of str
        Walls whose forces `record` records.
    """

    def __init__(self, flow, settings, space, forces=()):
        self.flow, self.settings, self.space = flow, settings, space
        self.metrics = metrics = Metrics(flow.mesh, space)
        self.axes, self.outside = metrics.dimensions, slice(metrics.n_internal, None)
        self.sides = {i: Boundary(metrics, *flow.of_component(i, metrics.mesh)) for i in self.axes}
        self._mirrors(flow)
        self._inlet_outlets(flow)
        self.diffusion = {i: Laplacian(metrics, self.sides[i], flow.viscosity) for i in self.axes}
        known = {name: flow.pressure.get(name, Extrapolated()) for name in flow.velocity}
        self.p_sides = Boundary.of(metrics, known)
        self.closed |= self.p_sides.natural                                     # nothing flows through
        self.slope = LeastSquares(metrics, self.p_sides)                        # ∇p
        self.A = self.P = self.momentum_solver = self.pressure_solver = None
        self.forces, self.recorded = Forces(flow, metrics, forces) if forces else None, []
        self.linear_iterations, self.interrupted, self.failed = [0, 0], False, ""
        lows, highs = zip(*flow.mesh.of_ranks((flow.mesh.points.min(0), flow.mesh.points.max(0))))
        extent = float((np.max(highs, axis=0) - np.min(lows, axis=0))[self.axes].max())
        self.way = metrics.normal_distance / extent * (metrics.owner < metrics.own)                     # d/L, once a face
        self.of_ranks, self.systems = flow.mesh.of_ranks, {}

    def _mirrors(self, flow):
        """Set the boundary of planes of symmetry: u_b = u − (u·n) n, of which the part of the component itself is
        implicit."""
        metrics = self.metrics
        names = {name for name, condition in flow.velocity.items() if isinstance(condition, Symmetry)}
        marks = {name: Dirichlet(1.0) if name in names else Neumann() for name in flow.velocity}
        self.closed = Boundary.of(metrics, marks).offset != 0
        self.mirrored = bool(names)
        self.normal = metrics.s[:, self.outside] / metrics.area[self.outside] * self.closed
        for i, side in self.sides.items():
            along = self.normal[i] ** 2
            side.share -= self.closed * along                                   # Neumann's is 1
            side.slope += along / metrics.normal_distance[self.outside]

    def _inlet_outlets(self, flow):
        """Keep the values of both directions for patches where the flow may enter or leave."""
        metrics = self.metrics
        marks = {name: Dirichlet(1.0) if isinstance(c, InletOutlet) else Neumann() for name, c in flow.velocity.items()}
        self.turning = Boundary.of(metrics, marks).offset != 0
        self.turns = any(isinstance(c, InletOutlet) for c in flow.velocity.values())
        if self.turns:
            entering = {i: Boundary(metrics, *flow.of_component(i, metrics.mesh, True)) for i in self.axes}
            self._both = {i: [(getattr(entering[i], name), getattr(self.sides[i], name).copy())
                              for name in ("share", "offset", "slope", "rate")] for i in self.axes}

    def follow_boundaries(self, u, phi):
        """Set the boundary values that depend on the flow: where it enters through an InletOutlet, and the components
        that planes of symmetry couple, from the velocities ``u`` and fluxes ``phi``."""
        xp, metrics = self.space.xp, self.metrics
        if self.turns:
            entering = self.turning & (phi[self.outside] < 0)
            for i, side in self.sides.items():
                for name, (there, out) in zip(("share", "offset", "slope", "rate"), self._both[i]):
                    old = getattr(side, name)
                    old[...] = xp.where(self.turning, xp.where(entering, there, out), old)
        if self.mirrored:
            cells, distance = self.p_sides.cells, metrics.normal_distance[self.outside]
            for i, side in self.sides.items():
                others = sum((self.normal[j] * u[j][cells] for j in self.axes if j != i), 0 * distance)
                coupled = -self.normal[i] * others
                side.offset[...] = xp.where(self.closed, coupled, side.offset)
                side.rate[...] = xp.where(self.closed, coupled / distance, side.rate)

    def begin(self, start):
        """Take u, p and the fluxes from ``start``, a FlowSolution, or None for the fluid at rest."""
        space, metrics = self.space, self.metrics
        xp, n = space.xp, metrics.n
        self.u, self.p, self.phi = {i: xp.zeros(n) for i in self.axes}, xp.zeros(n), xp.zeros(metrics.owner.size)
        if start is not None:
            velocity = metrics.with_ghosts(start.velocity)
            self.u = {i: space.from_host(velocity[:, i].copy()) for i in self.axes}
            self.p = space.from_host(metrics.with_ghosts(start.p).copy())
            self.phi = metrics.of_fluxes(start.fluxes.copy())
        self.follow_boundaries(self.u, self.phi)
        self._flux_at_boundary(self.phi)
        speeds = [abs(self.sides[i].offset).max() for i in self.axes if self.sides[i].offset.size]
        self.fastest = max(self.of_ranks(max(float(v) for v in [*speeds, *(abs(u).max() for u in self.u.values())])))

    def lost(self, most):
        """True if a speed is not finite, or above ``most`` times the largest that boundaries and start have."""
        now = max(self.of_ranks(max(float(abs(u[:self.metrics.own]).max()) for u in self.u.values())))
        if not self.fastest and math.isfinite(now):
            self.fastest = now                   # driven by pressure: the first step sets the scale
        return not now <= most * max(self.fastest, 1e-300)

    def record(self):
        """Record the forces of the present flow, if asked."""
        if self.forces is not None:
            self.recorded.append(self.forces(self.u, self.p))

    def solution(self, converged, residuals, notes, time=None) -> FlowSolution:
        """Return the present flow on the host."""
        space, metrics, p = self.space, self.metrics, self.p
        if not self.flow.pressure:               # p is determined up to a constant
            p = p - self.total(metrics.volumes * p) / self.total(metrics.volumes)
        velocity = np.zeros((metrics.own, 3))
        for i in self.axes:
            velocity[:, i] = space.to_host(self.u[i][:metrics.own])
        fluxes = metrics.mesh.on_mesh(space.to_host(self.phi))
        forces = {name: np.array([found[k] for found in self.recorded])
                  for k, name in enumerate(self.forces.patches)} if self.forces is not None else {}
        return FlowSolution(velocity, space.to_host(p[:metrics.own]), fluxes, converged, np.array(residuals),
                            tuple(self.linear_iterations), self.flow.mesh, notes, time, forces=forces)

    def total(self, values) -> float:
        """Return the sum over the cells of all ranks."""
        return sum(self.of_ranks(float(values[:self.metrics.own].sum())))

    def momentum(self, u, phi):
        """Assemble convection and diffusion of the momentum equation into the matrix ``A``, with its diagonal in ``D``.

        Convection is ∇·(u u) − u ∇·u, so that A is an M-matrix also while the fluxes do not conserve.

        Parameters
        ----------
        u : dict of arrays, shape (n,)
            The velocities of the explicit terms.
        phi : array, shape (f,)
            The fluxes that carry momentum.

        Returns
        -------
        known : dict of arrays, shape (n,)
            The right-hand side of each axis, without pressure.
        extra : dict of arrays, shape (n,)
            What symmetry planes add to the diagonal of each axis; empty without any.
        acting : array, shape ()
            Σ |flux of momentum| through the boundary.
        """
        metrics, xp, outside = self.metrics, self.space.xp, self.outside
        self.follow_boundaries(u, phi)
        known, extra, acting = {}, {}, 0.0
        for i in self.axes:
            diffusion = self.diffusion[i]
            convection = Convection(metrics, self.sides[i], phi, self.settings.scheme, deferred=True)
            flux = diffusion.flux() + convection.flux()
            gradient = diffusion.gradient(u[i])
            explicit = flux.c + diffusion.explicit(gradient) + convection.explicit(u[i], gradient)
            known[i] = -metrics.divergence(explicit)
            acting = acting + abs((flux.of(metrics, u[i]) + explicit - flux.c)[outside]).sum()
            if self.mirrored:                    # symmetry planes add to this component's diagonal only
                held = xp.zeros_like(flux.a)
                held[outside] = self.closed * flux.a[outside]
                flux.a[outside] -= held[outside]
                extra[i] = metrics.divergence(held)
        self.A = metrics.pattern.matrix(flux, out=self.A)                       # all components share it
        self.D = self.A.data[metrics.pattern.middle] - metrics.divergence(phi)
        self.A.data[metrics.pattern.middle] = metrics.refresh(self.D)
        return known, extra, acting

    def interpolated_flux(self, mobility):
        """Return Rhie and Chow's fluxes φ, shape (f,); ``mobility``: αV/D of each cell, α the relaxation."""
        metrics, g = self.metrics, self.pressure.g
        inside, outside = slice(0, metrics.n_internal), slice(metrics.n_internal, None)
        phi = self.space.xp.zeros(metrics.owner.size)
        phi[inside] = self.through(self.u)
        seen = metrics.difference(self.p) - (metrics.d[:, inside] * metrics.interpolate(self.grad_p)).sum(0)
        phi[inside] -= metrics.interpolate(mobility) * g[inside] * seen
        self._flux_at_boundary(phi)
        cells = self.p_sides.cells
        seen = self.p_sides.values(self.p, self.grad_p) - self.p[cells]
        seen -= (metrics.d[:, outside] * self.grad_p[:, cells]).sum(0)
        phi[outside] -= ~self.p_sides.free * ~self.p_sides.natural * mobility[cells] * g[outside] * seen
        return phi

    def through(self, u):
        """Return u_f·s on the internal faces, for velocities interpolated linearly."""
        metrics = self.metrics
        return sum(metrics.interpolate(u[i]) * metrics.s[i, :metrics.n_internal] for i in self.axes)

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
        if not self.space.single_rank:
            from swell.pde.fvm.across_ranks import RankMatrix
            if solver is None:
                self.systems[id(A)] = RankMatrix(self.metrics, A, self.space.local.name)
            A = self.systems[id(A)].update(A)
        if solver is not None:
            return solver.update(A, keep_preconditioner=keep)
        return prepare(A, method=method, precond=precond, scaling=scaling, format=default_format(A.diagonal_block),
                       stopping=stopping, nullspace=nullspace)

    def field(self, x):
        """Return a solver's x, for this rank's cells, as a field with ghosts."""
        if self.space.single_rank:
            return x
        values = self.space.empty(self.metrics.n, self.metrics.dtype)
        values[:x.size] = x
        return self.metrics.refresh(values)

    def _solved(self, which, result):
        """Count the iterations of a Result or Results, of the solver ``which``, and note an interruption."""
        self.linear_iterations[which] += result.iterations
        reasons = result.reasons if isinstance(result, Results) else [result.reason]
        self.interrupted |= Reason.INTERRUPTED in reasons
        if not result.converged and not self.failed:
            self.failed = f"the solve for {('the velocity', 'the pressure')[which]} ended with {reasons[0].name}"
        return result
