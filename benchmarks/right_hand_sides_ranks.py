"""Several right-hand sides across ranks: together and one by one; seconds of whole solves, and equality.

    mpiexec -n 2 python benchmarks/right_hand_sides_ranks.py [--device cuda] [--messages nccl] [--edge 100] [--columns 8]
    mpiexec -n 8 python benchmarks/right_hand_sides_ranks.py --cabin FOLDER --columns 100

Poisson's matrix on ``--edge``³ points a rank, solved to 1e-8 for random right-hand sides that lie on the device. Every
line has the least time of three solves, of the slowest rank. Equality is of x, bit for bit, and of the histories.

With ``--cabin`` (K.npz, M.npz and B.npz of the real cabin) COCG solves for ``--columns`` sources at 300 Hz to 1e-6, in
two ways: each rank has the whole matrix and a share of the sources, and sends nothing; or the matrix is cut.
"""
from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np
from many_sources import read, sources, system

import swell
from swell import distributed
from swell.bench.scaling.ranks import slab
from swell.distributed.devices import on_device

CASES = [("cg", None), ("single_reduction_cg", None), ("gmres(restart=30)", "schwarz(overlap=1, inner='jacobi')"),
         ("cg", "amg")]


PRECOND = {"cpu": "ilu0", "cuda": "ilu0(solve='sweeps(count=2)')"}           # of the cabin, by device


def timed(ranks, solve):
    """(least seconds of the slowest rank, results) of calls of ``solve``."""
    took = []
    for _ in range(4):                           # the first compiles and captures
        ranks.allgather(None)
        begin = time.perf_counter()
        results = solve()
        took.append(max(ranks.allgather(time.perf_counter() - begin)))
    return min(took[1:]), results


def measured(A, B, method, precond, together):
    """(least seconds of the slowest rank, results) of solves for the columns of B."""
    solver = swell.prepare(A, method=method, precond=precond, maxiter=2000)
    return timed(A.space.ranks.communicator, lambda: solver.solve(B, together=together))


def cabin(ranks, given):
    """Print the seconds of both ways through the cabin."""
    _, A = system(read(given.cabin), 300.0)
    B, local = sources(A.shape[0], given.columns), on_device(ranks, given.device)[0]
    settings = {"method": "cocg", "precond": PRECOND[given.device], "rtol": 1e-6, "maxiter": 5000}
    own = np.array_split(np.arange(given.columns), ranks.size)[ranks.rank]       # none, if there are more ranks
    cut = distributed.scatter(ranks, A if ranks.rank == 0 else None, device=given.device, block=1)
    with local.active():
        mine, parts = local.from_host(B[:, own]), local.from_host(B[cut.rows])
    alone = swell.prepare(A, device=given.device if given.device == "cpu" else f"cuda:{local.device}", **settings)
    across = swell.prepare(cut, **settings)
    ways = {"sources shared out": lambda: alone.solve(mine) if own.size else [],
            "matrix cut": lambda: across.solve(parts)}
    for way, solve in ways.items():
        seconds, results = timed(ranks, solve)
        converged = all(ranks.allgather(all(one.converged for one in results)))
        most = max(ranks.allgather(max((one.iterations for one in results), default=0)))
        if ranks.rank == 0:
            print(f"cabin, {A.shape[0]} rows, {given.columns} sources on {ranks.size} ranks, {way}: "
                  f"{1e3 * seconds:.1f} ms, at most {most} iterations, converged {converged}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--messages", choices=("peer", "nccl"))
    parser.add_argument("--edge", type=int, default=100)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--preconds", nargs="*", default=["none", "schwarz", "amg"], help="of the cases to run")
    parser.add_argument("--cabin", type=pathlib.Path, help="the folder; solve for sources in the cabin instead")
    given = parser.parse_args()
    ranks = distributed.init(messages=given.messages)
    if given.cabin:
        cabin(ranks, given)
        return
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
