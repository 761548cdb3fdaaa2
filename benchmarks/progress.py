"""The cost of progress=True: microseconds an iteration of CG, the least of seven solves, with and without the live line.

    python benchmarks/progress.py                  # in a terminal: the line is drawn on stderr
    python benchmarks/progress.py --device cuda

Both run in turn, in one process. Without a terminal the line is not drawn, and the script says so.
"""
from __future__ import annotations

import argparse
import sys

import numpy as np

import swell

SIZES = 1_000, 10_000, 100_000
SOLVES = 7


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    if not sys.stderr.isatty():
        print("stderr is no terminal: nothing is drawn, and both columns measure the same", file=sys.stderr)
    for n in SIZES:
        A = swell.gallery.poisson2d(round(n**0.5))
        b = np.random.default_rng(1).standard_normal(A.shape[0])
        solver = swell.prepare(A, method="cg", rtol=1e-12, device=device)
        took, reads = {False: [], True: []}, {}
        for shown in [False, True] * (SOLVES + 1):               # the first pair compiles
            r = solver.solve(b, progress=shown)
            took[shown].append(1e6 * r.timings["solve"] / r.iterations)
            reads[shown] = r.host_reads
        plain, drawn = (min(took[shown][1:]) for shown in (False, True))
        print(f"{A.shape[0]} unknowns, {r.iterations} iterations: {plain:.2f} µs an iteration, {drawn:.2f} with the "
              f"line; {reads[False]} and {reads[True]} host reads")


if __name__ == "__main__":
    main()
