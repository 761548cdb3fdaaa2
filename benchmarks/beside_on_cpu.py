"""Whole solves on a CPU beside SciPy, PyAMG and PETSc, in one run: CPU-seconds of one thread from a matrix to x.

    PETSC_DIR=/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real python benchmarks/beside_on_cpu.py \\
        --peer-python /usr/bin/python3 --files foam_hump_p.mtx.gz foam_motorBike_ldu.npz

Every solver starts from the same CSR matrix and solves to a relative residual of 1e-8 for b = A times random numbers.
Setup and solve count, imports and the first use of a library do not. CPU-seconds and one thread are taken because they
hardly depend on a machine's other work. Solvers take turns, and the minimum of --repeat rounds is given with the true
residual. A solver that has taken more than --limit seconds on a system runs once. PyAMG and PETSc have several
sensible choices; all run (PETSc's for 2000 iterations at most), and the figure takes the best that arrived. PETSc and
the BoomerAMG of hypre that it offers come with Debian's python3-petsc4py, whose interpreter may be another: without
--peer-python they are left out. The records go to --out; ``python benchmarks/figure.py`` draws them.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as sla

RTOL = 1e-8
SYSTEMS = "poisson3d:262144,ecology2~,parabolic_fem~,atmosmodd~"
PETSC = {"cg": {"PETSc, ICC(0)": "-pc_type icc", "PETSc, GAMG": "-pc_type gamg",
                "PETSc with hypre's BoomerAMG": "-pc_type hypre -pc_hypre_type boomeramg"},
         "bcgs": {"PETSc, ILU(0)": "-pc_type ilu", "PETSc, GAMG": "-pc_type gamg",
                  "PETSc with hypre's BoomerAMG": "-pc_type hypre -pc_hypre_type boomeramg"}}
PEER = """
import json, shlex, sys, time
import numpy as np, petsc4py
petsc4py.init(["peer"])
from petsc4py import PETSc
d = np.load(sys.argv[1])
n = d["b"].size
A = PETSc.Mat().createAIJ((n, n), csr=(d["indptr"], d["indices"], d["data"]), comm=PETSc.COMM_SELF)
b, x, r = A.createVecRight(), A.createVecRight(), A.createVecRight()
b.setArray(d["b"])
for line in sys.stdin:
    asked, options = json.loads(line), PETSc.Options()
    words = shlex.split(asked["options"])
    for name, value in zip(words[::2], words[1::2]):
        options[name.lstrip("-")] = value
    A.setOption(PETSc.Mat.Option.SPD, asked["ksp"] == "cg")
    start = time.process_time()
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(A)
    ksp.setType(asked["ksp"])
    if asked["ksp"] != "cg":
        ksp.setPCSide(PETSc.PC.Side.RIGHT)       # the norm is then that of b - A x
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=asked["rtol"], max_it=2000)
    ksp.setFromOptions()
    ksp.setUp()
    setup = time.process_time() - start
    x.set(0)
    ksp.solve(b, x)
    seconds = time.process_time() - start
    A.mult(x, r)
    r.aypx(-1, b)
    print(json.dumps({"seconds": seconds, "setup": setup, "iterations": ksp.getIterationNumber(),
                      "residual": r.norm() / b.norm(), "version": PETSc.Sys.getVersion()}), flush=True)
    ksp.destroy()
    for name in words[::2]:
        options.delValue(name.lstrip("-"))
"""


class Petsc:
    """A process of the interpreter ``python`` with PETSc, which has loaded the system A x = b."""

    def __init__(self, python, A, b, folder):
        file = pathlib.Path(folder) / "system.npz"
        np.savez(file, indptr=A.indptr.astype(np.int32), indices=A.indices.astype(np.int32), data=A.data, b=b)
        self._process = subprocess.Popen([python, "-c", PEER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})

    def solve(self, ksp, options):
        """Solve once; return the record."""
        self._process.stdin.write(json.dumps({"ksp": ksp, "options": options, "rtol": RTOL}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("PETSc's process ended: see above")
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def timed(call, A, b):
    """Return the record of ``call()``, which returns (x, iterations)."""
    start = time.process_time()
    x, iterations = call()
    seconds = time.process_time() - start
    return {"seconds": seconds, "iterations": iterations,
            "residual": float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))}


def swell_solve(A, b, **named):
    import swell
    result = swell.solve(A, b, rtol=RTOL, **named)
    return result.x, result.iterations


def scipy_krylov(A, b, symmetric):
    """CG or BiCGSTAB with Jacobi's preconditioner, as a caller of SciPy writes it."""
    done, M = [], sp.diags_array(1 / A.diagonal())
    method = sla.cg if symmetric else sla.bicgstab
    x, _ = method(A, b, rtol=RTOL, M=M, maxiter=20000, callback=lambda _: done.append(1))
    return x, len(done)


