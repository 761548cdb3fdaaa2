"""The first answer of a fresh process on a CPU: CPU-seconds of the imports and of the answer, beside PyAMG and SciPy.

    python benchmarks/cold_start.py [--rounds N] [CASE ...]

Each case runs in a process of its own with an empty home, so nothing is kept from an earlier one. The least of
``--rounds`` counts. The peers' cases are skipped, visibly, where the package is missing.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

SYSTEM = "A = swell.gallery.poisson3d(30); b = np.ones(A.shape[0]);"
FLOW = "C = swell.gallery.get('convection_diffusion2d', 27000); b = np.ones(C.shape[0]);"
CASES = {               # name: (imports, making of the system, the answer); the second is not counted
    "nothing named": ("import swell", SYSTEM, "assert swell.solve(A, b).converged"),
    "cg+amg": ("import swell", SYSTEM, "assert swell.solve(A, b, method='cg', precond='amg').converged"),
    "cg+ic0": ("import swell", SYSTEM, "assert swell.solve(A, b, method='cg', precond='ic0').converged"),
    "gmres+ilu0": ("import swell", FLOW, "assert swell.solve(C, b, method='gmres', precond='ilu0').converged"),
    "nothing named, nonsymmetric": ("import swell", FLOW, "assert swell.solve(C, b).converged"),
    "nothing named, complex": ("import swell", f"{SYSTEM} A = A * (1 + 0.1j)", "assert swell.solve(A, b).converged"),
    "nothing named, 10^6 rows": ("import swell", "A = swell.gallery.poisson3d(100); b = np.ones(A.shape[0])",
                                 "assert swell.solve(A, b).converged"),
    "block_cg, 4 columns": ("import swell", f"{SYSTEM} B = np.random.default_rng(0).random((A.shape[0], 4))",
                            "assert all(r.converged for r in swell.solve(A, B, method='block_cg', precond='ic0'))"),
    "lstsq": ("import swell", f"{SYSTEM} M = A[:, :20000]", "swell.lstsq(M, b)"),
    "batch": ("import swell", "A = swell.gallery.poisson2d(10); V = np.stack([A.data] * 50); B = np.ones((50, 100))",
              "assert swell.solve_batch(A, V, B).converged.all()"),
    "flow, 32 x 32": ("import swell; from swell.pde import fvm",
                      "m = fvm.box((32, 32)); w = {n: fvm.Dirichlet((0.0, 0.0, 0.0)) for n in ('xmin', 'xmax', 'ymin')}",
                      "assert fvm.Flow(m, {**w, 'ymax': fvm.Dirichlet((1.0, 0.0, 0.0))}, viscosity=0.01)"
                      ".solve().converged"),
    "helmholtz": ("import swell", "H = swell.gallery.helmholtz((40, 40, 10)); b = np.ones(H.shape[0])",
                  "assert swell.solve(H, b, method='gmres', precond='shifted_laplacian').converged"),
    "BDDC": ("import swell; from swell.pde.poisson_cube import PoissonCube", "cube = PoissonCube(4, 3)",
             "assert cube.solve().result.converged"),
    "stokes by minres": ("import swell", "A, b, f, mass = swell.gallery.stokes((32, 32)); p = np.zeros(A.shape[0]); "
                         "p[f['p']] = 1; M = swell.FieldSplit(fields=f, inner={'u': 'amg', 'p': 'jacobi'}, "
                         "kind='diagonal', schur=mass)",
                         "assert swell.solve(A, b, method='minres', precond=M, nullspace=p).converged"),
    "PyAMG": ("import pyamg", SYSTEM, "pyamg.ruge_stuben_solver(A).solve(b, tol=1e-8, accel='cg')"),
    "SciPy's cg": ("import scipy.sparse.linalg as spla", SYSTEM, "assert spla.cg(A, b, rtol=1e-8)[1] == 0"),
}
CHILD = """
import time
start = time.process_time()
import numpy as np
{imports}
imported = time.process_time()
import swell
{system}
before = time.process_time()
{answer}
print(imported, time.process_time() - before)
"""


def measured(case):
    """Run a case in a fresh process with an empty home; return CPU-seconds of the imports and of the answer, or the
    last line of an error."""
    imports, system, answer = CASES[case]
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
        done = subprocess.run([sys.executable, "-c", CHILD.format(imports=imports, system=system, answer=answer)],
                              capture_output=True, text=True, check=False, cwd=home,
                              env={**environment, "HOME": home, "SWELL_CACHE": home})
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return [float(word) for word in done.stdout.split()]


def main():
    """Measure the cases, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("case | imports | answer | together, CPU-seconds\n---|---|---|---")
    for case in arguments.cases or CASES:
        runs = [measured(case) for _ in range(arguments.rounds)]
        if isinstance(runs[0], str):
            print(f"{case} | skipped: {runs[0]}", flush=True)
            continue
        imports, answer = min(runs, key=sum)
        print(f"{case} | {imports:.2f} | {answer:.2f} | {imports + answer:.2f}", flush=True)


if __name__ == "__main__":
    main()
