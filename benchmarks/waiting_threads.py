"""Two threads beside one: microseconds an iteration of CG with Jacobi scaling, the least of seven solves.

    python benchmarks/waiting_threads.py
    SWELL_NUM_THREADS=1 python benchmarks/waiting_threads.py
"""
from __future__ import annotations

import numpy as np

import swell
from swell import gallery

SIZES = 10_000, 19_000, 24_000, 30_000, 60_000, 200_000, 1_000_000
SOLVES = 7


def main():
    """Measure and print."""
    for n in SIZES:
        A = gallery.p1_laplacian(n, mass=1e-2)
        solver, b = swell.prepare(A, method="cg", scaling="jacobi", rtol=1e-12), np.random.default_rng(1).random(n)
        solver.solve(b)
        results = [solver.solve(b) for _ in range(SOLVES)]
        took = min(r.timings["solve"] / r.iterations for r in results)
        print(f"{n} rows: {1e6 * took:.1f} µs an iteration")


if __name__ == "__main__":
    main()
