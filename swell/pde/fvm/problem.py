"""Poisson's equation and scalar transport on a mesh: the classes that users call to assemble and solve.

    p = fvm.Poisson(mesh, {"inlet": Dirichlet(1), "outlet": Dirichlet(0), "walls": Neumann()}).solve()
    p.write("pressure.vtu")
"""
from __future__ import annotations

import copy
import math
import numbers
from contextlib import nullcontext
from dataclasses import replace
from typing import Unpack

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import REAL, real
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.options import Accepted, OptionsDict
from swell.pde.fvm.boundary import by_patch, check_mesh, lines
from swell.pde.fvm.convection import check_scheme
from swell.pde.fvm.corrections import corrections, run
from swell.pde.fvm.part_mesh import PartMesh
from swell.pde.fvm.solution import PartSolution, Solution
from swell.pde.fvm.system import System
from swell.pde.fvm.time import check_step, time_terms

OPTIONS = Accepted(without=("nullspace", "block", "atol", "stopping"), rtol=1e-8, device="cpu", dtype="float64")
MIN_TOLERANCE = 1e-30   # a positive tolerance for an infinite measured residual


class LinearSolves:
    """How a problem's linear systems are solved: the options, and the tolerances of a sequence of solves.

    Attributes
    ----------
    options : Options
    rtol : float
        Relative tolerance of the equation with its corrections.
    """

    def __init__(self, options):
        self.options, self.rtol = options, options.rtol

    def prepare(self, A, floating=False):
        """Return a ``swell.Solver`` for an assembled matrix A; ``floating``: True if the null space of A holds the
        constants."""
        from swell.advisor.choose import default_format
        from swell.api import prepare
        options = replace(self.options, device=None, dtype=None, rtol=None, maxiter=None,
                          stopping=self.first(self.rtol), nullspace="constants" if floating else None,
                          format=self.options.format or default_format(A.diagonal_block))
        return prepare(A, **options.keywords())

    def first(self, rtol):
        """Return the Stopping of an equation's first linear solve, with the relative tolerance ``rtol``."""
        return Stopping(rtol=rtol, maxiter=self.options.maxiter)

    def following(self, measured, least):
        """Return the Stopping of a later solve: it reduces its first residual to the fraction 0.2 rtol / measured, but
        not below ``least``. ``measured``: the equation's relative residual before this solve."""
        return Stopping(rtol=max(least, 0.2 * self.rtol / measured, MIN_TOLERANCE), maxiter=self.options.maxiter,
                        relative_to="r0")


