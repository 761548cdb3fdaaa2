"""Smoothed aggregation on elastic bodies: iterations, setup, first and later solves, update.

    python benchmarks/elasticity.py [--device cuda] [--repeat 5] [--out FILE] BODY ...

BODY: plate:M[:POISSON] (2 M² triangles), cube:M[:POISSON] (M³ hexahedra, needs scikit-fem) or poisson3d:M (constants). The matrix
lies on the device, as a CuPy matrix for a GPU. Times are medians, from the matrix to the solver and from b to x, at a true
relative residual of 1e-8. With ``--repeat`` 5 or more the first run, which may compile, does not count.
"""
from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

import swell

CHOICES = {"W, degree 2": {}, "W, degree 3": {"degree": 3}, "V, degree 2": {"cycle": "V"}}


def plate(m, poisson):
    """A plate clamped at its left side, and the positions of its free nodes."""
    x, y = np.meshgrid(np.linspace(0, 1, m + 1), np.linspace(0, 1, m + 1), indexing="ij")
    points = np.column_stack([x.ravel(), y.ravel()])[m + 1:]
    return swell.gallery.elasticity2d(m, poisson=poisson).tocsr(), {"coordinates": points}


def cube(m, poisson):
    """A cube of trilinear elements clamped at one side, and the positions of its free nodes."""
    import skfem as fe
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    mesh = fe.MeshHex.init_tensor(*(np.linspace(0, 1, m + 1),) * 3)
    basis = fe.Basis(mesh, fe.ElementVector(fe.ElementHex1()))
    K = fe.asm(linear_elasticity(*lame_parameters(1.0, poisson)), basis)
    nodes = np.unique(basis.complement_dofs(basis.get_dofs(lambda x: x[0] < 1e-9)) // 3)
    rows = (3 * nodes[:, None] + np.arange(3)).ravel()
    A = K[rows][:, rows].tocsr()
    return ((A + A.T) / 2).tocsr(), {"coordinates": mesh.p.T[nodes]}


def body(text):
    """(matrix, options of SmoothedAggregation) of a name."""
    kind, size, *poisson = text.split(":")
    if kind == "poisson3d":
        return swell.gallery.poisson3d(int(size)).tocsr(), {}
    return {"plate": plate, "cube": cube}[kind](int(size), float(poisson[0]) if poisson else 0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bodies", nargs="+", metavar="BODY")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", help="append a line of JSON for each choice")
    given = parser.parse_args()
    for name in given.bodies:
        A, options = body(name)
        b = np.random.default_rng(1).standard_normal(A.shape[0])
        if given.device == "cuda":
            import cupy
            from cupyx.scipy.sparse import csr_matrix
            A, b = csr_matrix(A), cupy.asarray(b)
        for label, choice in CHOICES.items():
            measure(given, name, A, b, label, swell.SmoothedAggregation(**options, **choice))


def measure(given, name, A, b, label, precond):
    """Print and record one choice."""
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
        solver = timed("setup", lambda: swell.prepare(A, method="cg", precond=precond, device=given.device))
        timed("solve", lambda: solver.solve(b))
        result = timed("again", lambda: solver.solve(b))
        timed("update", lambda: solver.update(A))
    skipped = 1 if given.repeat >= 5 else 0
    record = {"body": name, "device": given.device, "n": A.shape[0], "nnz": int(A.nnz), "choice": label,
              "iterations": result.iterations, "reason": result.reason.name,
              "rows": [M.shape[0] for M in solver.M.hierarchy.matrices],
              "complexity": round(solver.M.hierarchy.operator_complexity, 2),
              **{f"{what}_ms": round(statistics.median(found[skipped:]), 2) for what, found in times.items()}}
    print(json.dumps(record), flush=True)
    if given.out:
        with open(given.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
