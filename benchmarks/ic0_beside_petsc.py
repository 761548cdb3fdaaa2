"""CG with incomplete Cholesky to a true residual of 1e-8, beside PETSc's ICC(0)-CG on one rank, in one run, on a CPU.

    python benchmarks/ic0_beside_petsc.py parabolic_fem~ landscape_1m --repeat 3 --peer-python /usr/bin/python3

PETSc comes with Debian's python3-petsc4py, whose interpreter may be another: the matrix goes there in an .npz file.
Both judge ‖b − A x‖ by their recursions at every iteration; both true residuals are printed. Solves of the two
alternate, and medians are given. The right-hand side is A times random numbers. ``landscape_1m`` and other real
systems are read from the folder that SWELL_DATA names.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

RTOL = 1e-8
PRECONDITIONERS = ("ic0", "ic0(ordering='twisted')", "ic0(solve='sweeps(count=3)')", "ic(level=1)")
PEER = """
import json, sys, time
import numpy as np, petsc4py
petsc4py.init(["peer"])
from petsc4py import PETSc
d = np.load(sys.argv[1])
n = d["b"].size
A = PETSc.Mat().createAIJ((n, n), csr=(d["indptr"], d["indices"], d["data"]), comm=PETSc.COMM_SELF)
A.setOption(PETSc.Mat.Option.SPD, True)
b, x = A.createVecRight(), A.createVecRight()
b.setArray(d["b"])
for line in sys.stdin:
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(A)
    ksp.setType("cg")
    ksp.getPC().setType("icc")
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=float(sys.argv[2]), max_it=100000)
    start = time.perf_counter()
    ksp.setUp()
    middle = time.perf_counter()
    x.set(0)
    ksp.solve(b, x)
    end = time.perf_counter()
    residual = b.duplicate()
    A.mult(x, residual)
    residual.aypx(-1, b)
    print(json.dumps({"setup": middle - start, "solve": end - middle, "iterations": ksp.getIterationNumber(),
                      "residual": residual.norm() / b.norm(), "version": PETSc.Sys.getVersion()}), flush=True)
    ksp.destroy()
"""


def system(name, unknowns):
    """The matrix of a name of the gallery, or of the real systems."""
    from swell import gallery
    if name in gallery.names():
        return gallery.get(name, unknowns)
    folder = pathlib.Path(os.environ["SWELL_DATA"])
    if name.startswith("landscape_"):
        sys.path.insert(0, str(folder))
        import landscape
        A = landscape.load(name.removeprefix("landscape_")).tocsr()
    else:
        import scipy.sparse as sp
        A = sp.load_npz(folder / "matrices" / f"{name}.npz").tocsr()
    A.sort_indices()
    return A


def ours(A, b, precond):
    """One setup and one solve."""
    import swell
    solver = swell.prepare(A, method="cg", precond=precond, rtol=RTOL, device="cpu")
    result = solver.solve(b)
    return {"setup": result.timings["setup"], "solve": result.timings["solve"], "iterations": result.iterations,
            "residual": float(np.linalg.norm(b - A @ result.x) / np.linalg.norm(b)), "reason": result.reason.name}


def written(folder, A, b, values=None):
    """The path of an .npz file with the system, for the interpreter that has PETSc; ``values`` replace A.data."""
    path = str(pathlib.Path(folder) / "system.npz")
    np.savez(path, indptr=A.indptr.astype(np.int32), indices=A.indices.astype(np.int32), b=b,
             data=A.data if values is None else values)
    return path


class Peer:
    """PETSc in a process of its own, which solves when it is asked to."""

    def __init__(self, python, A, b, folder):
        self.process = subprocess.Popen([python, "-c", PEER, written(folder, A, b), str(RTOL)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def run(self):
        """One setup and one solve."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def median(runs):
    """The medians of several runs of the same."""
    return {k: statistics.median(r[k] for r in runs) if isinstance(runs[0][k], float) else runs[0][k] for k in runs[0]}


def show(runs, width):
    """Print the medians of each solver's runs, beside PETSc's."""
    theirs = median(runs["PETSc"])
    for label, measured in runs.items():
        m = median(measured)
        print(f"  {label:{width}s} {m['iterations']:5d} iterations, setup {m['setup']:6.3f} s, solve "
              f"{m['solve']:7.3f} s ({1e3 * m['solve'] / m['iterations']:6.2f} ms each), residual {m['residual']:.1e}, "
              f"{(theirs['setup'] + theirs['solve']) / (m['setup'] + m['solve']):.2f} times PETSc", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("matrices", nargs="*", default=["parabolic_fem~"])
    parser.add_argument("--unknowns", type=int, help="about so many for matrices of the gallery")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--precond", nargs="*", default=PRECONDITIONERS)
    parser.add_argument("--peer-python", default=sys.executable)
    arguments = parser.parse_args()
    for name in arguments.matrices:
        A = system(name, arguments.unknowns)
        b = A @ np.random.default_rng(7).standard_normal(A.shape[0])
        with tempfile.TemporaryDirectory() as folder:
            peer = Peer(arguments.peer_python, A, b, folder)
            for precond in arguments.precond:
                ours(A, b, precond)              # compile
            runs = {p: [] for p in (*arguments.precond, "PETSc")}
            for _ in range(arguments.repeat):
                for precond in arguments.precond:
                    runs[precond].append(ours(A, b, precond))
                runs["PETSc"].append(peer.run())
            peer.close()
        print(f"{name}: {A.shape[0]} rows, {A.nnz} entries; medians of {arguments.repeat}")
        show(runs, 32)


if __name__ == "__main__":
    main()
