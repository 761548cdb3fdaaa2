"""Each guest tried as a new user would: lines, seconds to the first answer, errors of x and gradients.

    python benchmarks/guests.py [--case NAME ...]

Each row is one process at a time: imports, system, swell's lines, a reference by SciPy's or the guest's own solver.
"First, 10⁴" has an empty cache of compiled kernels, "later, 10⁴" a filled one. "First, 10⁵" has these kernels, and
includes any that the choice at this size still compiles.
"Lines" are swell's own, without the user's system. The error of x is the largest one, relative to the largest x. The
gradient of sum(x) in A's values and b, along a random direction, is compared with central differences of SciPy's LU.
A guest that is not installed is left out.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

SYSTEM = """
import numpy as np, scipy.sparse as sp
from scipy.sparse.linalg import spsolve
T = sp.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(n, n))
S = sp.csr_array(sp.kronsum(T, T))
S.sort_indices()
ones = np.ones(n * n)
"""
BY_LU = "own = spsolve(S.tocsc(), ones)"


@dataclass(frozen=True)
class Case:
    """The user's code, swell's lines in it, the reference ``own``, gradients ``in_values`` and ``in_b``."""

    module: str
    before: str
    lines: str
    after: str = BY_LU


CASES = {
    "torch": Case("torch", SYSTEM + """
import torch
crow, col, values = (torch.tensor(a) for a in (S.indptr, S.indices, S.data))
A = torch.sparse_csr_tensor(crow, col, values, S.shape).requires_grad_()
b = torch.ones(n * n, dtype=torch.float64, requires_grad=True)
""", """
import swell.torch
x = swell.torch.solve(A, b)
x.sum().backward()
""", BY_LU + "; x, in_values, in_b = x.detach().numpy(), A.grad.values().numpy(), b.grad.numpy()"),
    "JAX": Case("jax", SYSTEM + """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from jax.experimental.sparse import BCSR
A = BCSR((jnp.asarray(S.data), jnp.asarray(S.indices), jnp.asarray(S.indptr)), shape=S.shape)
b = jnp.ones(n * n)
""", """
import swell
f = swell.jax.prepare(A)
x = f(A.data, b)
in_values, in_b = jax.grad(lambda values, b: f(values, b).sum(), (0, 1))(A.data, b)
in_b.block_until_ready()
"""),
    "lineax": Case("lineax", SYSTEM + """
import jax, lineax as lx
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from jax.experimental.sparse import BCSR
A = BCSR((jnp.asarray(S.data), jnp.asarray(S.indices), jnp.asarray(S.indptr)), shape=S.shape)
b = jnp.ones(n * n)
""", """
from swell.jax.lineax import BCSROperator, Solver
x = lx.linear_solve(BCSROperator(A), b, Solver()).value
x.block_until_ready()
""", BY_LU + """
def total(values, b):
    A2 = BCSR((values, A.indices, A.indptr), shape=A.shape)
    return lx.linear_solve(BCSROperator(A2), b, Solver()).value.sum()
in_values, in_b = jax.grad(total, (0, 1))(A.data, b)
"""),
    "scikit-fem": Case("skfem", """
import numpy as np, skfem
from skfem.models.poisson import laplace, unit_load
mesh = skfem.MeshTri.init_tensor(*[np.linspace(0, 1, n + 2)] * 2)
basis = skfem.Basis(mesh, skfem.ElementTriP1())
system = skfem.condense(laplace.assemble(basis), unit_load.assemble(basis), D=mesh.boundary_nodes())
""", """
from swell.guests.skfem import solver
x = skfem.solve(*system, solver=solver())
""", "own = skfem.solve(*system)"),
    "FiPy": Case("fipy", """
import fipy as fp
mesh = fp.Grid2D(nx=n, ny=n, dx=1 / n, dy=1 / n)
phi = fp.CellVariable(mesh=mesh, value=0.0)
phi.constrain(1.0, mesh.facesLeft)
equation = fp.TransientTerm() == fp.DiffusionTerm(coeff=0.05) - fp.UpwindConvectionTerm(coeff=(1.0, 0.3))
""", """
from swell.guests.fipy import SwellSolver
equation.solve(var=phi, dt=0.1, solver=SwellSolver(tolerance=1e-9))
""", """
x, phi.value = phi.value.copy(), 0.0
equation.solve(var=phi, dt=0.1, solver=fp.LinearLUSolver(tolerance=1e-12))
own = phi.value
"""),
    "PyAMG's hierarchy as M": Case("pyamg", """
