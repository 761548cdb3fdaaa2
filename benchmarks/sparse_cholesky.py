"""Sparse Cholesky, LDLᵀ and LU of optional packages beside SciPy's SuperLU and swell's direct method, on a CPU.

    python benchmarks/sparse_cholesky.py [--only PART OF A SYSTEM'S NAME] [--packages NAME ...] [--threads 1 2]

Each row is a new process. It prints CPU and wall seconds of the analysis, the factorisation and a solve with one
right-hand side, the entries of the factors, and the largest relative residual of the first solution, without
refinement. Packages that are not installed, or do not take a system, are left out. Needs scikit-fem.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.bench import systems
from swell.gallery.elasticity import elasticity3d

LIMIT = 400             # seconds of a process
TRIALS = 3              # runs of the parts that take less than a second; the least counts


def control(m):
    """Return the KKT system of ½‖y − d‖² + ½ 1e-4 ‖u‖² subject to K y = M u on m² points: symmetric indefinite, with
    3 m² rows and zeros on a third of the diagonal."""
    K, M = gallery.poisson2d(m), sp.eye_array(m * m) / m**2
    return sp.csr_array(sp.block_array([[M, None, K], [None, 1e-4 * M, -M], [K, -M, None]]))


def darcy(refinements):
    """Return mixed Poisson on tetrahedra, lowest Raviart–Thomas elements and constants: symmetric indefinite."""
    import skfem
    from skfem.helpers import div, dot
    mesh = skfem.MeshTet().refined(refinements)
    flux, pressure = (skfem.Basis(mesh, e, intorder=2) for e in (skfem.ElementTetRT0(), skfem.ElementTetP0()))
    A = skfem.BilinearForm(lambda u, v, w: dot(u, v)).assemble(flux)
    B = skfem.BilinearForm(lambda u, q, w: -div(u) * q).assemble(flux, pressure)
    return sp.csr_array(sp.block_array([[A, B.T], [B, None]]))


SYSTEMS = {             # kind: p (positive definite), s (symmetric indefinite), u (unsymmetric)
    "poisson2d, 300²": ("p", partial(gallery.poisson2d, 300)), "poisson3d, 30³": ("p", partial(gallery.poisson3d, 30)),
    "poisson3d, 45³": ("p", partial(gallery.poisson3d, 45)), "elasticity3d, 16": ("p", partial(elasticity3d, 16)),
    "control, 3 × 150²": ("s", partial(control, 150)), "darcy RT0, 3": ("s", partial(darcy, 3)),
    "convection, 27³": ("u", partial(gallery.convection_diffusion, (27,) * 3)),
    "circuit, 10 000": ("u", partial(systems.circuit, 10_000)),
}


def superlu(A, kind, threads, **settings):
    """Return the steps of SciPy's SuperLU, as every function below: (analysis, factorisation, solve, entries)."""
    from scipy.sparse.linalg import splu
    A = A.tocsc()
    return (lambda: None), (lambda _: splu(A, **settings)), (lambda f, b: f.solve(b)), lambda f: f.nnz


def direct(A, kind, threads, package=None):
    """swell's preconditioner of that name, refined by nothing; its analysis is in the factorisation."""
    import swell
    from swell.core.devices import make_space
    from swell.formats.csr import CSRMatrix
    space = make_space("cpu")
    matrix = CSRMatrix.from_scipy(A, space)
    settings = {} if package is None else {"package": package}
    swell.Direct(**settings).build(CSRMatrix.from_scipy(gallery.poisson2d(40), space))       # compiles kernels

    def solve(M, b):
        M.apply(b, out := np.empty_like(b))
        return out
    return (lambda: None), (lambda _: swell.Direct(**settings).build(matrix)), solve, lambda M: M.describe()


def rslab(A, kind, threads, path=None):
    """RSLAB: LDLᵀ with Bunch and Kaufman's pivots of symmetric matrices, LU of others."""
    import rslab as package
    path = path or ("lu" if kind == "u" else "ldlt")
    settings = {} if path == "klu" else {"threads": threads}
    A = A.tocsc()
    data = sp.tril(A, format="csc").data if path == "ldlt" else A.data
    return ((lambda: package.analyze(A, path=path, **settings)), (lambda s: s.factor(data)),
            (lambda f, b: f.solve(b)), lambda f: f.factor_nnz)


def cholmod(A, kind, threads):
    """CHOLMOD, supernodal, through KVXOPT."""
    from kvxopt import cholmod as package
    from kvxopt import matrix, spmatrix
    if kind != "p":
        raise ImportError
    L = sp.tril(A).tocoo()
    L = spmatrix(L.data, L.row.astype(int), L.col.astype(int), A.shape)

    def factor(F):
        package.numeric(L, F)
        return F

    def solve(F, b):
        package.solve(F, x := matrix(b))
        return np.array(x).ravel()
    return (lambda: package.symbolic(L)), factor, solve, lambda f: "unknown"


def umfpack(A, kind, threads):
    """UMFPACK through KVXOPT."""
    from kvxopt import matrix, spmatrix
    from kvxopt import umfpack as package
    C = A.tocoo()
    C = spmatrix(C.data, C.row.astype(int), C.col.astype(int), A.shape)

    def solve(F, b):
        package.solve(C, F[1], x := matrix(b))
        return np.array(x).ravel()
    return (lambda: package.symbolic(C)), (lambda s: (s, package.numeric(C, s))), solve, lambda f: "unknown"


