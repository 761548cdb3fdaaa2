"""Solves on a GPU by two copies of swell, a process for each, in turns: microseconds an iteration and milliseconds a setup.

    python benchmarks/in_turns_on_gpu.py OLD NEW [--only TEXT] [--sides 46,100] [--turns 2]

OLD and NEW hold a package ``swell`` with its native library. Poisson's equation on cubes of the sides; a fixed number of iterations; the
least of nine solves, and of four setups, over all turns. Before the turns, processes side by side compile the kernels of both. An editable
install of swell takes precedence over OLD and NEW: use a Python without one.
"""
import argparse
import json
import os
import subprocess
import sys
import time

METHODS = ("cg", "bicgstab", "bicgstabl(l=2)", "bicgstabl(l=4)", "idrs", "minres", "qmr", "tfqmr", "cocg", "cocr", "gmres",
           "single_reduction_cg")
PRECONDS = (("gmres", "ilu0(solve='sweeps(count=2)')"), ("cg", "ic0(solve='sweeps(count=2)')"), ("cg", "amg"), ("gmres", "air"),
            ("cg", "chebyshev"), ("cg", "gauss_seidel"), ("cg", "smoothed_aggregation"), ("gmres", "deflation"))
CASES = [*((method, None, dtype) for dtype in ("float64", "complex128") for method in METHODS),
         ("cg", None, "float32"), ("bicgstab", None, "float32"), ("cg", None, "complex64"),
         *((method, precond, "float64") for method, precond in PRECONDS)]
HERMITIAN = "cg", "minres", "single_reduction_cg"
COMPILERS = 9           # processes that compile for one copy


def measure(method, precond, dtype, side, warm):
    """Return (µs an iteration, iterations, ms of the setup); only compile if ``warm``."""
    import cupy
    import cupyx.scipy.sparse
    import numpy as np
    import scipy.sparse as sp

    import swell

    def seconds(call):
        cupy.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        call()
        cupy.cuda.runtime.deviceSynchronize()
        return time.perf_counter() - began

    A = sp.csr_array(swell.gallery.poisson3d(side))
    if dtype[0] == "c" and method not in HERMITIAN:
        A = A + 0.01j * sp.eye_array(A.shape[0])
    A = cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(A.astype(dtype)))
    b = cupy.asarray(np.random.default_rng(0).standard_normal(A.shape[0]).astype(dtype))
    named = {"method": method, "maxiter": 12 if precond else 60, "device": "cuda",
             "rtol": 1e-14 if dtype in ("float64", "complex128") else 1e-7, **({"precond": precond} if precond else {})}
    solver = swell.prepare(A, **named)
    result = solver.solve(b)
    if warm:
        return None
    solve = min(seconds(lambda: solver.solve(b)) for _ in range(9))
    setup = min(seconds(lambda: swell.prepare(A, **named)) for _ in range(4)) if precond else 0.0
    return 1e6 * solve / max(result.iterations, 1), result.iterations, 1e3 * setup


def start(folder, cases, sides, warm):
    """Start a process that measures ``cases`` with the package in ``folder``."""
    task = json.dumps([cases, [20] if warm else sides, warm])
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), "--work", task], stdout=subprocess.PIPE, text=True, cwd="/",
                            env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])})


def work(cases, sides, warm):
    for method, precond, dtype in cases:
        for side in sides:
            try:
                found = measure(method, precond, dtype, side, warm)
            except Exception as error:           # noqa: BLE001: a method that one copy lacks is left out, and said
                found = repr(error)[:120]
            print(json.dumps([f"{method} {precond or ''} {dtype} {side}³", found]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--only", default="", help="cases whose method, preconditioner and type hold this text")
    parser.add_argument("--sides", default="46,100")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(*json.loads(given.work))
    folders = os.path.abspath(given.old), os.path.abspath(given.new)
    cases, sides = [c for c in CASES if given.only in f"{c[0]} {c[1] or ''} {c[2]}"], [int(s) for s in given.sides.split(",")]
    for process in [start(folder, cases[k::COMPILERS], sides, True) for folder in folders for k in range(COMPILERS)]:
        process.communicate()
    times = {}
    for _ in range(given.turns):
        for k, folder in enumerate(folders):
            for line in start(folder, cases, sides, False).communicate()[0].splitlines():
                name, found = json.loads(line)
                times.setdefault(name, ([], []))[k].append(found)
    for name, (old, new) in times.items():
        if not all(isinstance(found, list) for found in old + new):
            print(name, *old[:1], *new[:1], sep=" | ")
            continue
        (a, _, p), (b, _, q) = (tuple(map(min, zip(*runs))) for runs in (old, new))
        setup = f", setup {p:.2f} → {q:.2f} ms ({q / p:.2f})" if p else ""
        print(f"{name}: {a:.1f} → {b:.1f} µs an iteration ({b / a:.3f}){setup}")


if __name__ == "__main__":
    main()
