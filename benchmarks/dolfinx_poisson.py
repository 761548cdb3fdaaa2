"""dolfinx solves Poisson's equation with swell by PETSc options, on one rank or several.

    python benchmarks/dolfinx_poisson.py            mpiexec -n 2 python benchmarks/dolfinx_poisson.py

It needs dolfinx and petsc4py, built for the same NumPy as swell's; it prints the difference from PETSc's LU, and times.
"""
from __future__ import annotations

import time

import dolfinx
import numpy as np
import ufl
from dolfinx.fem import Constant, FunctionSpace, dirichletbc, locate_dofs_topological
from dolfinx.fem.petsc import LinearProblem
from dolfinx.mesh import create_unit_square, exterior_facet_indices
from mpi4py import MPI
from petsc4py import PETSc

from swell.guests.petsc import reason_of

SWELL = {"ksp_type": "python", "ksp_python_type": "swell.guests.petsc.KSP", "ksp_rtol": 1e-10}
CHOICES = {
    "PETSc's LU (MUMPS)": {"ksp_type": "preonly", "pc_type": "lu", "pc_factor_mat_solver_type": "mumps"},
    "PETSc's CG, hypre": {"ksp_type": "cg", "pc_type": "hypre", "ksp_rtol": 1e-10},
    "swell's KSP": SWELL | {"pc_type": "none"},
    "swell's CG, AMG": SWELL | {"pc_type": "none", "ksp_swell_method": "cg", "ksp_swell_precond": "amg"},
    "swell's PC": {"ksp_type": "fgmres", "pc_type": "python", "pc_python_type": "swell.guests.petsc.PC",
                   "ksp_rtol": 1e-10},
}


def problem(cells):
    """Return (a, L, bcs) of −∇·(1 + x) ∇u = 10 on the unit square, u = 0 on its boundary."""
    mesh = create_unit_square(MPI.COMM_WORLD, cells, cells)
    V = FunctionSpace(mesh, ("CG", 1))
    u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(mesh)
    mesh.topology.create_connectivity(1, 2)
    facets = exterior_facet_indices(mesh.topology)
    zero = dirichletbc(PETSc.ScalarType(0), locate_dofs_topological(V, 1, facets), V)
    f = Constant(mesh, PETSc.ScalarType(10))
    return (1 + x[0]) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, f * v * ufl.dx, [zero]


def main(cells=200):
    a, L, bcs = problem(cells)
    exact = None
    for name, options in CHOICES.items():
        seconds, linear = [], LinearProblem(a, L, bcs=bcs, petsc_options=options)
        for _ in range(2):                       # the first solve may compile
            begin = time.perf_counter()
            u = linear.solve()
            seconds.append(time.perf_counter() - begin)
        values = u.x.array.copy()
        exact = values if exact is None else exact
        error = MPI.COMM_WORLD.allreduce(float(np.abs(values - exact).max()), MPI.MAX)
        iterations, reason = linear.solver.getIterationNumber(), reason_of(linear.solver)
        if MPI.COMM_WORLD.rank == 0:
            print(f"{name:20} {iterations:4d} iterations, first {seconds[0]:6.2f} s, second {seconds[1]:6.2f} s, "
                  f"difference from LU {error:.1e}; {reason.name}")
        assert error < 1e-7


if __name__ == "__main__":
    if MPI.COMM_WORLD.rank == 0:
        print(f"dolfinx {dolfinx.__version__}, PETSc {'.'.join(map(str, PETSc.Sys.getVersion()))}, "
              f"{MPI.COMM_WORLD.size} rank(s)")
    main()
