"""A band of frequencies on the real cabin with and without reuse: iterations, preconditioners, seconds.

    python benchmarks/frequency_sweep.py FOLDER [--frequencies 20:300:5] [--rtol 1e-6]

FOLDER has K.npz, M.npz and B.npz (car_cabin/ of the real systems): A(f) = K − k²M + 0.05 i k B, k = 2πf/340, a point source.
Times are of all that a sweep does, A(f) and starting vectors included; threads' time says what work there is where other
programs take the cores. Every solution is checked by SciPy's products, outside the times.
"""
from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np
import scipy.sparse as sp

from swell.bench import engine
from swell.pde import helmholtz

DAMPING, SPEED, SOURCE = 0.05, 340.0, 1000          # 1/Z of the walls, m/s, a node
RUNS = {"from the beginning each": {"reuse": False},
        **{f"{count} solutions remembered": {"remember": count} for count in (0, 4, 8, 16, 32)}}


def swept(matrices, frequencies, method, precond, rtol, device, **settings):
    """One row of the table: all frequencies in their order."""
    K, M, B = matrices
    b = np.zeros(K.shape[0], complex)
    b[SOURCE] = 1
    sweep = helmholtz.Sweep(K, M, DAMPING * B, method=method, precond=precond, rtol=rtol, device=device, **settings)
    counts, work, wall, worst = [], 0.0, 0.0, 0.0
    for f in frequencies:
        k, before, start = 2 * np.pi * f / SPEED, time.process_time(), time.perf_counter()
        r = sweep.solve(k, b)
        work, wall = work + time.process_time() - before, wall + time.perf_counter() - start
        if not r.converged:
            engine.tell(f"{f:g} Hz: {r.reason.name} at {r.residual:.1e}")
        counts.append(r.iterations)
        x = sweep.space.to_host(r.x)
        worst = max(worst, np.linalg.norm(b - (K @ x - k * k * (M @ x) + 1j * k * DAMPING * (B @ x))))
    return sum(counts), max(counts), sweep.setups, f"{work:.0f}", f"{wall:.0f}", f"{worst:.1e}"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--frequencies", default=None, help="FROM:TO:STEP or a list, Hz; default 100 from 20 to 300")
    parser.add_argument("--method", default="cocg")
    parser.add_argument("--precond", default="ilu0")
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    matrices = [sp.load_npz(arguments.folder / f"{name}.npz").tocsr() for name in "KMB"]
    frequencies = helmholtz.band(arguments.frequencies) if arguments.frequencies else np.linspace(20, 300, 100)
    how = arguments.method, arguments.precond, arguments.rtol, arguments.device
    swept(matrices, frequencies[:2], *how)                      # compiles
    rows = []
    for name, settings in RUNS.items():
        rows.append((name, *swept(matrices, frequencies, *how, **settings)))
        engine.tell(", ".join(map(str, rows[-1])))
    engine.show(f"{len(frequencies)} frequencies, {matrices[0].shape[0]} unknowns, {how[0]} with {how[1]}, {how[3]}",
                ("run", "iterations", "most", "preconditioners", "threads' time, s", "wall, s", "largest true residual"),
                rows)


if __name__ == "__main__":
    main()