import numpy as np, pyamg
A = pyamg.gallery.poisson((n, n), format="csr")
b = np.ones(A.shape[0])
np.random.seed(0)
ml = pyamg.smoothed_aggregation_solver(A)
""", """
import swell
x = swell.solve(A, b, method="cg", M=ml).x
""", "own = ml.solve(b, tol=1e-12, accel='cg')"),
    "PyAMG with swell's cg": Case("pyamg", """
import numpy as np, pyamg
A = pyamg.gallery.poisson((n, n), format="csr")
b = np.ones(A.shape[0])
np.random.seed(0)
ml = pyamg.smoothed_aggregation_solver(A)
""", """
from swell.guests.pyamg import cg
x = ml.solve(b, tol=1e-8, accel=cg)
""", "own = ml.solve(b, tol=1e-12, accel='cg')"),
    "SciPy's gmres and spilu": Case("scipy", SYSTEM + """
from scipy.sparse.linalg import spilu
M = spilu(S.tocsc(), drop_tol=1e-3)
""", """
from swell.scipy_like import gmres
x, info = gmres(S, ones, M=M, rtol=1e-8)
"""),
    "arrays (data, indices, indptr)": Case("scipy", SYSTEM, """
import swell
x = swell.solve((S.data, S.indices, S.indptr), ones).x
"""),
    "a .mat file": Case("scipy", SYSTEM + """
import os, scipy.io, tempfile
path = os.path.join(tempfile.mkdtemp(), "system.mat")
scipy.io.savemat(path, {"A": S, "b": ones})
""", """
import swell
x = swell.solve(swell.read_matrix(path), swell.read_vector(path)).x
"""),
    "a notebook": Case("nbclient", SYSTEM + """
import json, nbformat, nbclient
def execute(lines):
    global x
    setup = f"n = {n}" + SYSTEM
    cells = [nbformat.v4.new_code_cell(c) for c in (setup + "b = ones", lines, "import json; json.dumps(r.x.tolist())")]
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), kernel_name="python3", timeout=600).execute()
    assert "text/html" in cells[1].outputs[-1].data
    x = np.array(json.loads(cells[2].outputs[0].data["text/plain"].strip("'")))
""", """
import swell
r = swell.solve(S, b, progress=True)
r
"""),
}
HARNESS = """
import sys, time
n, SYSTEM, before, lines, after = int(sys.argv[1]), *sys.argv[2:]
execute = lambda code: exec(code, globals())
exec(before)
start = time.perf_counter()
execute(lines)
print("seconds", time.perf_counter() - start)
exec(after)
print("error_x", f"{abs(x - own).max() / abs(own).max():.0e}")
if "in_b" in globals():
    rng, h = np.random.default_rng(0), 1e-5
    dA, db = rng.standard_normal(S.nnz), rng.standard_normal(n * n)
    total = lambda s: spsolve(sp.csr_array((S.data + s * dA, S.indices, S.indptr)).tocsc(), ones + s * db).sum()
    expected = (total(h) - total(-h)) / (2 * h)
    print("error_g", f"{abs(np.asarray(in_values) @ dA + np.asarray(in_b) @ db - expected) / abs(expected):.0e}")
"""


def measured(case, n, cache):
    """Run ``case`` with n² unknowns in a fresh process; return swell's seconds and both errors."""
    done = subprocess.run([sys.executable, "-c", HARNESS, str(n), SYSTEM, case.before, case.lines, case.after],
                          capture_output=True, text=True,
                          env=os.environ | {"CUPY_CACHE_DIR": cache, "SWELL_QUIET": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    found = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    return {"swell": float(found["seconds"][0]), "x": found["error_x"][0], "gradient": found.get("error_g", ["–"])[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    print("| guest | lines | first, 10⁴ | later, 10⁴ | first, 10⁵ | error of x, 10⁴ and 10⁵ | error of the gradient |")
    print("|---|---|---|---|---|---|---|")
    for name in parser.parse_args().case:
        case = CASES[name]
        if subprocess.run([sys.executable, "-c", f"import {case.module}"], capture_output=True).returncode:
            print(f"| {name} | {case.module} is not installed |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as cache:
            runs = [measured(case, n, cache) for n in (100, 100, 316)]
        print(f"| {name} | {len(case.lines.split(chr(10))) - 2} | " + " | ".join(f"{r['swell']:.1f} s" for r in runs)
              + f" | {runs[1]['x']}, {runs[2]['x']} | {runs[1]['gradient']}, {runs[2]['gradient']} |", flush=True)


if __name__ == "__main__":
    main()
