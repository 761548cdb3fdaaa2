"""BDDC on Poisson's cube with its subdomains spread over ranks, each of which makes its own. Rank 0 prints.

    mpiexec -n 2 python benchmarks/bddc_ranks.py [--elements 24] [--subdomains 8] [--levels 2] [--device cuda]

After a small cube, whose setup loads what every setup needs: seconds of the slowest rank for the matrix, for the setup
by parts, and for CG to 1e-8 on a random right-hand side (the least of three); the largest memory of a rank, of the host
and, on a GPU, what CuPy's pool has taken. On CPU ranks set OPENBLAS_NUM_THREADS=1: each rank's BLAS would start as many
threads as there are cores.
"""
from __future__ import annotations

import argparse
import resource

import numpy as np

import swell
from swell import distributed
from swell.core.compilation import Stopwatch
from swell.pde.poisson_cube import PoissonCube

SOLVES = 3


def measured(ranks, cube, settings, device):
    """(result, seconds by part, operator) of one cube; seconds are the slowest rank's."""
    ranks.allgather(None)
    watch, seconds = Stopwatch(), {}

    def lap(name):
        A.space.synchronize()
        seconds[name] = max(ranks.allgather(watch.seconds)) - sum(seconds.values())

    parts = cube.rank_subdomains(ranks.rank, ranks.size, f"cuda:{ranks.local_rank}" if device == "cuda" else device)
    A, S = distributed.from_subdomains(ranks, parts, device=device, groups=cube.groups())
    lap("matrix")
    solver = swell.prepare(A, method="cg", precond=swell.BDDC(cube.levels, subdomains=S, **settings))
    lap("setup")
    b = np.random.default_rng(1).standard_normal(cube.n)[A.rows]
    results = [solver.solve(b) for _ in range(SOLVES)]
    seconds["krylov"] = min(max(ranks.allgather(r.timings["solve"])) for r in results)
    M = solver._prepare(0).setup.M
    for part in M.timings:
        seconds[part] = max(ranks.allgather(M.timings[part]))
    return results[-1], seconds, M


def memory(ranks, space):
    """GiB of the rank with most: of the host, of the GPU's pool."""
    pool = 0
    if space.name == "cuda":
        with space.active():
            pool = space.xp.get_default_memory_pool().total_bytes()
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, pool
    return np.max(ranks.allgather(mine), axis=0) / 2 ** 30


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=24, help="along an edge of a subdomain, H/h")
    parser.add_argument("--subdomains", type=int, default=8, help="along an edge of the cube")
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--coefficient", default="constant")
    parser.add_argument("--interior", default="blocks")
    parser.add_argument("--dense-lu", default="getrf")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    ranks, settings = distributed.init(), {"interior": arguments.interior, "dense_lu": arguments.dense_lu}
    measured(ranks, PoissonCube(3, 4), settings, arguments.device)
    cube = PoissonCube(arguments.elements, arguments.subdomains, arguments.levels, arguments.coefficient)
    result, seconds, M = measured(ranks, cube, settings, arguments.device)
    host, pool = memory(ranks, M.level.space)
    if ranks.rank == 0:
        print(f"{ranks.size} ranks, {cube.subdomains}³ subdomains of {cube.elements}³ elements, {cube.n} unknowns, "
              f"{cube.levels} levels, {arguments.coefficient}")
        print(f"  {M.describe()}")
        print(f"  {result.reason.name.lower()} after {result.iterations} iterations, residual {result.residual:.2e}, "
              f"eigenvalues to {result.spectrum.extremes[1]:.4f}")
        print("  seconds: " + ", ".join(f"{name} {value:.3f}" for name, value in seconds.items()))
        print(f"  memory of the rank with most: host {host:.2f} GiB, GPU {pool:.2f} GiB")


if __name__ == "__main__":
    main()
