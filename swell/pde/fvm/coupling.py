"""Coupling: the fields and operators of an incompressible flow on one device, shared by SIMPLE and PISO.

The momentum matrix has upwind convection, with the second-order part on the right (deferred); PISO's linear scheme is
in the matrix. Also here: Rhie and Chow's fluxes, and the two linear solvers, which keep analysis, buffers and captured
graphs from one update of the values to the next.

All components share one momentum matrix, and are solved together as its right-hand sides. A plane of symmetry adds to
the diagonal of component a, in proportion to nₐ², and couples it with the others on the right. The components are then
the unknowns of one larger matrix, unknown k c + i for component i of cell c. A matrix shared by all components would
converge more slowly: in flat cells the tangential components would get the large diagonal of the normal one.

Cost of ``momentum``: k + 3 launches, one pass over the faces, and two over the cells for each component. Everything
stays on the device; ``measure`` reads six numbers.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason, Stopping
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated, InletOutlet, Neumann, Symmetry
from swell.pde.fvm.convection import SCHEMES
from swell.pde.fvm.forces import Forces
from swell.pde.fvm.gradient import LeastSquares
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.metrics import Metrics
from swell.pde.fvm.slots import Side
from swell.pde.fvm.solution import FlowSolution
from swell.solving.results import Results


class Coupling:
    """The state of one run: velocity ``u``, shape (k, n), pressure ``p``, fluxes ``phi``, and the operators on them.

    Parameters
    ----------
    flow : Flow
    settings : SIMPLE or PISO
    space : Space
    forces : sequence of str
        Walls whose forces `record_forces` records.

    Attributes
    ----------
    axes : list of int
        The axis of each row of ``u``.
    sides : list of Boundary
        The conditions of each row of ``u``; their arrays are views of ``side_data``, shape (4, k, nb).
        ``side_rows``, shape (4 k, nb): the same data.
    D, row_sums : arrays, shape (n,)
        The diagonal of the momentum matrix, and D/α − Σ|off-diagonal|: the row sums of the relaxed matrix.
    extra : array, shape (k, n)
        Planes of symmetry add this to D, for each component.
    grad_p : array, shape (3, n)
    """

    def __init__(self, flow, settings, space, forces=()):
        self.flow, self.settings, self.space = flow, settings, space
        self.metrics = metrics = Metrics(flow.mesh, space)
        xp, n, faces = space.xp, metrics.n, metrics.owner.size
        self.kernels = space.kernels("swell.pde.fvm", "flow", metrics.dtype)
        self.axes, self.outside = metrics.dimensions, slice(metrics.n_internal, None)
        self.axis_numbers = space.from_host(np.array(self.axes, np.int64))
        self.at_boundary = [metrics.owner[self.outside], metrics.normal_distance[self.outside]]
        self.sides = [Boundary(metrics, *flow.of_component(i, metrics.mesh)) for i in self.axes]
        self._find_mirrors(flow)
        self.side_data = self._packed(self.sides)
        self.side_rows = _rows(self.side_data)
        self._find_inlet_outlets(flow)
        self.gradients = [LeastSquares(metrics, side) for side in self.sides]
        self._diffuse(flow.viscosity)
        known = {name: flow.pressure.get(name, Extrapolated()) for name in flow.velocity}
        self.p_sides = Boundary.of(metrics, known)
        self.closed = self.mirror | self.p_sides.natural                        # nothing flows through
        self.slope = LeastSquares(metrics, self.p_sides)                        # ∇p
        self.A = self.P = self.momentum_solver = self.pressure_solver = None
        self.at_rest = False                     # True while momentum_solver is one for a fluid at rest
        self.renewal_iterations, self.renew = 0, False      # after a solve this long P's preconditioner is renewed
        self.forces, self.recorded = Forces(flow, metrics, forces) if forces else None, []
        self.of_ranks, self._rows = flow.mesh.of_ranks, {}
        self.linear_iterations, self.failed = [0, 0], ""
        self.asked = self.interrupted = False    # to end the run: on this rank; and as all ranks know
        lows, highs = zip(*self.of_ranks((flow.mesh.points.min(axis=0), flow.mesh.points.max(axis=0))))
        extent = float((np.max(highs, axis=0) - np.min(lows, axis=0))[self.axes].max())
        self.way = metrics.normal_distance / extent                             # d/L
        k, boundary = len(self.axes), self.closed.size
        self.gradient, self.grad_p = xp.zeros((k, 3, n)), xp.zeros((3, n))
        self.a, self.b, self.deferred = xp.zeros(faces), xp.zeros(metrics.n_internal), xp.zeros((k, faces))
        self.held, self.rhs = xp.zeros((k, boundary)), xp.zeros((k, n))
        self.D, self.row_sums = xp.zeros(n), xp.zeros(n)
        self.extra = xp.zeros((k, n) if self.mirrored else (1, 1))
        self.measures, self.counted, self.record = xp.zeros((4, n)), xp.ones(n, np.uint8), xp.zeros(6)
        self.counted[metrics.own:] = 0           # the ghosts' ranks count them

    def _find_mirrors(self, flow):
        """Set the boundary of planes of symmetry: u_b = u − (u·n) n. A component's own part of it is implicit."""
        metrics = self.metrics
        names = {name for name, condition in flow.velocity.items() if isinstance(condition, Symmetry)}
        marks = {name: Dirichlet(1.0) if name in names else Neumann() for name in flow.velocity}
        self.mirror, self.mirrored = Boundary.of(metrics, marks).offset != 0, bool(names)
        self.normal = metrics.s[self.axes][:, self.outside] / metrics.area[self.outside] * self.mirror
        for along, side in zip(self.normal ** 2, self.sides):
            side.share -= along                                                 # Neumann's is 1
            side.slope += along / metrics.normal_distance[self.outside]

    def _find_inlet_outlets(self, flow):
        """Keep the values of both directions for patches where the flow may enter or leave."""
        metrics = self.metrics
        marks = {name: Dirichlet(1.0) if isinstance(c, InletOutlet) else Neumann() for name, c in flow.velocity.items()}
        self.turning = Boundary.of(metrics, marks).offset != 0
        entering = [Boundary(metrics, *flow.of_component(i, metrics.mesh, True)) for i in self.axes]
        self.both = [_rows(data) for data in (self._packed(entering), self.side_data.copy())]

    def _packed(self, sides):
        """Return the data of these Boundaries as one array, by `Side`; their own arrays become views of it."""
        xp = self.space.xp
        data = xp.stack([xp.stack([getattr(side, name.lower()) for side in sides]) for name in Side._fields])
        for i, side in enumerate(sides):
            for name, row in zip(Side._fields, data):
                setattr(side, name.lower(), row[i])
        return data

    def _diffuse(self, viscosity):
        """Set the coefficients of diffusion, and the arms of linear-upwind convection, which do not change."""
        metrics, inside, scheme = self.metrics, slice(0, self.metrics.n_internal), self.settings.scheme
        diffusion = Laplacian(metrics, self.sides[0], viscosity)
        k, g = diffusion.k, diffusion.g
        self.conductance = k * g
        self.conductance[self.outside] = k[self.outside] * metrics.area[self.outside]
        self.oblique = k[inside] * (metrics.s[:, inside] - g[inside] * metrics.d[:, inside])
        self.arms = [self.oblique, self.oblique]                                # the other schemes read none
        if scheme == "linear_upwind":
            self.arms = [metrics.face_centres[:, inside] - metrics.centres[:, metrics.owner[inside]],
                         metrics.far_centres - metrics.centres[:, metrics.neighbour]]
        self.scheme = SCHEMES.index(scheme)

    def follow_boundaries(self, u, phi):
        """Set the boundary values that depend on the flow: where it enters through an InletOutlet, and the components
        that planes of symmetry couple, from the velocities ``u`` and fluxes ``phi``."""
        self.kernels.follow(*self.at_boundary, self.normal, self.mirror, self.turning, phi[self.outside], u, *self.both,
                            self.side_rows)

    def begin(self, start):
        """Take u, p and the fluxes from ``start``, a FlowSolution, or None for the fluid at rest."""
        space, metrics = self.space, self.metrics
        xp, n = space.xp, metrics.n
        self.u, self.p, self.phi = xp.zeros((len(self.axes), n)), xp.zeros(n), xp.zeros(metrics.owner.size)
        if start is not None:
            self.u = space.from_host(np.ascontiguousarray(metrics.with_ghosts(start.velocity)[:, self.axes].T))
            self.p = space.from_host(metrics.with_ghosts(start.p).copy())
            self.phi = metrics.of_fluxes(start.fluxes.copy())
        self.follow_boundaries(self.u, self.phi)
        self._flux_at_boundary(self.phi)
        speeds = [float(abs(values).max()) for values in (self.side_data[Side.OFFSET], self.u) if values.size]
        self.fastest = max(self.of_ranks(max(speeds)))

    def measure(self):
        """Return the sums of ``measures`` over the cells of all ranks (Σ |momentum residual|, Σ forces, Σ |∇·φ|, Σ |φ|
        d/L), and the largest speed: the one read of the device in an iteration. All ranks learn of an interruption."""
        self.kernels.counted_sums(self.measures, self.counted, self.record)
        self.space.local.norm_inf(self.u.reshape(-1), self.record[4:])
        *sums, fastest, asked = zip(*self.of_ranks([*self.space.to_host(self.record).tolist()[:5], self.asked]))
        self.interrupted |= any(asked)
        return [*map(sum, sums), max(fastest)]

    def interrupt(self):
        """End the run after the present iteration, on all ranks."""
        self.asked = True

    def lost(self, now, most):
        """True if the largest speed ``now`` is not finite, or above ``most`` times the largest speed of the boundaries
        and the start."""
        if not self.fastest and math.isfinite(now):
            self.fastest = now                   # driven by pressure: the first step sets the scale
        return not now <= most * max(self.fastest, 1e-300)

    def solution(self, converged, residuals, notes, time=None) -> FlowSolution:
        """Return the present flow on the host."""
        space, metrics, p = self.space, self.metrics, self.p
        if not self.flow.pressure:               # p is determined up to a constant
            p = p - self.mean(p, metrics.volumes)
        velocity = np.zeros((metrics.own, 3))
        velocity[:, self.axes] = space.to_host(self.u).T[:metrics.own]
        fluxes = metrics.mesh.on_mesh(space.to_host(self.phi))
        forces = {name: np.array([record[k] for record in self.recorded])
                  for k, name in enumerate(self.forces.patches)} if self.forces is not None else {}
        return FlowSolution(velocity, space.to_host(p)[:metrics.own], fluxes, converged, np.array(residuals),
                            tuple(self.linear_iterations), self.flow.mesh, notes, time, forces=forces)

    def record_forces(self):
        """Record the forces of the present flow, if asked."""
        if self.forces is not None:
            self.recorded.append(self.forces(dict(zip(self.axes, self.u)), self.p))

    def mean(self, values, weights=None):
        """Return the mean of ``values`` over the cells of all ranks, weighted by ``weights`` if given; both of shape
        (n,)."""
        n_local = self.metrics.own
        if weights is None:
            moment, total = values[:n_local].sum(), n_local
        else:
            moment, total = (weights * values)[:n_local].sum(), weights[:n_local].sum()
        if not self.space.ranks.single:
            moment, total = map(sum, zip(*self.of_ranks((float(moment), float(total)))))
        return moment / total

    def momentum(self, u, phi, start, rate, relaxation):
        """Assemble the momentum equation: its matrix ``A``, ``D``, ``extra``, ``row_sums``, and the right-hand
        sides ``rhs``, with the force of ``grad_p``.

        Convection is ∇·(u u) − u ∇·u. With upwind in the matrix, A is then an M-matrix also while the fluxes do not
        conserve.

        Parameters
        ----------
        u : array, shape (k, n)
            The velocities of the explicit terms.
        phi : array, shape (f,)
            The fluxes that carry momentum.
        start : array, shape (k, n)
            The velocities of the relaxation and of the time term; ``measures`` gets the residual there.
        rate : float
            The time term is ``rate`` V (u − start).
        relaxation : float
            α: D/α is on the diagonal, and (1 − α)/α D start on the right.
        """
        metrics, pattern, kernels = self.metrics, self.metrics.pattern, self.kernels
        self.follow_boundaries(u, phi)
        for component, gradient, out in zip(u, self.gradients, self.gradient):
            gradient(component, out)
        kernels.momentum_fluxes(metrics.owner, metrics.neighbour, metrics.weight, self.conductance, self.oblique,
                                metrics.tangent, *self.arms, self.scheme, phi, u, _rows(self.gradient), self.side_rows,
                                self.mirror, self.a, self.b, self.deferred, self.held)
        if self.A is None:
            self.A = pattern.empty_matrix(len(self.axes) if self.mirrored else 1)
        kernels.momentum_rows(pattern.ptr, pattern.faces, pattern.places, pattern.middle, pattern.indptr, metrics.owner,
                              metrics.neighbour, self.a, self.b, self.deferred, self.held, phi, self.axis_numbers,
                              metrics.volumes, relaxation, rate, start, self.grad_p, self.A.data, self.D, self.row_sums,
                              self.extra, self.rhs, self.measures[0], self.measures[1])
        self.A.discard_adjoint()
        for values in (self.D, self.row_sums):
            metrics.refresh(values)

    def unknowns(self, u):
        """Return u, shape (k, n), as vectors that ``A`` multiplies, one a row: u itself, or all components in one."""
        return self.space.xp.ascontiguousarray(u.T).reshape(1, -1) if self.mirrored else u

    def components(self, x):
        """Return vectors of ``unknowns``, one a row, as an array of shape (k, n)."""
        return self.space.xp.ascontiguousarray(x.reshape(-1, len(self.axes)).T) if self.mirrored else x

    def solve_momentum(self, start):
        """Return the velocities, shape (k, n), that solve the assembled momentum equation. ``start``: where the solve
        begins."""
        A = self.across(self.A)
        if self.momentum_solver is None:
            self.momentum_solver = self._momentum_solver(A)
        else:
            self.momentum_solver.update(A)
        local = slice(0, self.metrics.own)
        b, x0 = self.unknowns(self.rhs[:, local]), self.unknowns(start[:, local])
        results = self._solved(0, self.momentum_solver.solve(b.T, x0=x0.T))
        if self.at_rest:                         # the next matrix, with convection, needs another method
            self.momentum_solver = None
        return self.with_ghosts(self.components(self.space.xp.stack([result.x for result in results])))

    def across(self, A):
        """Return A as the linear solvers take it: across ranks, a DistributedMatrix of the rows of the rank's cells."""
        if self.space.ranks.single:
            return A
        from swell.pde.fvm.across_ranks import RankMatrix
        if A not in self._rows:
            self._rows[A] = RankMatrix(self.metrics, A, self.space.name)
        return self._rows[A].update(A)

    def with_ghosts(self, values):
        """Return values of the rank's cells, shape (..., own), followed by the ghosts' values; unchanged on one
        device."""
        metrics, space = self.metrics, self.space
        if space.ranks.single:
            return values
        wider = space.empty((*values.shape[:-1], metrics.n), metrics.dtype)
        wider[..., :metrics.own] = values
        return metrics.refresh(wider)

    def _momentum_solver(self, A):
        """Prepare the solver of the momentum equation with the matrix A. With momentum=None it is the advisor's first
        choice, but no direct method, which would factor every matrix anew for one or two digits."""
        from swell.api import prepare
        from swell.formats.symmetry import hermitian
        settings, stopping = self.settings, self.stopping
        method, precond, scaling = settings.momentum, settings.momentum_precond, None
        self.at_rest = False
        if method is None and precond is not None:
            method = "bicgstab"
        elif method is None:
            self.at_rest = hermitian(A)                                         # only then is A Hermitian
            method, precond = "bicgstab", "jacobi"
            if not self.at_rest:
                method, precond, scaling = self._advised(A)
        return prepare(A, method=method, precond=precond, scaling=scaling, stopping=stopping)

    def _advised(self, A):
        """Return the advisor's first choice for A that takes a preconditioner: its method, preconditioner and scaling.

        The advisor predicts times on one device only. So each rank asks for its own rows, and all ranks take the choice
        of the first rank where the fluid moves."""
        from swell.advisor.choose import choose
        from swell.core.configuration import Configuration
        from swell.formats.symmetry import hermitian

        def parts(block):
            choices = choose(block, Configuration(None))[0]                     # the most promising comes first
            best = next(choice for choice in choices if choice.method.preconditionable)
            return best.method, best.precond, best.scaling

        if self.space.ranks.single:
            return parts(A)
        local, choice = A.diagonal_block, None
        with self.space.ranks.agreed():
            if not hermitian(local):
                choice = parts(local)
        rank_choices = self.space.ranks.allgather(choice)
        return next((choice for choice in rank_choices if choice is not None), ("bicgstab", "jacobi", None))

    def update_pressure(self):
        """Prepare or update the solver of the pressure equation for the values of ``P``. It keeps its preconditioner
        until a solve has taken ``pressure_renewal`` iterations more than the first one with it."""
        from swell.api import prepare
        settings, P = self.settings, self.across(self.P)
        if self.pressure_solver is not None:
            if self.renew:
                self.renewal_iterations = 0      # the first solve with the new preconditioner sets it
            self.pressure_solver.update(P, keep_preconditioner=not self.renew)
            self.renew = False
            return
        self.pressure_solver = prepare(P, method=settings.pressure_solver, precond=settings.pressure_precond,
                                       scaling=None if settings.pressure_precond else "jacobi",
                                       nullspace="constants" if self.floating else None,
                                       stopping=Stopping(rtol=settings.pressure_rtol))

    def solve_pressure(self, b, x0=None):
        """Return the pressure, or its correction, for the right-hand side b, which is overwritten."""
        if self.floating:
            b -= self.mean(b)                    # no p can produce the mean, which is rounding
        local = slice(0, self.metrics.own)
        result = self._solved(1, self.pressure_solver.solve(b[local], x0=None if x0 is None else x0[local]))
        self.renewal_iterations = self.renewal_iterations or result.iterations + self.settings.pressure_renewal
        self.renew |= result.iterations >= self.renewal_iterations
        return self.with_ghosts(result.x)

    def through(self, u):
        """Return u_f·s on the internal faces, for velocities interpolated linearly."""
        metrics = self.metrics
        return (metrics.interpolate(u) * metrics.s[self.axes, :metrics.n_internal]).sum(0)

    def _flux_at_boundary(self, phi):
        """Overwrite phi on the boundary faces with u_b·s; zero through symmetry planes and patches of kind "empty"."""
        outside = self.outside
        through = (side.values(u) * self.metrics.s[i, outside] for i, u, side in zip(self.axes, self.u, self.sides))
        phi[outside] = sum(through)
        phi[outside][self.closed] = 0

    def _solved(self, which, result):
        """Count the iterations of a Result or Results, of the solver ``which``, and note an interruption."""
        self.linear_iterations[which] += result.iterations
        reasons = result.reasons if isinstance(result, Results) else [result.reason]
        self.interrupted |= Reason.INTERRUPTED in reasons
        wrong = [reason for reason in reasons if reason not in (Reason.CONVERGED, Reason.INTERRUPTED)]
        if wrong and not self.failed:
            self.failed = f"the solve for {('the velocity', 'the pressure')[which]} ended with {wrong[0].name}"
        return result


def _rows(array):
    """Return an array of three dimensions as a table of its rows; a view."""
    return array.reshape(array.shape[0] * array.shape[1], array.shape[2])
