"""Several scalars transported on one matrix: their linear solves share it, its preconditioner and each iteration.

    smoke, heat = fvm.solve_together([fvm.ScalarTransport(mesh, c, u, 1e-3, q) for c, q in ((cold, fire), (warm, 0.0))])

The matrix depends on the mesh, the velocity, the diffusivity and the kinds of the boundary conditions. Sources and
boundary values are on the right-hand side alone. Every field has its own corrections; a field that has converged takes
no further part.
"""
from __future__ import annotations

from typing import Unpack

from swell.core.errors import InputError
from swell.options import OptionsDict
from swell.pde.fvm.corrections import run
from swell.pde.fvm.part_mesh import PartMesh
from swell.pde.fvm.problem import OPTIONS, Problem


@OPTIONS.shown
def solve_together(problems, *, monitor=None, **options: Unpack[OptionsDict]) -> list:
    """Solve several steady equations that share their matrix: the same operator, other sources or boundary values.

    Parameters
    ----------
    problems : list of Poisson or of ScalarTransport
        On one mesh, with the same velocity, diffusivity, schemes and kinds of conditions.
    monitor, method, precond, ..., dtype
        See the problems' ``solve``, whose defaults hold.

    Returns
    -------
    list of Solution
        One for each problem, in order.

    Raises
    ------
    InputError
        For problems whose matrices differ; the message names the first.

    Examples
    --------
    >>> from swell.pde import fvm
    >>> mesh = fvm.box((16, 16))
    >>> walls = {"xmin": fvm.Dirichlet(0.0), "*": fvm.Neumann()}
    >>> found = fvm.solve_together([fvm.ScalarTransport(mesh, walls, (1.0, 0.0, 0.0), source=q) for q in (1.0, 2.0)])
    >>> all(p.converged for p in found)
    True
    """
    problems = _checked(problems)
    solvers = problems[0].linear_solves(options)
    first = problems[0].assemble(solvers.options.device, solvers.options.dtype)
    with first.space.active(problems[0].mesh.n_cells):
        systems = [first, *(problem.beside(first) for problem in problems[1:])]
        for k, system in enumerate(systems):
            if not (system.A is first.A or bool((system.A.data == first.A.data).all())):
                raise InputError(f"problem {k} has another matrix than problem 0: give both the same velocity, "
                                 "diffusivity, schemes and kinds of boundary conditions; only sources and boundary "
                                 "values may differ. Or solve it by itself")
            system.A = first.A
        fields = [problem.steady_field(system, solvers) for problem, system in zip(problems, systems)]
        return run(solvers.prepare(first.A, first.floating), fields, monitor)


def _checked(problems) -> list:
    """Return the problems as a list; raise InputError unless there is one, and all are of one class and one mesh."""
    if isinstance(problems, Problem):
        raise InputError("solve_together takes a list of problems: for one call its solve()")
    problems = list(problems)
    if not problems:
        raise InputError("solve_together got no problem: expected a list of Poisson or of ScalarTransport")
    for k, problem in enumerate(problems):
        if not isinstance(problem, Problem) or type(problem) is not type(problems[0]):
            raise InputError(f"problem {k} is a {type(problem).__name__} and problem 0 a "
                             f"{type(problems[0]).__name__}: expected Poisson or ScalarTransport, all of one class")
        if problem.mesh is not problems[0].mesh:
            raise InputError(f"problem {k} has another mesh than problem 0: make all of them with the same Mesh")
    if isinstance(problems[0].mesh, PartMesh):
        raise InputError("solve_together takes a mesh on one device: across ranks call solve() for each problem")
    return problems