class Problem:
    """The base of Poisson and ScalarTransport: the checked data of an equation; ``assemble`` builds its system."""

    velocity, scheme = None, "upwind"
    accepted = OPTIONS                           # with the defaults of the kind
    scaled = True                                # scaled by the diagonal where there is no preconditioner

    def __init__(self, mesh, conditions, diffusivity, source, correction, corrections, interpolation, gradient):
        check_mesh(mesh)
        with mesh.agreed():
            conditions = by_patch(mesh, conditions)
            lines(mesh, conditions)                              # checks the conditions before anything is built
            if not isinstance(corrections, numbers.Integral) or corrections < 0:
                raise InputError(f"corrections={corrections!r}: expected a whole number of outer corrections, 0 for "
                                 "none")
        self.mesh, self.conditions, self.diffusivity, self.source = mesh, conditions, diffusivity, source
        self.correction = correction if corrections else "none"
        self.corrections, self.interpolation, self.gradient = corrections, interpolation, gradient

    def assemble(self, device="cpu", dtype="float64") -> System:
        """Return the System on a device ("cpu", "cuda") in the type ``dtype``: its ``A`` is a CSRMatrix and its ``b`` a
        vector of the system's space."""
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = ""
        if name not in REAL:
            raise InputError(f"dtype={dtype!r}: expected one of {', '.join(REAL)}")
        space = make_space(device)
        with space.active(self.mesh.n_cells):
            return System(self, space, np.dtype(name))

    def beside(self, other) -> System:
        """Return the System of this problem in the space and the type of ``other``, a System of the same mesh."""
        return System(self, other.space, other.A.dtype, other.metrics)

    def linear_solves(self, options: dict) -> LinearSolves:
        """Return how the linear systems are solved, by the keyword arguments of `solve`."""
        chosen = self.accepted.read(options)
        if chosen.scaling is None and self.scaled and chosen.configuration.precond is None:
            chosen = replace(chosen, scaling="jacobi")
        return LinearSolves(chosen)

    def of_part(self, division) -> "Problem":
        """Return a copy of this problem, restricted to this rank's part of the mesh, by a Division."""
        part = copy.copy(self)
        part.mesh, part.conditions = division.part, division.conditions(self.conditions)
        part.diffusivity, part.source = division.of_part(self.diffusivity), division.of_part(self.source)
        part.velocity = division.of_part(self.velocity) if np.ndim(self.velocity) == 2 else self.velocity
        return part

    def _steady(self, options, balance, mean, monitor=None, ranks=None) -> Solution:
        """Solve the steady equation by outer corrections, on one device or across ranks; see `Poisson.solve` for the
        arguments."""
        in_parts = isinstance(self.mesh, PartMesh)
        ranks = self.mesh.ranks if in_parts else ranks
        across = in_parts or ranks is not None and ranks.size > 1
        with ranks.agreed() if across else nullcontext():
            if not real(mean) or not math.isfinite(mean):
                raise InputError(f"mean={mean!r}: expected a finite number, the mean of p over the volume")
            solvers = self.linear_solves(options)
            device, dtype = solvers.options.device, solvers.options.dtype
        if across:
            from swell.pde.fvm.across_ranks import RankSystem
            ranks.require_equal({"correction": self.correction, "corrections": self.corrections,
                                 "interpolation": self.interpolation, "gradient": self.gradient,
                                 "scheme": self.scheme, "convection": self.velocity is not None, "balance": balance,
                                 "mean": float(mean)}, "the settings")
            system = RankSystem(ranks, self, device, dtype)
        else:
            system = self.assemble(device, dtype)
        with system.space.active(self.mesh.n_cells):
            field = self.steady_field(system, solvers, balance, mean)
            with system.space.ranks.agreed():
                solver = solvers.prepare(system.A, system.floating)
            solution, = run(solver, [field], monitor)
            return PartSolution.of(solution) if in_parts else solution

    def steady_field(self, system, solvers, balance=False, mean=0.0):
        """Check that the steady equation, assembled as ``system``, has a solution; return its `corrections`, for
        `corrections.run`. Arguments as in `_steady`."""
        if self.velocity is None:
            system.require_fixed(self.mesh)
        b, note = system.balanced(system.b, balance) if system.floating else (system.b, "")
        return corrections(self, system, solvers, b - system.b, None, mean, [note] if note else [])


class Poisson(Problem):
    """−∇·(k ∇p) = q (2.7).

    Parameters
    ----------
    mesh : Mesh
    conditions : dict
        Patch name → ``Dirichlet(value)``, ``Neumann(gradient)`` or ``Robin(a, b, c)``. Every patch needs one, except
        patches of kind "empty" or "cyclic". The name "*" stands for all patches that no other name fits, and "wall*"
        for those that begin with "wall".
    diffusivity : number, array or function
        k > 0: a number, one value a cell (n,), one a face (f,), or a function of the cells' centres (n, 3).
    source : number, array or function
        q: a number, one value a cell, or a function of the cells' centres.
    correction : {"over_relaxed", "orthogonal", "minimum", "none"}
        Non-orthogonal correction, for faces that are not normal to the line between the two cells' centres.
    corrections : int
        Maximum of solves with a corrected right-hand side; 0: no correction. They end when the residual of the
        corrected equation meets rtol. Orthogonal meshes need none.
    interpolation : {"harmonic", "linear"}
        How k is interpolated from the cells to the faces.
    gradient : {"least_squares", "gauss"}
        How the correction computes ∇p in the cells.

    Raises
    ------
    InputError
        For patches without a condition, names without a patch, values of a wrong shape.

    Examples
    --------
    >>> from swell.pde import fvm
    >>> mesh = fvm.box((16, 16))
    >>> p = fvm.Poisson(mesh, {"xmin": fvm.Dirichlet(0.0), "*": fvm.Neumann()}, source=1.0).solve()
    >>> p.converged
    True
    """

    accepted = OPTIONS.but(method="cg")

    def __init__(self, mesh, conditions, diffusivity=1.0, source=0.0, *, correction="over_relaxed", corrections=50,
                 interpolation="harmonic", gradient="least_squares"):
        super().__init__(mesh, conditions, diffusivity, source, correction, corrections, interpolation, gradient)

    @accepted.shown
    def solve(self, *, balance=False, mean=0.0, monitor=None, ranks=None, **options: Unpack[OptionsDict]) -> Solution:
        """Assemble and solve.

        Parameters
        ----------
        method, precond, ..., dtype
            See `swell.Options`. rtol holds for the equation with its corrections. The default scaling is Jacobi
            without a preconditioner, and none with one: algebraic multigrid reads row sums, which a scaling hides.
        balance : bool
            Without Dirichlet data, the source must equal the outflow at the boundary. True: a source that differs is
            shifted, and a note says so. False: it raises an error.
        mean : float
            Without Dirichlet data: the mean of p over the volume.
        monitor : callable, optional
            ``monitor(iteration, residual_norm)``, called in every linear solve; see ``swell.solve``.
        ranks : Communicator, optional
            The result of ``swell.distributed.init()``. Each rank assembles its part of the mesh, and all solve
            together. Every rank must have the whole mesh and the same data, and returns the whole solution. Not
            needed for a PartMesh (``read_mesh(case, ranks)`` of a decomposed case): it knows its ranks.

        Returns
        -------
        Solution
            On a PartMesh: each rank's PartSolution.

        Raises
        ------
        InputError
            Without Dirichlet data, for a source that differs from the outflow; the message says by how much.
        """
        return self._steady(options, balance, mean, monitor, ranks)


