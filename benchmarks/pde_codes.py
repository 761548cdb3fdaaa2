"""Time from a fresh process to the first answer, for each of Python's PDE codes, with swell and with its own solver.

    python benchmarks/pde_codes.py

Each row is a process of its own: imports, mesh, assembly, setup, compiling, solve. "First" has an empty cache of
compiled kernels, "later" a filled one. The own solver runs in the same process afterwards, and the largest difference
of both x is relative to the largest x. A code that is not installed is left out.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

CASES = {
    "scikit-fem, Poisson, 16 129 unknowns": ("skfem", """
import skfem
from skfem.models.poisson import laplace, unit_load
mesh = skfem.MeshTri().refined(7)
basis = skfem.Basis(mesh, skfem.ElementTriP1())
system = skfem.condense(laplace.assemble(basis), unit_load.assemble(basis), D=mesh.boundary_nodes())
begin()
from swell.guests.skfem import solver
x = skfem.solve(*system, solver=solver())
answered()
own = skfem.solve(*system)
"""),
    "FiPy, a plume, 10 000 unknowns": ("fipy", """
import fipy as fp
mesh = fp.Grid2D(nx=100, ny=100, dx=0.01, dy=0.01)
phi = fp.CellVariable(mesh=mesh, value=0.0)
phi.constrain(1.0, mesh.facesLeft)
equation = fp.TransientTerm() == fp.DiffusionTerm(coeff=0.05) - fp.UpwindConvectionTerm(coeff=(1.0, 0.3))
begin()
from swell.guests.fipy import SwellSolver
equation.solve(var=phi, dt=0.1, solver=SwellSolver(tolerance=1e-9))
x = phi.value.copy()
answered()
phi.value = 0.0
equation.solve(var=phi, dt=0.1, solver=fp.LinearLUSolver(tolerance=1e-12))
own = phi.value
"""),
    "PyAMG's hierarchy, Poisson, 90 000 unknowns": ("pyamg", """
import numpy as np, pyamg
A = pyamg.gallery.poisson((300, 300), format="csr")
b = np.ones(A.shape[0])
np.random.seed(0)
ml = pyamg.smoothed_aggregation_solver(A)
begin()
import swell
x = swell.solve(A, b, method="cg", M=ml).x
answered()
own = ml.solve(b, tol=1e-8, accel="cg")
"""),
    "PyAMG with swell's cg, the same": ("pyamg", """
import numpy as np, pyamg
A = pyamg.gallery.poisson((300, 300), format="csr")
b = np.ones(A.shape[0])
np.random.seed(0)
ml = pyamg.smoothed_aggregation_solver(A)
begin()
from swell.guests.pyamg import cg
x = ml.solve(b, tol=1e-8, accel=cg)
answered()
own = ml.solve(b, tol=1e-8, accel="cg")
"""),
    "SciPy's gmres with spilu, 10 000 unknowns": ("scipy", """
import numpy as np, scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, spilu, gmres as scipys
n = 100
T = sp.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(n, n))
A = sp.kronsum(T, T, format="csc")
b, M = np.ones(n * n), spilu(A, drop_tol=1e-2)
begin()
from swell.scipy_like import gmres
x, info = gmres(A, b, M=M, rtol=1e-10)
answered()
own, info = scipys(A, b, M=LinearOperator(A.shape, M.solve), rtol=1e-10)
"""),
}
AROUND = """
import sys, time
def begin():
    global start
    start = time.perf_counter()
def answered():
    global own_start
    print(f"{time.perf_counter() - start:.2f}")
    own_start = time.perf_counter()
"""
AFTER = """
print(f"{time.perf_counter() - own_start:.2f}")
print(f"{abs(x - own).max() / abs(own).max():.1e}")
"""


def measured(code, cache):
    """Run ``code`` in a fresh process; return (seconds of the process, of swell, of the own solver, difference)."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", AROUND + code + AFTER], capture_output=True, text=True, check=True,
                          env=os.environ | {"NUMBA_CACHE_DIR": cache, "SWELL_QUIET": "1"})
    swells, own, difference = done.stdout.split()
    return time.perf_counter() - start - float(own), float(swells), float(own), difference


def main():
    print("| case | first: process | of it swell | later: process | of it swell | own solver | difference |")
    print("|---|---|---|---|---|---|---|")
    for name, (module, code) in CASES.items():
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            print(f"| {name} | {module} is not installed |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as cache:
            first, (later, swells, own, difference) = measured(code, cache), measured(code, cache)
        print(f"| {name} | {first[0]:.1f} s | {first[1]:.1f} s | {later:.1f} s | {swells:.2f} s | {own:.2f} s | "
              f"{difference} |", flush=True)


if __name__ == "__main__":
    main()
