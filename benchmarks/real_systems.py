"""Products and times of methods with preconditioners on the matrices of a folder that are not for CG.

    python benchmarks/real_systems.py FOLDER [--methods bicgstab "idrs(s=4)" ...] [--preconds ilu0 jacobi ...]

Systems: every square matrix that is not Hermitian with a positive diagonal and has no zero on the diagonal, with A times
ones and with ones on the right. A cell is the products with A that a true residual of 1e-8 takes, the one for it included
(they do not depend on the load), and ms of setup and solve, the least of three after one; "−": not in --maxiter iterations.
The summary sets each column beside the first one, by the systems that both solve.
"""
from __future__ import annotations

import argparse
import pathlib
from itertools import product

import numpy as np

import swell
from swell.bench import engine

RTOL = 1e-8


def systems(folder):
    """(name, A, b) of all of them."""
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".gz", ".mtx", ".npz")):
        try:
            A = swell.io.read_matrix(path)
        except swell.InputError as error:
            engine.tell(f"left out: {error}")
            continue
        diagonal = A.diagonal()
        hermitian = abs(A - A.conj().T).max() <= 1e-12 * abs(A).max()
        if A.shape[0] == A.shape[1] and diagonal.all() and not (hermitian and (diagonal.real > 0).all()):
            name, ones = path.name.split(".")[0], np.ones(A.shape[0], A.dtype)
            yield f"{name}, A·1", A, A @ ones
            yield f"{name}, ones", A, ones


def solved(A, b, method, precond, maxiter):
    """(products, ms) to the tolerance, or None."""
    runs = [swell.solve(A, b, method=method, precond=precond, rtol=RTOL, maxiter=maxiter) for _ in range(4)]
    least = min(r.timings["setup"] + r.timings["solve"] for r in runs[1:])              # the first may compile
    return (runs[0].products, 1e3 * least) if runs[0].converged else None


def beside(column, first):
    """How many systems, how many of them the first column does not solve, and medians and extremes of the ratios."""
    both = [(c, f) for c, f in zip(column, first) if c and f]
    products, times = (np.array([c[k] / f[k] for c, f in both]) for k in (0, 1))
    return (sum(c is not None for c in column), sum(c is not None and f is None for c, f in zip(column, first)),
            f"{np.median(products):.2f}", f"{products.min():.2f}–{products.max():.2f}", f"{np.median(times):.2f}",
            f"{times.min():.2f}–{times.max():.2f}")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--methods", nargs="*", default=["bicgstab", "bicgstabl(l=4)", "tfqmr", "idrs(s=4)",
                                                         "gmres(restart=30)"])
    parser.add_argument("--preconds", nargs="*", default=["ilu0", "jacobi"])
    parser.add_argument("--maxiter", type=int, default=2000)
    arguments = parser.parse_args()
    choices = [f"{method}, {precond}" for precond, method in product(arguments.preconds, arguments.methods)]
    names, table = [], []
    for name, A, b in systems(arguments.folder):
        names.append(name)
        table.append([solved(A, b, *choice.split(", "), arguments.maxiter) for choice in choices])
        engine.tell(name)
    cells = [[f"{c[0]}, {c[1]:.1f}" if c else "−" for c in row] for row in table]
    width = len(arguments.methods)
    for k, precond in enumerate(arguments.preconds):
        engine.show(f"{precond}: products, ms to {RTOL:g}", ("system", *arguments.methods),
                    [(n, *row[k * width:(k + 1) * width]) for n, row in zip(names, cells)])
    columns = list(zip(*table))
    engine.show(f"beside {choices[0]}, of {len(names)} systems",
                ("method, precond", "solved", "not by it", "products, median", "range", "time, median", "range"),
                [(choice, *beside(column, columns[0])) for choice, column in zip(choices, columns)])


if __name__ == "__main__":
    main()
