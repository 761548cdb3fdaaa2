"""Iterations of multigrid over the number of ranks: smoothed aggregation, classical, AIR.

    python benchmarks/iterations_over_ranks.py [--ranks 1,2,4,8] [--gathered ROWS] SYSTEM ...

SYSTEM is a BODY of benchmarks/elasticity.py, elasticity2d:M or poisson2d:M, by CG and smoothed aggregation (bodies with
coordinates); classical:poisson3d:M and so on, by CG and AMG; or advection:M:KIND, M² or M³ cells of swell.gallery's
advection, by FGMRES and AIR. Ranks are threads of this process, each with consecutive rows. b = A x for a random x, to
a true relative residual of 1e-8. ``--gathered``: levels with more rows a rank stay in parts. Prints a row of a table
for each system.
"""
from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from elasticity import body

import swell
from swell import distributed, gallery
from swell.distributed.amg import hierarchy


def system(text):
    """(matrix, method, preconditioner, unknowns of a node) of a name."""
    kind, _, rest = text.partition(":")
    if kind == "advection":
        m, flow = rest.split(":")
        return gallery.advection((int(m),) * (3 if flow == "inset" else 2), flow), "fgmres", swell.AIR(), 1
    if kind == "classical":
        return system(rest)[0], "cg", swell.AMG(), 1
    if kind in ("poisson2d", "elasticity2d"):
        block = 2 if kind == "elasticity2d" else 1
        return getattr(gallery, kind)(int(rest)), "cg", swell.SmoothedAggregation(block=block), block
    A, points = body(text)
    return A, "cg", swell.SmoothedAggregation(coordinates=points), 1 if points is None else points.shape[1]


def iterations(communicator, A, b, method, precond, block):
    """The iterations on a rank; text for a solve that did not converge."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=block)
    result = swell.solve(M, b[M.rows], method=method, precond=precond)
    return result.iterations if result.converged else f"{result.iterations} {result.reason.name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="+", metavar="SYSTEM")
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--gathered", type=int, default=hierarchy.GATHERED["cpu"])
    given = parser.parse_args()
    hierarchy.GATHERED["cpu"] = given.gathered
    ranks = [int(count) for count in given.ranks.split(",")]
    print("| system | rows | one device |", *(f"{count} |" for count in ranks))
    print("|---|---|---|" + "---|" * len(ranks))
    for name in given.systems:
        A, method, precond, block = system(name)
        A = sp.csr_array(A)
        b = A @ np.random.default_rng(1).standard_normal(A.shape[0])
        one = swell.solve(A, b, method=method, precond=precond, device="cpu").iterations
        counts = [distributed.run(count, iterations, A, b, method, precond, block)[0] for count in ranks]
        print(f"| {name} | {A.shape[0]} | {one} |", *(f"{count} |" for count in counts), flush=True)


if __name__ == "__main__":
    main()