class ScalarTransport(Problem):
    """∂p/∂t + ∇·(u p) − ∇·(k ∇p) = q.

    Parameters
    ----------
    mesh, conditions, diffusivity, source, correction, corrections, interpolation, gradient
        See ``Poisson``.
    velocity : array or function, optional
        u: three numbers, one vector a cell (n, 3), or a function of points (k, 3). None: heat conduction.
    scheme : {"upwind", "linear", "linear_upwind"}
        How convection takes p on the faces (see ``convection.py``).
    """

    accepted = OPTIONS.but(method="bicgstab", precond="jacobi")
    scaled = False

    def __init__(self, mesh, conditions, velocity=None, diffusivity=1.0, source=0.0, *, scheme="linear_upwind",
                 correction="over_relaxed", corrections=50, interpolation="harmonic", gradient="least_squares"):
        super().__init__(mesh, conditions, diffusivity, source, correction, corrections, interpolation, gradient)
        with mesh.agreed():
            check_scheme(scheme)
        self.velocity, self.scheme = velocity, scheme

    @accepted.shown
    def solve(self, *, balance=False, mean=0.0, monitor=None, ranks=None, **options: Unpack[OptionsDict]) -> Solution:
        """Assemble and solve the steady equation; return a Solution. See ``Poisson.solve`` for the parameters."""
        return self._steady(options, balance, mean, monitor, ranks)

    @accepted.shown
    def advance(self, start, dt, steps, *, time="bdf2", **options: Unpack[OptionsDict]) -> Solution:
        """Return the solution after some time steps; all steps share the solver's analysis and buffers.

        Parameters
        ----------
        start : number, array or function
            p at the beginning: a number, one value a cell, or a function of the cells' centres.
        dt : float
            Length of a time step.
        steps : int
        time : {"euler", "bdf2"}
            Time scheme.
        method, precond, ..., dtype
            See `swell.Options`.

        Returns
        -------
        Solution
            The last step's; the run ends early, with a note, at a step that does not converge.
        """
        check_step(dt, time)
        if not isinstance(steps, numbers.Integral) or steps < 1:
            raise InputError(f"steps={steps!r}: expected a positive whole number of time steps")
        solvers = self.linear_solves(options)
        system = self.assemble(solvers.options.device, solvers.options.dtype)
        with system.space.active(self.mesh.n_cells):
            metrics, solver, before = system.metrics, None, None
            p = metrics.full(start, "start")
            for step in range(steps):
                diagonal, past = time_terms(metrics.volumes, dt, p, before, time)
                if step == 0 or (step == 1 and time == "bdf2"):
                    A = metrics.pattern.matrix(system.flux, diagonal)
                    solver = solvers.prepare(A) if solver is None else solver.update(A)
                solution, = run(solver, [corrections(self, system, solvers, 0.0, p, 0.0, [], diagonal, past)])
                before, p = p, system.space.from_host(solution.p)
                if not solution.converged:
                    solution.notes.append(f"time step {step + 1} of {steps} did not converge: the run ended there")
                    break
            return solution
