"""Maxwell's curl-curl equation by AMS: iterations, setup, first and later solves, update.

    python benchmarks/maxwell.py [--device cuda] [--repeat 5] [--mass 1e-2] [--out FILE] GRID ...

GRID: yee2d:M or yee3d:M (a regular grid of M cells a side), tet:M (M³ cubes of six tetrahedra, needs scikit-fem), or hypre:FOLDER
(the files mfem.A, mfem.G, mfem.Gx, … of src/test/TEST_ams in hypre's repository; ``--mass`` does not matter there). Times are medians, from the matrix to the solver and from b to x, at a true relative residual of 1e-7. With ``--repeat`` 3 or more the first
run, which may compile, does not count.
"""
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from whole_solves import append, on_device, right_hand_side, timed

import swell

STEPS = 5000


def problem(text, mass):
    """(matrix, discrete gradient, vectors along the edges) of a name."""
    kind, cells = text.split(":")
    if kind == "hypre":
        return from_hypre(Path(cells))
    if kind == "tet":
        return tetrahedra(int(cells), mass)
    return swell.gallery.curl_curl((int(cells),) * int(kind[3]), mass)


def from_hypre(folder):
    """hypre's test of AMS: rows, columns and values of matrices, and of vectors, in files one a rank, counted from 1."""
    def lines(name):
        return np.concatenate([np.loadtxt(path, skiprows=1) for path in sorted(folder.glob(f"mfem.{name}.0*"))])

    def matrix(name):
        rows, columns, values = lines(name).T
        return sp.csr_array((values, (rows.astype(int) - 1, columns.astype(int) - 1)))
    return matrix("A"), matrix("G"), np.column_stack([lines(f"G{axis}")[:, 1] for axis in "xyz"])


def tetrahedra(cells, mass):
    """A cube of tetrahedra with electric walls, as in examples/27_maxwell.py."""
    import skfem as fe
    from skfem.helpers import curl, dot
    mesh = fe.MeshTet.init_tensor(*(np.linspace(0, 1, cells + 1),) * 3)
    basis = fe.Basis(mesh, fe.ElementTetN0())
    A = fe.BilinearForm(lambda u, v, w: dot(curl(u), curl(v)) + mass * dot(u, v)).assemble(basis)
    tail, head = mesh.edges
    rows, ends = np.tile(np.arange(tail.size), 2), np.concatenate([tail, head])
    G = sp.csr_array((np.repeat([-1.0, 1.0], tail.size), (rows, ends)), shape=(tail.size, mesh.nvertices))
    free = basis.complement_dofs(basis.get_dofs())
    inner = np.setdiff1d(np.arange(mesh.nvertices), mesh.boundary_nodes())
    return sp.csr_array(A[free][:, free]), sp.csr_array(G[free][:, inner]), (G @ mesh.p.T)[free]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("grids", nargs="+", metavar="GRID")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--mass", type=float, default=1e-2)
    parser.add_argument("--others", action="store_true", help="Jacobi and IC(0) too")
    parser.add_argument("--out", help="append a line of JSON for each choice")
    given = parser.parse_args()
    for grid in given.grids:
        A, gradient, along = problem(grid, given.mass)
        choices = {kind: swell.AMS(gradient=gradient, edges=along, kind=kind) for kind in ("multiplicative", "additive")}
        if given.others:
            choices |= {name: name for name in ("jacobi", "ic0")}
        A, b = on_device(given.device, A, right_hand_side(A.shape[0]))
        for label, precond in choices.items():
            measure(given, grid, A, b, label, precond)


def measure(given, grid, A, b, label, precond):
    """Print and record one choice."""
    _, result, times = timed(lambda: swell.prepare(A, method="cg", precond=precond, device=given.device, rtol=1e-7,
                                                   maxiter=STEPS), A, b, given.device, given.repeat)
    record = {"grid": grid, "mass": given.mass, "device": given.device, "n": A.shape[0], "nnz": int(A.nnz), "choice": label,
              "iterations": result.iterations, "reason": result.reason.name,
              **times}
    print(json.dumps(record), flush=True)
    append(given.out, record)


if __name__ == "__main__":
    main()
