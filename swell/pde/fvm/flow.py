"""Flow: incompressible laminar flow on a mesh, ∇·u = 0, ∂u/∂t + ∇·(u u) − ∇·(ν ∇u) = −∇p (2.1, 2.2).

`Flow.solve` finds the steady state by SIMPLE, `Flow.march` follows the flow in time by PISO.

Across ranks, each has its part of the mesh: a PartMesh, or a part that it takes of the whole mesh. All ranks make each
call together, the class included.
"""
from __future__ import annotations

import copy
from contextlib import nullcontext
from numbers import Number

import numpy as np

from swell.core.errors import InputError, meant
from swell.core.loop import interruptible
from swell.core.settings import differs
from swell.pde.fvm.boundary import Boundary, Dirichlet, InletOutlet, Neumann, Symmetry, by_patch, check_mesh, lines
from swell.pde.fvm.forces import Forces
from swell.pde.fvm.metrics import Metrics, numbers, space_of
from swell.pde.fvm.piso import PISO, March
from swell.pde.fvm.simple import SIMPLE, Steady
from swell.pde.fvm.solution import FlowSolution

SETTINGS = {Steady: (SIMPLE, "SIMPLE(...), such as SIMPLE(velocity=0.7)"), March: (PISO, "PISO(dt=..., end=...)")}