def pyamg_solve(A, b, solver, symmetric):
    import pyamg
    residuals = []
    x = getattr(pyamg, solver)(A).solve(b, tol=RTOL, maxiter=1000, accel="cg" if symmetric else "bicgstab",
                                        residuals=residuals)
    return x, len(residuals) - 1


def solvers(A, b, symmetric, petsc):
    """Return {solver's words: a call that returns its record}."""
    method, ksp = ("cg", "cg") if symmetric else ("bicgstab", "bcgs")
    calls = {"swell, multigrid": lambda: timed(lambda: swell_solve(A, b, method=method, precond="amg"), A, b),
             "swell, nothing named": lambda: timed(lambda: swell_solve(A, b), A, b),
             "PyAMG, Ruge–Stüben": lambda: timed(lambda: pyamg_solve(A, b, "ruge_stuben_solver", symmetric), A, b),
             "PyAMG, aggregation": lambda: timed(
                 lambda: pyamg_solve(A, b, "smoothed_aggregation_solver", symmetric), A, b),
             f"SciPy, {'CG' if symmetric else 'BiCGSTAB'} + Jacobi": lambda: timed(
                 lambda: scipy_krylov(A, b, symmetric), A, b)}
    for words, options in PETSC[ksp].items() if petsc else ():
        calls[words] = lambda options=options: petsc.solve(ksp, options)
    return calls


def measure(name, A, arguments):
    """Yield the record of each solver for a system: the round with the least CPU-seconds."""
    A = sp.csr_matrix(A)
    A.sort_indices()
    b = A @ np.random.default_rng(3).random(A.shape[0])
    symmetric = abs(A - A.T).max() <= 1e-12 * abs(A).max()
    with tempfile.TemporaryDirectory() as folder:
        petsc = Petsc(arguments.peer_python, A, b, folder) if arguments.peer_python else None
        rounds, calls = {}, solvers(A, b, symmetric, petsc)
        for _ in range(arguments.repeat):
            for words, call in calls.items():
                if words not in rounds or sum(r["seconds"] for r in rounds[words]) < arguments.limit:
                    rounds.setdefault(words, []).append(call())
        if petsc:
            petsc.close()
    for words, records in rounds.items():
        best = min(records, key=lambda record: record["seconds"])
        yield {"system": name, "n": A.shape[0], "nnz": A.nnz, "symmetric": bool(symmetric), "solver": words,
               "rounds": len(records), **best}


def warmed(arguments):
    """Solve a small system by every solver: the first use of a library is not measured."""
    import swell
    for _ in measure("", swell.gallery.poisson2d(30), arguments):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default=SYSTEMS, help="names of the gallery, NAME or NAME:UNKNOWNS")
    parser.add_argument("--files", nargs="*", default=[], help="matrix files")
    parser.add_argument("--peer-python", help="an interpreter with petsc4py")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--out", default=pathlib.Path(__file__).parent / "results" / "cpu_beside.jsonl")
    arguments = parser.parse_args()
    import pyamg
    import swell
    from swell.cli.source import read_system
    sources = [(name.partition(":")[0], f"gallery:{name}") for name in arguments.systems.split(",") if name]
    sources += [(pathlib.Path(file).name.split(".")[0], file) for file in arguments.files]
    around = {"benchmark": "beside on cpu", "swell": swell.__version__, "scipy": scipy.__version__,
              "pyamg": pyamg.__version__, "machine": platform.machine(), "date": time.strftime("%Y-%m-%d")}
    warmed(arguments)
    with open(arguments.out, "w", encoding="utf-8") as out:
        for name, source in sources:
            for record in measure(name, read_system(source)[0], arguments):
                out.write(json.dumps({**around, **record}, ensure_ascii=False) + "\n")
                out.flush()
                print(f"{name:20} {record['solver']:32} {record['seconds']:8.3f} s {record['iterations']:6} iterations"
                      f"  {record['residual']:.1e}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
