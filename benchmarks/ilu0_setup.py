"""What setting up and applying incomplete LU takes on a CPU, beside products and the two passes of GMRES over its
basis, of 15 vectors here: all threads' time, and wall time.

    python benchmarks/ilu0_setup.py atmosmodd~ --precond ilu0 "ilu0(ordering='twisted')"
    python benchmarks/ilu0_setup.py coupled_transport4 --precond ilu0 "ilu(block=4)"

Threads' time says what work there is even where other programs take the cores. Least of five, after one that compiles.
"""
from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix


def measured(run, repeat=5):
    """(threads' time, wall time) in ms, and what ``run`` returns."""
    best, outcome = [np.inf, np.inf], run()
    for _ in range(repeat):
        work, wall = time.process_time(), time.perf_counter()
        outcome = run()
        spent = time.process_time() - work, time.perf_counter() - wall
        best = [min(pair) for pair in zip(best, spent)]
    return [1e3 * seconds for seconds in best], outcome


def passes(space, n, stored, vectors=15):
    """The inner products of GMRES, and its subtractions with weights of zero, so that numbers stay as they are."""
    V, (u, w) = np.ones((vectors, n), stored), np.ones((2, n))
    sums, step = np.zeros(2 * vectors + 3), space.kernels("swell.krylov", "gmres", np.dtype(np.float64))
    subtracted = measured(lambda: step.subtract(None, V, u, w, sums, 0, vectors))[0]
    products = measured(lambda: step.dots(None, V, u, w, sums, 0, vectors))[0]
    return {f"GMRES, inner products, {stored}": products, f"GMRES, subtractions, {stored}": subtracted}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("matrices", nargs="*", default=["atmosmodd~"])
    parser.add_argument("--unknowns", type=int)
    parser.add_argument("--precond", nargs="*", default=["ilu0", "ilu0(ordering='twisted')"])
    arguments = parser.parse_args()
    space = make_space("cpu")
    for name in arguments.matrices:
        A = CSRMatrix.from_scipy(sp.csr_array(gallery.get(name, arguments.unknowns)), space)
        x = np.random.default_rng(7).standard_normal(A.shape[0])
        y = np.empty_like(x)
        print(f"{name}: {A.shape[0]} rows, {A.nnz} entries; ms of all threads, wall", flush=True)
        with space.active(A.shape[0]):
            rows = {"product, CSR": measured(lambda: A.apply(x, y))[0]}
            rows["SELL"], S = measured(lambda: resolve("format", "sell").build(A))
            rows["product, SELL"] = measured(lambda: S.apply(x, y))[0]
            for stored in (np.float64, np.float32):
                rows |= passes(space, A.shape[0], np.dtype(stored))
            for precond in arguments.precond:
                rows[precond], M = measured(lambda: resolve("precond", precond).build(A))
                rows["  new values"] = measured(lambda: M.update(A))[0]
                rows["  application"] = measured(lambda: M.apply(x, y))[0]
                for label, (work, wall) in rows.items():
                    print(f"  {label:30s} {work:8.1f} {wall:8.1f}", flush=True)
                rows = {}


if __name__ == "__main__":
    main()