class Flow:
    """An incompressible flow.

    Parameters
    ----------
    mesh : Mesh
        A PartMesh is this rank's part. All ranks give the same kinds of conditions.
    velocity : dict
        Patch name → ``Dirichlet((ux, uy, uz))`` (walls, lids, inlets), ``Neumann()`` (outlets), ``InletOutlet(u)``
        (outlets where flow may come back, with the velocity u), or ``Symmetry()`` (planes of symmetry, walls without
        friction). The name "*" stands for all patches that no other name fits.
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
        check_mesh(mesh)
        self.mesh, self.viscosity = mesh, viscosity
        with mesh.agreed():
            self.velocity, self.pressure = by_patch(mesh, velocity), dict(pressure or {})
            out, size = self._check()
        if mesh.ranks is not None:
            self._require_equal_kinds(mesh.ranks)
        out, size = zip(*mesh.of_ranks((out, size)))
        if not self.pressure and abs(sum(out)) > 1e-10 * sum(size):
            raise InputError(f"the given boundary velocities let {sum(out):+.6g} out of the domain, and no patch is an "
                             "outlet: correct them, or give one patch Neumann() and a pressure")

    def _check(self):
        """Raise InputError for conditions that do not fit together; return the net outflow of the given velocities,
        and the sum of its sizes by face, of this rank's boundary."""
        mesh = self.mesh
        c = lines(mesh, self.velocity, components=3)[2]
        for name in self.pressure:
            if name not in self.velocity:
                raise InputError(f"pressure: there is no patch {name!r}: {meant(name, self.velocity)}There are: "
                                 f"{', '.join(self.velocity)}")
        for name, condition in self.velocity.items():
            if isinstance(condition, (Dirichlet, Symmetry)) == (name in self.pressure):
                raise InputError(f"patch {name!r}: give either a velocity, Dirichlet((ux, uy, uz)), or Symmetry(), or "
                                 f"Neumann() with pressure={{{name!r}: Dirichlet(p)}}")
        lines(mesh, {name: self.pressure.get(name, Neumann()) for name in self.velocity})
        through = (c * mesh.face_areas[mesh.neighbour.size:]).sum(1)
        return float(through.sum()), float(np.abs(through).sum())

    def _require_equal_kinds(self, ranks):
        """Raise InputError on every rank unless all ranks give the patches the same kinds of conditions."""
        kinds = {name: type(condition).__name__ for name, condition in self.velocity.items()}
        ranks.require_equal((kinds, sorted(self.pressure)), "the conditions of the patches")

    def of_component(self, axis, mesh, entering=False):
        """Return the conditions of the velocity component ``axis`` (0 to 2) on ``mesh``, as arrays (a, b, c) in the
        form of ``boundary.lines``. ``entering``: True where the flow enters an InletOutlet."""
        conditions = {name: Dirichlet(c.value) if entering and isinstance(c, InletOutlet) else c
                      for name, c in self.velocity.items()}
        a, b, c = lines(mesh, conditions, components=3)
        return a, b, c[:, axis]

    def fluxes_of(self, velocity):
        """Return the volume fluxes of cell velocities, shape (n, 3), interpolated linearly to the faces, and u_b·s at
        boundaries, shape (f,)."""
        shape = self.mesh.n_cells, 3
        with self.mesh.agreed():
            velocity = numbers(velocity, "velocity")
            if velocity.shape != shape:
                raise InputError(f"velocity has shape {velocity.shape}: expected one vector a cell, {shape}")
        metrics = self._metrics()
        u = np.ascontiguousarray(metrics.with_ghosts(velocity).T)
        phi = np.zeros(metrics.owner.size)
        phi[:metrics.n_internal] = (metrics.interpolate(u) * metrics.s[:, :metrics.n_internal]).sum(0)
        for axis in metrics.dimensions:
            side = Boundary(metrics, *self.of_component(axis, metrics.mesh))
            phi[metrics.n_internal:] += side.values(u[axis]) * metrics.s[axis, metrics.n_internal:]
        mirrors = [p for p in metrics.mesh.patches if isinstance(self.velocity.get(p.name), Symmetry)]
        for patch in mirrors:
            phi[patch.start:patch.start + patch.size] = 0
        return metrics.mesh.on_mesh(phi)

    def forces(self, solution, names=("*",)) -> dict:
        """Return the force on each wall, for a fluid of density 1.

        Parameters
        ----------
        solution : FlowSolution
        names : sequence of str
            Names or patterns of walls; "*" stands for all of them. An inlet must be named.

        Returns
        -------
        dict
            Patch name → (pressure force, viscous force), each of shape (3,): ∫ p s and −∫ ν ∂u/∂n, the latter along the
            wall.
        """
        with self.mesh.agreed():
            self._check_solution(solution, "solution")
        metrics = self._metrics()
        forces = Forces(self, metrics, names)
        u, p = np.ascontiguousarray(metrics.with_ghosts(solution.velocity).T), metrics.with_ghosts(solution.p)
        vectors = forces(dict(enumerate(u)), p)
        return {name: (pressure, viscous) for name, (pressure, viscous) in zip(forces.patches, vectors)}

    def _metrics(self):
        return Metrics(self.mesh, space_of(self.mesh, "cpu"))

    def solve(self, settings=SIMPLE(), device="cpu", start=None, watch=None, forces=(), ranks=None) -> FlowSolution:
        """Iterate to the steady state.

        Parameters
        ----------
        settings : SIMPLE
        device : {"cpu", "cuda"}
        start : FlowSolution, optional
            A solution on the same mesh, for example at another Reynolds number; default: the fluid at rest.
        watch : callable, optional
            ``watch(iterations, momentum, continuity)`` after each iteration, with the residuals.
        forces : sequence of str
            Walls, by name or pattern, whose forces are recorded after each iteration in `FlowSolution.forces`.

        ranks : Communicator, optional
            The result of ``swell.distributed.init()``: each rank takes its part of the mesh, which every rank has
            whole, and returns the whole solution. A PartMesh knows its ranks.

        Returns
        -------
        FlowSolution
            On a PartMesh: of the rank's cells. After Ctrl-C: the current iterate, with a note that says so.
        """
        return self._run(Steady, settings, device, start, forces, ranks, watch)

    def march(self, settings, device="cpu", start=None, watch=None, forces=(), progress=None,
              ranks=None) -> FlowSolution:
        """March in time by PISO.

        Parameters
        ----------
        settings : PISO
            With the step dt and the time at the end.
        device : {"cpu", "cuda"}
        start : FlowSolution, optional
            The flow at time 0; default: the fluid at rest.
        watch : callable, optional
            ``watch(solution)`` gets the flow every ``settings.every`` time units, and at the end. All ranks give one,
            or none.
        forces : sequence of str
            Walls, by name or pattern, whose forces are recorded after each step in `FlowSolution.forces`.
        progress : callable, optional
            ``progress(time, courant, continuity)`` after each step.
        ranks : Communicator, optional
            As in `solve`.

        Returns
        -------
        FlowSolution
            The flow at the end; ``time`` says when. After Ctrl-C, or if it diverged: the last step, with a note.
        """
        return self._run(March, settings, device, start, forces, ranks, watch, progress)

    def _run(self, kind, settings, device, start, forces, ranks, watch, *progress):
        """Return the FlowSolution of one run of ``kind``, Steady or March; the other arguments as in `solve` or
        `march`."""
        across = ranks if self.mesh.ranks is None else self.mesh.ranks
        with nullcontext() if across is None else across.agreed():
            expected, example = SETTINGS[kind]
            if not isinstance(settings, expected):
                raise InputError(f"settings={settings!r}: expected {example}")
            if start is not None:
                self._check_solution(start, "start")
        if across is not None:
            self._require_equal_kinds(across)
            watched = kind is March and watch is not None        # all ranks put together the solution that it gets
            changed = {name: value for name, value in vars(settings).items()
                       if isinstance(value, (str, Number)) and differs(settings, name)}
            for value, what in ((changed, "the settings"), (start is not None, "whether there is a start"),
                                (tuple(forces), "the walls whose forces are recorded"), (watched, "whether to watch")):
                across.require_equal(value, what)
        if self.mesh.ranks is None and ranks is not None and ranks.size > 1:
            from swell.pde.fvm.across_ranks import Division
            division = Division(ranks, self.mesh)
            show = (lambda found: watch(division.whole(found))) if watched else watch
            return division.whole(self._of_part(division)._run(kind, settings, device, division.of_flow(start), forces,
                                                               None, show, *progress))
        space = space_of(self.mesh, device)
        with space.active(self.mesh.n_cells), space.ranks.deferred_errors():
            run = kind(self, settings, space, forces)
            with interruptible(run.interrupt):   # Ctrl-C between two linear solves
                return run.run(start, watch, *progress)

    def _of_part(self, division) -> "Flow":
        """Return a copy of this flow on this rank's part of the mesh."""
        flow = copy.copy(self)
        flow.mesh, flow.viscosity = division.part, division.of_part(self.viscosity)
        flow.velocity = division.conditions(self.velocity, components=3)
        flow.pressure = division.conditions(self.pressure)
        return flow

    def _check_solution(self, solution, name):
        """Raise InputError unless ``solution``, the argument ``name``, is a FlowSolution of this mesh."""
        sizes = (self.mesh.n_cells, 3), (self.mesh.n_cells,), (self.mesh.n_faces,)
        if not isinstance(solution, FlowSolution):
            raise InputError(f"{name} is of type {type(solution).__name__}: expected the FlowSolution of an earlier "
                             "solve")
        if (solution.velocity.shape, solution.p.shape, solution.fluxes.shape) != sizes:
            raise InputError(f"{name} is of a mesh of {solution.p.size} cells and {solution.fluxes.size} faces, and "
                             f"this one has {sizes[1][0]} and {sizes[2][0]}: solve it on the same mesh")