def pardiso(A, kind, threads):
    """MKL's PARDISO through pypardiso: real symmetric matrices by their upper triangles."""
    from pypardiso import PyPardisoSolver
    A = sp.csr_matrix(A)
    upper = A if kind == "u" else sp.triu(A, format="csr")
    if kind != "u":                              # PARDISO wants the whole diagonal
        upper = (upper + sp.csr_matrix((np.zeros(A.shape[0]), (np.arange(A.shape[0]),) * 2), A.shape)).tocsr()
        upper.sort_indices()
    solver = PyPardisoSolver(mtype={"p": 2, "s": -2, "u": 11}[kind])
    solver._check_A = lambda A: None             # it would refuse a triangle
    zeros = np.zeros(A.shape[0])

    def call(phase, b=zeros):
        solver.set_phase(phase)
        return solver._call_pardiso(upper, b)
    return ((lambda: call(11)), (lambda _: call(22)), (lambda f, b: call(33, b)), lambda f: int(solver.iparm[17]))


def cholespy(A, kind, threads):
    """CHOLMOD's simplicial part through cholespy; its analysis is in the factorisation."""
    from cholespy import CholeskySolverD, MatrixType
    if kind != "p":
        raise ImportError
    C = sp.csc_matrix(A)

    def solve(f, b):
        f.solve(b, x := np.empty_like(b))
        return x
    return ((lambda: None), (lambda _: CholeskySolverD(A.shape[0], C.indptr, C.indices, C.data, MatrixType.CSC)),
            solve, lambda f: "unknown")


def qdldl(A, kind, threads):
    """QDLDL: LDLᵀ without pivoting; its analysis is in the factorisation."""
    import qdldl as package
    if kind == "u":
        raise ImportError
    C = sp.csc_matrix(A)
    return (lambda: None), (lambda _: package.Solver(C)), (lambda f, b: f.solve(b)), lambda f: f.factors()[0].nnz


PACKAGES = {
    "SuperLU COLAMD": superlu,
    "SuperLU MMD": partial(superlu, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1, options={"SymmetricMode": True}),
    "swell direct": direct, "RSLAB": rslab, "RSLAB LU": partial(rslab, path="lu"),
    "RSLAB KLU": partial(rslab, path="klu"), "CHOLMOD": cholmod, "UMFPACK": umfpack, "PARDISO": pardiso,
    "cholespy": cholespy, "QDLDL": qdldl,
}
SERIAL = {"SuperLU COLAMD", "SuperLU MMD", "swell direct", "RSLAB KLU", "cholespy", "QDLDL"}


def timed(function, *arguments):
    """Return (CPU seconds, wall seconds, result): the least CPU seconds of some calls if a call is short."""
    best = None
    for _ in range(TRIALS):
        cpu, wall = time.process_time(), time.perf_counter()
        result = function(*arguments)
        taken = time.process_time() - cpu, time.perf_counter() - wall, result
        best = taken if best is None or taken[0] < best[0] else best
        if taken[0] > 1:
            break
    return best


def measure(system, package, threads):
    """Measure in this process, and print a line of JSON."""
    kind, make = SYSTEMS[system]
    A = sp.csr_array(make()).astype(float)
    A.sum_duplicates()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    b = A @ np.ones(A.shape[0])
    analyse, factor, solve, entries = PACKAGES[package](A, kind, threads)
    analysed = timed(analyse)
    factored = timed(factor, analysed[2])
    solved = timed(solve, factored[2], b)
    residual = np.linalg.norm(A @ solved[2] - b) / np.linalg.norm(b)
    print(json.dumps([A.shape[0], A.nnz, *(t[:2] for t in (analysed, factored, solved)), str(entries(factored[2])),
                      float(residual)]))


def main():
    """Start a process for each row, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=list(PACKAGES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        system, package, threads = arguments.measure
        return measure(system, package, int(threads))
    print("| system | package | threads | analysis: CPU, wall (s) | factors: CPU, wall (s) | solve: CPU (s) | entries "
          "| residual |\n|---|---|---|---|---|---|---|---|")
    for system in SYSTEMS:
        for package in arguments.packages:
            for threads in arguments.threads:
                if arguments.only not in system or package in SERIAL and threads > 1:
                    continue
                count = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                                         "SWELL_NUM_THREADS")}
                try:
                    run = subprocess.run([sys.executable, __file__, "--measure", system, package, str(threads)],
                                         env=os.environ | count, capture_output=True, text=True, timeout=LIMIT)
                except subprocess.TimeoutExpired:
                    print(f"| {system} | {package} | {threads} | over {LIMIT} s |", flush=True)
                    continue
                if run.returncode:
                    error = run.stderr.strip().splitlines()[-1:] or [f"signal {-run.returncode}"]
                    if "ImportError" not in error[0] and "ModuleNotFoundError" not in error[0]:
                        print(f"| {system} | {package} | {threads} | {error[0][:90]} |", flush=True)
                    continue
                n, nnz, analysed, factored, solved, entries, residual = json.loads(run.stdout.splitlines()[-1])
                print(f"| {system} | {package} | {threads} | {analysed[0]:.3f}, {analysed[1]:.3f} | {factored[0]:.3f}, "
                      f"{factored[1]:.3f} | {solved[0]:.4f} | {entries} | {residual:.0e} |", flush=True)


if __name__ == "__main__":
    main()
