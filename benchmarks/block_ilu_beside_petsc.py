"""Block ILU(k) and block ILUT: iterations, fill and setup, beside PETSc's ILU(k) of BAIJ matrices, on a CPU.

    python benchmarks/block_ilu_beside_petsc.py FOLDER [--peer-python /usr/bin/python3] [--only NAME ...]

FOLDER has real matrices in Matrix Market format. GMRES(100), preconditioned from the right, to 1e-8 of ‖b‖, in at most
1000 iterations; the true residual is what counts as converged. The right-hand side is A times random numbers. Each is
set up and solved twice, and the second time is measured, in seconds of all threads of its process: set one thread. Fill
is the entries of L and U over the entries of A's blocks. PETSc comes with Debian's python3-petsc4py, whose interpreter may be
another, so the matrix goes there in an .npz file.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import scipy.io
import scipy.sparse as sp
from ic0_beside_petsc import written

import swell
from swell import gallery
from swell.core.devices import make_space
from swell.core.registry import resolve

RTOL, RESTART, MOST, LEVELS, ROWS = 1e-8, 100, 1000, 4, 60_000
REAL = {"hypre_beam_tet_dof2475": 3, "ml_elasticity": 3, "fasp_spe01_bsr3": 3}
MODEL = {"coupled_transport3": 3, "coupled_transport4": 4, "multiconductor2": 2}
NAMES = (*(f"ilu(block=None, level={k})" for k in range(LEVELS)),
         *(f"ilu(block=None, drop=1e-{k})" for k in (2, 3, 4)),
         *(f"ilu(level={k})" for k in range(3)), "ilu(drop=1e-2)", "ilu(drop=1e-3)")
PEER = """
import json, sys, time
import numpy as np, petsc4py
petsc4py.init(["peer"])
from petsc4py import PETSc
path, s, levels, restart, most, rtol = sys.argv[1], *map(int, sys.argv[2:6]), float(sys.argv[6])
d = np.load(path)
n = d["b"].size
A = PETSc.Mat().createBAIJ((n, n), s, csr=(d["indptr"], d["indices"], d["data"]))
A.assemble()
b, x, r = (A.createVecRight() for _ in range(3))
b.setArray(d["b"])
for k in range(levels):
    for _ in range(2):
        ksp = PETSc.KSP().create()
        ksp.setOperators(A)
        ksp.setType("gmres")
        ksp.setGMRESRestart(restart)
        ksp.setPCSide(PETSc.PC.Side.RIGHT)
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        ksp.getPC().setType("ilu")
        ksp.getPC().setFactorLevels(k)
        ksp.setTolerances(rtol=rtol, max_it=most)
        start = time.process_time()
        ksp.setUp()
        middle = time.process_time()
        x.set(0)
        ksp.solve(b, x)
        end = time.process_time()
    A.mult(x, r)
    r.aypx(-1, b)
    used = ksp.getPC().getFactorMatrix().getInfo()["nz_used"] / A.getInfo()["nz_used"]
    print(json.dumps({"name": f"PETSc ILU({k}), BAIJ", "iterations": ksp.getIterationNumber(), "fill": used,
                      "setup": middle - start, "solve": end - middle, "residual": r.norm() / b.norm()}), flush=True)
"""


def systems(folder):
    """(name, matrix, block size)."""
    for name, block in REAL.items():
        A = sp.csr_array(scipy.io.mmread(folder / f"{name}.mtx.gz")).astype(float)
        A.sort_indices()
        yield name, A, block
    for name, block in MODEL.items():
        yield name, sp.csr_array(gallery.get(name, ROWS)), block


def ours(A, b, s, name):
    """The second setup and solve with a preconditioner of ours."""
    method = swell.GMRES(restart=RESTART, lengthen=False)
    solver = swell.prepare(A, method=method, precond=name, block=s, rtol=RTOL, maxiter=MOST, device="cpu")
    for _ in range(2):
        start = time.process_time()
        result = solver.solve(b)
        solve = time.process_time() - start
    own = swell.CSRMatrix.from_scipy(A, make_space("cpu"), s)
    start = time.process_time()
    M = resolve("precond", name).build(own)
    setup = time.process_time() - start
    return {"name": name, "iterations": result.iterations, "fill": M.factor.nnz / swell.BSR(s).build(own).data.size,
            "setup": setup, "solve": solve, "notes": M.notes,
            "residual": float(np.linalg.norm(b - A @ result.x) / np.linalg.norm(b))}


def peers(A, b, s, python):
    """PETSc's, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        B = A.tobsr((s, s))
        B.sort_indices()
        path = written(folder, B, b, B.data.transpose(0, 2, 1).reshape(-1))    # BAIJ's blocks are column-major
        words = [python, "-c", PEER, path, *map(str, (s, LEVELS, RESTART, MOST, RTOL))]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    yield from map(json.loads, done.stdout.strip().splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--peer-python", help="an interpreter with petsc4py; without it ours alone")
    parser.add_argument("--only", nargs="*", help="names of matrices; by default all")
    arguments = parser.parse_args()
    for name, A, s in systems(arguments.folder):
        if arguments.only and name not in arguments.only:
            continue
        b = A @ np.random.default_rng(7).standard_normal(A.shape[0])
        print(f"{name}: {A.shape[0]} rows, {A.nnz} entries, blocks of {s}", flush=True)
        found = [lambda p=p: [ours(A, b, s, p)] for p in NAMES]
        if arguments.peer_python:
            found.append(lambda: peers(A, b, s, arguments.peer_python))
        for run in found:
            for m in run():
                count = str(m["iterations"]) if m["residual"] <= 1.01 * RTOL else f"− ({m['residual']:.0e})"
                print(f"  {m['name']:26s} {count:>10s} iterations, fill {m['fill']:6.2f}, setup "
                      f"{1e3 * m['setup']:8.1f} ms, solve {1e3 * m['solve']:8.1f} ms", *m.get("notes", ()), flush=True)


if __name__ == "__main__":
    main()
