"""Several right-hand sides: together, one by one, and beside CuPy or SciPy; seconds of whole solves, and of an iteration.

    python benchmarks/right_hand_sides.py [--device cuda] [--cases ecology cabin small amg elastic transport]
        [--cabin FOLDER] [--landscape FILE.npz] [--columns 8] [--repeat 5] [--loop-only] [--peer] [--json FILE]

FOLDER has K.npz, M.npz and B.npz of the real cabin; FILE.npz holds landscape_1m. Every case solves to 1e-8 with random
right-hand sides that lie on the device. ``--loop-only`` runs the loop alone, as versions without ``together`` need it.
For CG the floor is the bytes of an iteration, the matrix once and 80 a row and column, at the speed of a copy.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import scipy.sparse as sp

import swell
from swell import gallery

VECTOR_BYTES = 80       # of an iteration of CG without M, a row and column in double


def cabin(folder):
    """The real cabin at 300 Hz: complex symmetric."""
    K, M, B = (sp.load_npz(folder / f"{name}.npz") for name in "KMB")
    k = 2 * np.pi * 300 / 340
    return sp.csr_array(K - k * k * M + 0.05j * k * B)


def cases(arguments):
    """(name, matrix, settings of the solver, columns) of each case, the matrices as functions."""
    k = arguments.columns
    return {
        "ecology": (lambda: gallery.get("ecology2~"), {"method": "cg", "scaling": "jacobi"}, k),
        "cabin": (lambda: cabin(arguments.cabin), {"method": "cocg", "precond": arguments.cabin_precond}, 16),
        "small": (lambda: gallery.poisson2d(100), {"method": "cg", "scaling": "jacobi"}, 32),
        "amg": (lambda: sp.load_npz(arguments.landscape), {"method": "cg", "precond": "amg"}, k),
        "elastic": (lambda: gallery.elasticity2d(arguments.plate), {"method": "cg", "precond": "smoothed_aggregation"}, k),
        "transport": (lambda: gallery.get("atmosmodd~"),
                      {"method": "gmres(restart=30)", "precond": "ilu0(solve='sweeps(count=2)')"}, k),
        "transport_single": (lambda: gallery.get("atmosmodd~"),
                             {"method": "gmres(restart=30, basis='single')",
                              "precond": "ilu0(solve='sweeps(count=2)')"}, k),
    }


def placed(device, A, B):
    """(A, B) where the solve is."""
    if device != "cuda":
        return A, B
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    return csr_matrix(sp.csr_matrix(A)), cupy.asarray(B)


def synchronize(device):
    """Wait for the device."""
    if device == "cuda":
        import cupy
        cupy.cuda.runtime.deviceSynchronize()


def median_ms(device, repeat, function):
    """Median of the milliseconds of ``function``, called once before; and what it returned last."""
    times, found = [], function()
    for _ in range(repeat):
        synchronize(device)
        start = time.perf_counter()
        found = function()
        synchronize(device)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), found


def copy_speed(device):
    """Bytes a second, read and written, of a copy of 256 MB."""
    xp = np
    if device == "cuda":
        import cupy as xp
    a = xp.ones(1 << 25)
    b = xp.empty_like(a)
    ms, _ = median_ms(device, 9, lambda: xp.copyto(b, a))
    return 2 * a.nbytes / (1e-3 * ms)


def peer_cg(A, B, rtol, xp):
    """k recurrences of CG with Jacobi scaling by CuPy's or SciPy's A @ P; returns the number of iterations."""
    d = 1 / xp.sqrt(A.diagonal())
    from_right = A.multiply(d[None, :]).multiply(d[:, None]).tocsr()
    B = d[:, None] * B
    X, R = xp.zeros_like(B, order="F"), B.copy(order="F")
    P, rho = R.copy(order="F"), (R * R).sum(axis=0)
    limit = rtol**2 * rho
    for k in range(10**5):
        Q = from_right @ P
        alpha = rho / (P * Q).sum(axis=0)
        X += alpha * P
        R -= alpha * Q
        rho, last = (R * R).sum(axis=0), rho
        if bool((rho <= limit).all()):
            return k + 1
        P = R + rho / last * P
    return k


def measured(name, make, settings, k, arguments):
    """The record of one case."""
    device, repeat = arguments.device, arguments.repeat
    A = make()
    rng = np.random.default_rng(1)
    B = rng.standard_normal((A.shape[0], k)).astype(A.dtype)
    A, B = placed(device, A, B)
    s = swell.prepare(A, device=device, maxiter=5000, **settings)
    columns = [B[:, j].copy() for j in range(k)]
    record = {"case": name, "rows": A.shape[0], "columns": k, "settings": settings}
    record["one_ms"], one = median_ms(device, repeat, lambda: s.solve(columns[0]))
    record["iterations_one"] = one.iterations
    record["loop_ms"], found = median_ms(device, max(1, repeat // 2), lambda: [s.solve(b) for b in columns])
    record["converged"] = all(r.converged for r in found)
    if name in ("ecology", "small") and device == "cuda":
        resident = swell.prepare(A, device=device, method="resident_cg", scaling="jacobi", maxiter=5000)
        record["resident_loop_ms"], _ = median_ms(device, max(1, repeat // 2),
                                                  lambda: [resident.solve(b) for b in columns])
    if not arguments.loop_only:
        record["together_ms"], r = median_ms(device, repeat, lambda: s.solve(B, together=True))
        record["together_converged"], record["most_iterations"] = r.converged, max(one.iterations for one in r)
        record["together_per_iteration_us"] = 1e3 * record["together_ms"] / record["most_iterations"]
        record["of_the_loop"] = record["together_ms"] / record["loop_ms"]
        record["of_one"] = record["together_ms"] / record["one_ms"]
        if settings["method"] == "cg" and "precond" not in settings:
            matrix = s._prepare(0).setup.matrix.matrix_bytes
            floor = (matrix + k * VECTOR_BYTES * A.shape[0]) / arguments.speed
            record["floor_us"], record["of_the_floor"] = 1e6 * floor, 1e-6 * record["together_per_iteration_us"] / floor
    if arguments.peer and settings["method"] == "cg" and "precond" not in settings:
        xp = np
        if device == "cuda":
            import cupy as xp
        record["peer_ms"], record["peer_iterations"] = median_ms(device, 1, lambda: peer_cg(A, B, 1e-8, xp))
    return record


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--cases", nargs="*", default=["ecology", "small", "elastic", "transport"])
    parser.add_argument("--cabin", type=pathlib.Path)
    parser.add_argument("--cabin-precond", default="ilu0")
    parser.add_argument("--landscape", type=pathlib.Path)
    parser.add_argument("--plate", type=int, default=500)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--loop-only", action="store_true")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.speed = copy_speed(arguments.device)
    print(f"copy: {1e-9 * arguments.speed:.0f} GB/s", flush=True)
    known = cases(arguments)
    for name in arguments.cases:
        try:
            record = measured(name, *known[name], arguments)
        except Exception as error:               # the other cases still say something
            record = {"case": name, "error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({key: round(value, 3) if isinstance(value, float) else value
                          for key, value in record.items()}), flush=True)
        if arguments.json:
            with arguments.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
