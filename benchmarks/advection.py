"""AIR on advection: iterations, setup, first and later solves, update, beside ILU(0), Jacobi, and PyAMG's AIR on a CPU.

    python benchmarks/advection.py [--device cuda] [--repeat 5] [--method fgmres] [--precond air,ilu0] [--pyamg] FLOW ...

FLOW: FIELD:M (M² cells), FIELD:MxM or FIELD:MxMxM, each with an optional :PECLET, the cell Péclet number h / ε; or a
file of Matrix Market. FIELD: oblique, rotating or inset. The matrix lies on the device, as a CuPy matrix for a GPU.
Times are medians in milliseconds, from the matrix to the solver and from b to x, at a true relative residual of 1e-8.
The first of several runs, which may compile, does not count.
"""
from __future__ import annotations

import argparse
import time

import numpy as np
from whole_solves import append, on_device, right_hand_side, timed

import swell

COLUMNS = "flow", "precond", "n", "iterations", "reason", "setup_ms", "solve_ms", "again_ms", "update_ms", "complexity"


def flow(text):
    """The matrix of a name."""
    if "mtx" in text:
        from swell.io import read_matrix
        return read_matrix(text).tocsr()
    field, size, *peclet = text.split(":")
    shape = tuple(int(part) for part in size.split("x"))
    shape = shape * 2 if len(shape) == 1 else shape
    diffusion = 1 / (max(shape) * float(peclet[0])) if peclet else 0.0
    return swell.gallery.advection(shape, field, diffusion).tocsr()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flows", nargs="+", metavar="FLOW")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--method", default="fgmres")
    parser.add_argument("--precond", default="air,ilu0,jacobi", help="names, separated by commas")
    parser.add_argument("--pyamg", action="store_true", help="also PyAMG's air_solver with SciPy's GMRES, on the CPU")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--maxiter", type=int, default=1000)
    parser.add_argument("--out", help="append a line of JSON for each choice")
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for name in given.flows:
        host = flow(name)
        A, b = on_device(given.device, host, right_hand_side(host.shape[0]))
        for precond in given.precond.split(","):
            show(given, {"flow": name, "precond": precond, **measured(given, A, b, precond)})
        if given.pyamg:
            show(given, {"flow": name, "precond": "PyAMG's AIR", **pyamgs(given, host)})


def show(given, record):
    """Print a row of the table, and append it to the file."""
    print("| " + " | ".join(str(record.get(column, "")) for column in COLUMNS) + " |", flush=True)
    append(given.out, {"device": given.device, **record})


def measured(given, A, b, precond):
    """The record of one preconditioner."""
    stopping = swell.Stopping(maxiter=given.maxiter)
    try:
        solver, result, times = timed(lambda: swell.prepare(A, method=given.method, precond=precond, device=given.device,
                                                            stopping=stopping), A, b, given.device, given.repeat, 1, 2)
    except swell.SwellError as error:
        return {"n": A.shape[0], "reason": type(error).__name__}
    levels = {"complexity": round(solver.M.hierarchy.operator_complexity, 2)} if "air" in precond else {}
    return {"n": A.shape[0], "iterations": result.iterations, "reason": result.reason.name,
            "residual": float(result.residual), **levels,
            **times}


def pyamgs(given, A):
    """The record of PyAMG's AIR with its default options, as a preconditioner of SciPy's GMRES, to the same residual."""
    import pyamg
    import scipy.sparse.linalg as spla
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    start = time.perf_counter()
    levels = pyamg.classical.air_solver(A, max_coarse=300)
    ready = time.perf_counter()
    count = []
    x, _ = spla.gmres(A, b, rtol=1e-8, restart=50, maxiter=4, M=levels.aspreconditioner(cycle="V"),
                      callback=count.append, callback_type="pr_norm")
    done = time.perf_counter()
    residual = float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    return {"n": A.shape[0], "iterations": len(count), "residual": residual, "reason": f"{residual:.1e}",
            "setup_ms": round(1e3 * (ready - start), 1), "solve_ms": round(1e3 * (done - ready), 1),
            "complexity": round(levels.operator_complexity(), 2)}


if __name__ == "__main__":
    main()
