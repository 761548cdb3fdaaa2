"""Stokes and Oseen flow in a driven cavity (MAC) by block preconditioners: iterations, setup, first and later solves.

    python benchmarks/stokes.py [--device cuda] [--repeat 5] [--case NAME ...] [--out FILE] GRID ...

GRID: 2d:M or 3d:M, M cells along each side. Cases: see CASES; "direct" and "minres" are there to compare. The matrix lies on the
device. Times are medians, from the matrix to the solver and from b to x, at a true relative residual of 1e-8. With ``--repeat`` 3
or more the first run, which may compile, does not count.
"""
from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
import scipy.sparse as sp

import swell
from swell import FieldSplit, gallery

STEPS = 500
# name: (method, kind, Schur complement, inner preconditioners of velocity and Schur complement)
CASES = {
    "minres diagonal, mass": ("minres", "diagonal", "mass", ("amg", "jacobi")),
    "gmres lower, mass": ("gmres", "lower", "mass", ("amg", "jacobi")),
    "gmres upper, mass": ("gmres", "upper", "mass", ("amg", "jacobi")),
    "gmres full, mass": ("gmres", "full", "mass", ("amg", "jacobi")),
    "minres diagonal, sa, mass": ("minres", "diagonal", "mass", ("smoothed_aggregation", "jacobi")),
    "minres diagonal, degree 2, mass": ("minres", "diagonal", "mass", ("amg(degree=2)", "jacobi")),
    "gmres full, degree 2, mass": ("gmres", "full", "mass", ("amg(degree=2)", "jacobi")),
    "gmres upper, diagonal": ("gmres", "upper", "diagonal", ("amg", "amg")),
    "gmres upper, lsc": ("gmres", "upper", "lsc", ("amg", "amg")),
    "oseen gmres upper, mass": ("gmres", "upper", "mass", ("ilu0", "jacobi")),
    "oseen gmres upper, diagonal": ("gmres", "upper", "diagonal", ("ilu0", "amg")),
    "oseen gmres upper, lsc": ("gmres", "upper", "lsc", ("ilu0", "amg")),
    "oseen gmres upper, exact F, mass": ("gmres", "upper", "mass", ("direct", "jacobi")),
    "oseen gmres upper, exact F, diagonal": ("gmres", "upper", "diagonal", ("direct", "amg")),
    "oseen gmres upper, exact F, lsc": ("gmres", "upper", "lsc", ("direct", "amg")),
}
OTHERS = {"direct": {"method": "direct"}, "minres": {"method": "minres"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("grids", nargs="+", metavar="GRID")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--case", action="append", choices=(*CASES, *OTHERS), help="may be repeated; default: all for Stokes")
    parser.add_argument("--viscosity", type=float, default=1.0)
    parser.add_argument("--wind", type=float, default=0.0)
    parser.add_argument("--sigma", type=float, default=0.0, help="adds σ u, as of an implicit step in time")
    parser.add_argument("--out", help="append a line of JSON for each case")
    given = parser.parse_args()
    cases = given.case or [name for name in CASES if not name.startswith("oseen")]
    for grid in given.grids:
        axes, cells = grid.split("d:")
        A, b, fields, mass = gallery.stokes((int(cells),) * int(axes), given.viscosity, given.wind)
        pressure, inertia = np.zeros(A.shape[0]), np.zeros(A.shape[0])
        pressure[fields["p"]], inertia[fields["u"]] = 1, given.sigma / int(cells) ** int(axes)
        A = (A + sp.diags_array(inertia)).tocsr() if given.sigma else A
        if given.device == "cuda":
            import cupy
            from cupyx.scipy.sparse import csr_matrix
            A, b = csr_matrix(A), cupy.asarray(b)
        for name in cases:
            measure(given, grid, name, A, b, pressure, options(name, fields, mass))


def options(name, fields, mass):
    """The arguments of ``swell.prepare`` for a case."""
    if name in OTHERS:
        return OTHERS[name]
    method, kind, schur, inner = CASES[name]
    return {"method": method,
            "precond": FieldSplit(fields=fields, inner=inner, kind=kind, schur=mass if schur == "mass" else schur)}


def measure(given, grid, name, A, b, pressure, chosen):
    """Print and record one case."""
    times = {"setup": [], "solve": [], "again": [], "update": []}

    def timed(what, function):
        start = time.perf_counter()
        result = function()
        if given.device == "cuda":
            import cupy
            cupy.cuda.runtime.deviceSynchronize()
        times[what].append(1e3 * (time.perf_counter() - start))
        return result

    for _ in range(given.repeat):
        solver = timed("setup", lambda: swell.prepare(A, nullspace=pressure, device=given.device, maxiter=STEPS, **chosen))
        timed("solve", lambda: solver.solve(b))
        result = timed("again", lambda: solver.solve(b))
        timed("update", lambda: solver.update(A))
    skipped = 1 if given.repeat >= 3 else 0
    record = {"grid": grid, "viscosity": given.viscosity, "wind": given.wind, "sigma": given.sigma, "device": given.device, "n": A.shape[0],
              "nnz": int(A.nnz), "case": name, "iterations": result.iterations, "reason": result.reason.name,
              "residual": float(f"{result.residual:.2e}"),
              **{f"{what}_ms": round(statistics.median(found[skipped:]), 1) for what, found in times.items()}}
    print(json.dumps(record), flush=True)
    if given.out:
        with open(given.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
