"""GMRES(30) and BiCGSTAB with ILU(0) to a true residual of 1e-8, beside PETSc on one rank and on two ranks with block
Jacobi, in one run, on a CPU.

    python benchmarks/ilu0_beside_petsc.py atmosmodd~ --repeat 3 --peer-python /usr/bin/python3 --mpiexec mpiexec

PETSc comes with Debian's python3-petsc4py, whose interpreter may be another (and may want PETSC_DIR): the matrix goes
there in an .npz file. Everybody preconditions from the right and judges ‖b − A x‖ by the recursion; true residuals are
printed. Each run, of either side, is a process of its own that sets up and solves twice, the second time measured: what
is compiled and where memory was touched for the first time counts for nobody. Runs of all alternate, and medians are
given. Ours are run in double throughout, and with what settings allow to be stored in single precision: the factors,
the basis, or both. The right-hand side is A times random numbers.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from ic0_beside_petsc import show, system, written

RTOL = 1e-8
PRECONDITIONERS = ("ilu0", "ilu0(ordering='twisted')", "ilu0(ordering='twisted', solve='exact(single=True)')",
                   "schwarz(domains=2, overlap=0)")
METHODS = {"gmres": "gmres", "bicgstab": "bcgs"}
VARIANTS = {"gmres": ("gmres", "gmres(basis='single')"), "bicgstab": ("bicgstab",)}      # what we run of each
PEER = """
import json, sys, time
import numpy as np, petsc4py
petsc4py.init(["peer"])
from petsc4py import PETSc
comm = PETSc.COMM_WORLD
d = np.load(sys.argv[1])
n = d["b"].size
share = [n * r // comm.size for r in range(comm.size + 1)]
first, last = share[comm.rank], share[comm.rank + 1]
ptr = d["indptr"][first:last + 1]
A = PETSc.Mat().createAIJ(((last - first, n), (last - first, n)), comm=comm, csr=(
    ptr - ptr[0], d["indices"][ptr[0]:ptr[-1]], d["data"][ptr[0]:ptr[-1]]))
b, x = A.createVecRight(), A.createVecRight()
b.setArray(d["b"][first:last])
for _ in range(2):
    ksp = PETSc.KSP().create(comm)
    ksp.setOperators(A)
    ksp.setType(sys.argv[3])
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.getPC().setType("ilu" if comm.size == 1 else "bjacobi")
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=float(sys.argv[2]), max_it=100000)
    start = time.perf_counter()
    ksp.setUp()
    ksp.setUpOnBlocks()
    middle = time.perf_counter()
    x.set(0)
    ksp.solve(b, x)
    end = time.perf_counter()
residual = b.duplicate()
A.mult(x, residual)
residual.aypx(-1, b)
residual = residual.norm() / b.norm()
if comm.rank == 0:
    print(json.dumps({"setup": middle - start, "solve": end - middle, "iterations": ksp.getIterationNumber(),
                      "residual": residual}), flush=True)
"""


OURS = """
import json, sys
import numpy as np, scipy.sparse as sp
import swell
d = np.load(sys.argv[1])
b = d["b"]
A = sp.csr_array((d["data"], d["indices"], d["indptr"]), shape=(b.size, b.size))
for _ in range(2):
    solver = result = None
    solver = swell.prepare(A, rtol=float(sys.argv[2]), device="cpu", **json.loads(sys.argv[3]))
    result = solver.solve(b)
print(json.dumps({"setup": result.timings["setup"], "solve": result.timings["solve"], "iterations": result.iterations,
                  "residual": float(np.linalg.norm(b - A @ result.x) / np.linalg.norm(b))}))
"""


def run(command, **variables):
    """What a process prints in its last line."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(path, method, precond, layout):
    """The second setup and solve of a process."""
    settings = {"method": method, "precond": precond, "format": layout}
    return run([sys.executable, "-c", OURS, path, str(RTOL), json.dumps(settings)])


def peer(command, path, method):
    """The same of PETSc."""
    return run([*command, "-c", PEER, path, str(RTOL), METHODS[method.partition("(")[0]]], OMP_NUM_THREADS="1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("matrices", nargs="*", default=["atmosmodd~"])
    parser.add_argument("--unknowns", type=int, help="about so many for matrices of the gallery")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--precond", nargs="*", default=PRECONDITIONERS)
    parser.add_argument("--method", nargs="*", default=list(METHODS))
    parser.add_argument("--format", help="swell's format; by default its own choice")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--mpiexec", help="the command that starts two ranks; without it there is one rank alone")
    arguments = parser.parse_args()
    peers = {"PETSc": [arguments.peer_python]}
    if arguments.mpiexec:
        peers["PETSc, two ranks"] = [*arguments.mpiexec.split(), "-n", "2", arguments.peer_python]
    for name in arguments.matrices:
        A = system(name, arguments.unknowns)
        b = A @ np.random.default_rng(7).standard_normal(A.shape[0])
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, A, b)
            for method in arguments.method:
                own = {precond if variant == method else f"{precond}, {variant}": (variant, precond)
                       for precond in arguments.precond for variant in VARIANTS[method]}
                runs = {p: [] for p in (*own, *peers)}
                for _ in range(arguments.repeat):
                    for label, settings in own.items():
                        runs[label].append(ours(path, *settings, arguments.format))
                    for label, command in peers.items():
                        runs[label].append(peer(command, path, method))
                print(f"{name}, {method}: {A.shape[0]} rows, {A.nnz} entries; medians of {arguments.repeat}")
                show(runs, 76)


if __name__ == "__main__":
    main()
