"""Several right-hand sides across ranks: together and one by one; seconds of whole solves, and equality.

    mpiexec -n 2 python benchmarks/right_hand_sides_ranks.py [--device cuda] [--messages nccl] [--edge 100] [--columns 8]

Poisson's matrix on ``--edge``³ points a rank, solved to 1e-8 for random right-hand sides that lie on the device. Every
line has the least time of three solves, of the slowest rank. Equality is of x, bit for bit, and of the histories.
"""
from __future__ import annotations

import argparse
import time

import numpy as np

import swell
from swell import distributed
from swell.bench.scaling.ranks import slab

CASES = [("cg", None), ("single_reduction_cg", None), ("gmres(restart=30)", "schwarz(overlap=1, inner='jacobi')"),
         ("cg", "amg")]


def measured(A, B, method, precond, together):
    """(least seconds of the slowest rank, results) of solves for the columns of B."""
    ranks, solver, took = A.space.ranks.communicator, swell.prepare(A, method=method, precond=precond, maxiter=2000), []
    for _ in range(4):                           # the first compiles and captures
        ranks.allgather(None)
        begin = time.perf_counter()
        results = solver.solve(B, together=together)
        took.append(max(ranks.allgather(time.perf_counter() - begin)))
    return min(took[1:]), results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--messages", choices=("peer", "nccl"))
    parser.add_argument("--edge", type=int, default=100)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--preconds", nargs="*", default=["none", "schwarz", "amg"], help="of the cases to run")
    given = parser.parse_args()
    ranks = distributed.init(messages=given.messages)
    A = slab(ranks, given.edge, given.device)
    space = A.space
    with space.active():
        B = space.from_host(np.random.default_rng(ranks.rank).standard_normal((A.own.shape[0], given.columns)))
    if ranks.rank == 0:
        print(f"{A.shape[0]} rows on {space.describe()}, {type(space.ranks.communicator).__name__}, "
              f"{given.columns} columns")
    for method, precond in CASES:
        if (precond or "none").split("(")[0] not in given.preconds:
            continue
        seconds, found = zip(*(measured(A, B, method, precond, together) for together in (True, False)))
        with space.active():
            difference = max(space.ranks.max(float(abs(space.to_host(a.x) - space.to_host(b.x)).max()))
                             for a, b in [found])
        alike = all(ranks.allgather(all(np.array_equal(a.history, b.history) for a, b in zip(*found))))
        if ranks.rank == 0:
            iterations = [max(r.iterations for r in results) for results in found]
            print(f"{method:20} {precond or '':36} together {seconds[0]:7.4f} s, one by one {seconds[1]:7.4f} s "
                  f"({seconds[1] / seconds[0]:.2f}); iterations {iterations}, converged {found[0].converged}, x "
                  f"{'equal' if difference == 0 else f'within {difference:.1e}'}, histories "
                  f"{'equal' if alike else 'differ'}", flush=True)


if __name__ == "__main__":
    main()
