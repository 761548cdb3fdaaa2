"""A sweep over frequencies with and without reuse, on a folder of K.npz, M.npz and B.npz.

    python benchmarks/helmholtz_sweep.py DATA/car_cabin --band 20:300:2.828 --device cuda

A(f) = K − k² M + 0.05 i k B with k = 2πf/340, a source in one unknown; every residual is computed once more by SciPy,
outside of the time. One run after the other; on a machine with other work the ratio says more than the seconds.
"""
from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from swell.bench import engine
from swell.pde import helmholtz

SPEED, ABSORPTION = 340.0, 0.05


def sweep(matrices, b, band, reuse, arguments):
    """(row of the table, pressures in one unknown) of one sweep."""
    K, M, B = matrices
    start = time.perf_counter()
    solver = helmholtz.Sweep(K, M, ABSORPTION * B, method=arguments.method, precond=arguments.precond,
                             rtol=arguments.rtol, maxiter=arguments.maxiter, device=arguments.device, reuse=reuse,
                             remember=arguments.remember)
    seconds, worst, failed, iterations, products, heard = time.perf_counter() - start, 0.0, [], 0, 0, []
    for hertz in band:
        k = 2 * math.pi * hertz / SPEED
        start = time.perf_counter()
        result = solver.solve(k, b)
        x = solver.space.to_host(result.x)
        seconds += time.perf_counter() - start
        A = K - k * k * M + 1j * k * ABSORPTION * B
        worst = max(worst, float(np.linalg.norm(b - A @ x) / np.linalg.norm(b)))
        iterations, products = iterations + result.iterations, products + result.products
        heard.append(x[arguments.ear])
        if not result.converged:
            failed.append(f"{hertz:g} Hz {result.reason.name}")
    return ("with reuse" if reuse else "without", len(band), iterations, products, solver.setups, f"{seconds:.2f}",
            f"{worst:.1e}", ", ".join(failed) or "none"), np.array(heard)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--band", default="20:300:2.828", help="default: 100 frequencies")
    parser.add_argument("--method", default="cocg")
    parser.add_argument("--precond", default="ilu0")
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--maxiter", type=int)
    parser.add_argument("--remember", type=int, default=32)
    parser.add_argument("--source", type=int, default=1000, help="unknown that makes the sound")
    parser.add_argument("--ear", type=int, default=20000, help="unknown where both sweeps are compared")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    matrices = [sp.load_npz(arguments.folder / f"{name}.npz").tocsr() for name in "KMB"]
    b = np.zeros(matrices[0].shape[0], complex)
    b[arguments.source] = 1
    band = helmholtz.band(arguments.band)
    sweep(matrices, b, band[:2], True, arguments)                # compiled, and touched
    rows, heard = zip(*(sweep(matrices, b, band, reuse, arguments) for reuse in (True, False)))
    engine.show(f"{arguments.folder.name}, {b.size} unknowns, {arguments.method} with {arguments.precond}, "
                f"{arguments.rtol:g}, on {arguments.device}; both differ by "
                f"{np.linalg.norm(heard[0] - heard[1]) / np.linalg.norm(heard[1]):.0e} at the ear",
                ("sweep", "frequencies", "iterations", "products", "setups", "s", "worst true residual", "failed"),
                rows)


if __name__ == "__main__":
    main()
