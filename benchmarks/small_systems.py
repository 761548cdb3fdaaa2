"""What `prepare` and `solve` of a small system cost, once everything is compiled.

    python benchmarks/small_systems.py [--device cuda] [--profile] [--sides 32,100] [--parts 1] [METHOD ...]

The systems are Poisson's equation on m² points (m of ``--sides``), the matrix on the device, a fresh random right-hand
side for each solve, to 1e-8. Without METHOD: resident_cg, cg and swell's own choice (``auto``). Prints the medians of 30
preparations and 50 solves, the iterations, and with ``--profile`` where the host's time of 20 preparations goes.
``--parts N``: resident_cg cuts the matrix into N parts at most. 1, 2, 4, 8 or 16 parts make one cluster, others a grid.
"""
from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time

import numpy as np

import swell
from swell.bench.amg import on_device
from swell.core.devices import make_space
from swell.formats.parts import ResidentParts
from swell.orderings.bisection import Bisection

PREPARATIONS, SOLVES = 30, 50


def median(call, count):
    """Median seconds of ``count`` calls, after two that do not count."""
    times = []
    for _ in range(count + 2):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:]), result


def measure(space, side, method, profile):
    """Print one system's times with one method."""
    A, rng = swell.gallery.poisson2d(side), np.random.default_rng(7)
    matrix = on_device(space, A)
    with space.active():
        sides = iter([space.from_host(rng.standard_normal(A.shape[0])) for _ in range(SOLVES + 2)])
    named = {} if method == "auto" else {"method": method}

    def prepare():
        return swell.prepare(matrix, device=space.device_name, rtol=1e-8, **named)

    setup, solver = median(prepare, PREPARATIONS)
    solve, result = median(lambda: solver.solve(next(sides)), SOLVES)
    print(f"poisson2d {side}², {method} ({result.method}): prepare {1e3 * setup:.2f} ms, solve {1e3 * solve:.3f} ms, "
          f"{result.iterations} iterations, {1e6 * solve / max(result.iterations, 1):.1f} µs each, {result.reason.name}",
          flush=True)
    if profile:
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [prepare() for _ in range(20)])
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=["resident_cg", "cg", "auto"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sides", default="32,100")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--parts", type=int, default=0)
    given = parser.parse_args()
    swell.ResidentCG.format = ResidentParts(count=given.parts, ordering=Bisection())
    space = make_space(given.device)
    for side in map(int, given.sides.split(",")):
        for method in given.methods:
            measure(space, side, method, given.profile and method != "cg")


if __name__ == "__main__":
    main()
