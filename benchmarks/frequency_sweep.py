"""A band of frequencies on the real cabin with and without reuse: iterations, preconditioners, seconds.

    python benchmarks/frequency_sweep.py FOLDER [--methods cocg cocr] [--preconds none jacobi "ilu0(solve=isai)"]
        [--frequencies 20:300:5] [--remember 0 8] [--rtol 1e-6] [--device cuda]

FOLDER has K.npz, M.npz and B.npz (car_cabin/ of the real systems): A(f) = K − k²M + 0.05 i k B, k = 2πf/340, and a
point source. Without reuse there is a new preconditioner and x₀ = 0 at every frequency. Times are of all that a sweep
does, A(f), starting vectors and what the first frequency sets up among it, but for compilation; threads' time says
what work there is where other programs take the cores. Every solution is checked by SciPy's products, after them all:
threads of a BLAS that wait for its next call would take the cores in the meantime.
"""
from __future__ import annotations

import argparse
import pathlib
import time
from itertools import product

import numpy as np
import scipy.sparse as sp

from swell.bench import engine
from swell.core.errors import SwellError
from swell.pde import helmholtz

DAMPING, SPEED, SOURCE = 0.05, 340.0, 1000          # 1/Z of the walls, m/s, a node
HEADER = ("method, precond", "reuse", "iterations", "most", "set up", "setups, s", "threads' time, s",
          "wall, s", "largest true residual")


def swept(matrices, frequencies, arguments, method, precond, remember):
    """One row of the table, from the setups on: all frequencies in their order; ``remember`` None is without reuse."""
    K, M, B = matrices
    b = np.zeros(K.shape[0], complex)
    b[SOURCE] = 1
    sweep = helmholtz.Sweep(K, M, DAMPING * B, method=method, precond=precond, scaling=arguments.scaling,
                            rtol=arguments.rtol, device=arguments.device, reuse=remember is not None,
                            remember=remember or 0)
    counts, setup, work, wall, found = [], 0.0, 0.0, 0.0, []
    for f in frequencies:
        k, before, start = 2 * np.pi * f / SPEED, time.process_time(), time.perf_counter()
        r = sweep.solve(k, b)
        work, wall = work + time.process_time() - before, wall + time.perf_counter() - start
        if not r.converged:
            engine.tell(f"{f:g} Hz: {r.reason.name} at {r.residual:.1e}")
        counts.append(r.iterations)
        setup += r.timings["setup"]
        found.append((k, sweep.space.to_host(r.x)))
    worst = max(np.linalg.norm(b - (K @ x - k * k * (M @ x) + 1j * k * DAMPING * (B @ x))) for k, x in found)
    return sum(counts), max(counts), sweep.setups, f"{setup:.2f}", f"{work:.2f}", f"{wall:.2f}", f"{worst:.1e}"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--frequencies", default=None, help="FROM:TO:STEP or a list, Hz; default 100 from 20 to 300")
    parser.add_argument("--methods", nargs="*", default=["cocg"])
    parser.add_argument("--preconds", nargs="*", default=["ilu0"])
    parser.add_argument("--scaling", default=None)
    parser.add_argument("--remember", nargs="*", type=int, default=[0, 4, 8, 16, 32], help="solutions, a row each")
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    for name in "KMB":
        if not (arguments.folder / f"{name}.npz").exists():
            parser.error(f"{arguments.folder} has no {name}.npz: name the folder car_cabin of the real systems")
    matrices = [sp.load_npz(arguments.folder / f"{name}.npz").tocsr() for name in "KMB"]
    try:
        frequencies = helmholtz.band(arguments.frequencies) if arguments.frequencies else np.linspace(20, 300, 100)
    except SwellError as error:
        parser.error(str(error))
    rows = []
    for method, precond in product(arguments.methods, arguments.preconds):
        try:
            swept(matrices, frequencies[:2], arguments, method, precond, 1)             # compiles
        except SwellError as error:
            engine.tell(f"{method}, {precond}: {error}")
            continue
        for remember in (None, *arguments.remember):
            reuse = "none" if remember is None else f"{remember} solutions"
            row = swept(matrices, frequencies, arguments, method, precond, remember)
            rows.append((f"{method}, {precond}", reuse, *row))
            engine.tell(", ".join(map(str, rows[-1])))
    scaled = f", scaling {arguments.scaling}" if arguments.scaling else ""
    engine.show(f"{len(frequencies)} frequencies, {matrices[0].shape[0]} unknowns, {arguments.device}{scaled}, to "
                f"{arguments.rtol:g}", HEADER, rows)
    if not rows:
        parser.exit(2)


if __name__ == "__main__":
    main()
