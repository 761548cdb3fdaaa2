"""Stokes and Oseen flow in a driven cavity (MAC) by block preconditioners: iterations, setup, first and later solves.

    python benchmarks/stokes.py [--device cuda] [--repeat 5] [--case NAME ...] [--out FILE] GRID ...

GRID: 2d:M or 3d:M, M cells along each side. Cases: see CASES; "direct" and "minres" are there to compare. The matrix lies on the
device. Times are medians, from the matrix to the solver and from b to x, at a true relative residual of 1e-8. With ``--repeat`` 3
or more the first run, which may compile, does not count.
"""
from __future__ import annotations

import argparse
import json

import numpy as np
import scipy.sparse as sp
from whole_solves import append, on_device, timed

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
        A, b = on_device(given.device, A, b)
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
    _, result, times = timed(lambda: swell.prepare(A, nullspace=pressure, device=given.device, maxiter=STEPS, **chosen),
                             A, b, given.device, given.repeat)
    record = {"grid": grid, "viscosity": given.viscosity, "wind": given.wind, "sigma": given.sigma, "device": given.device, "n": A.shape[0],
              "nnz": int(A.nnz), "case": name, "iterations": result.iterations, "reason": result.reason.name,
              "residual": float(f"{result.residual:.2e}"),
              **times}
    print(json.dumps(record), flush=True)
    append(given.out, record)


if __name__ == "__main__":
    main()
