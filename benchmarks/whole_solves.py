"""Setup, first solve, second solve and update of one solver: the timing that the scripts for whole solves share."""
from __future__ import annotations

import json
import statistics
import time

import numpy as np


def on_device(device, A, b):
    """(A, b) of SciPy and NumPy, or as CuPy's arrays for "cuda"."""
    if device != "cuda":
        return A, b
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    return csr_matrix(A), cupy.asarray(b)


def right_hand_side(n):
    """Random numbers, the same in every run."""
    return np.random.default_rng(1).standard_normal(n)


def timed(prepare, A, b, device, repeat, digits=1, warm=3):
    """Time a solver from A and b, where they lie, to x there.

    ``prepare()`` returns the solver. Returns (the last solver, its last result, medians of milliseconds by name:
    setup_ms, solve_ms, again_ms, update_ms). With ``warm`` runs or more the first, which may compile, does not count."""
    times = {"setup": [], "solve": [], "again": [], "update": []}

    def one(what, function):
        start = time.perf_counter()
        result = function()
        if device == "cuda":
            import cupy
            cupy.cuda.runtime.deviceSynchronize()
        times[what].append(1e3 * (time.perf_counter() - start))
        return result

    for _ in range(repeat):
        solver = one("setup", prepare)
        one("solve", lambda: solver.solve(b))
        result = one("again", lambda: solver.solve(b))
        one("update", lambda: solver.update(A))
    skipped = 1 if repeat >= warm else 0
    return solver, result, {f"{what}_ms": round(statistics.median(found[skipped:]), digits) for what, found in times.items()}


def append(path, record):
    """Append a record to a file of JSON lines; nothing without a path."""
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
