"""Many sources in the real cabin: COCG for all of them together and one by one, at one frequency and over a band.

    python benchmarks/many_sources.py FOLDER [--device cuda] [--sources 16] [--frequency 300] [--band 280:300:4]
        [--preconds ilu0 jacobi none] [--rtol 1e-6] [--repeat 5] [--limit 600] [--json FILE]

FOLDER has K.npz, M.npz and B.npz (car_cabin/ of the real systems): A(f) = K − k²M + 0.05 i k B, k = 2πf/340. Sources are
points spread over the nodes. A row is one preconditioner: ilu0 on a CPU, and with two sweeps on a GPU, is COCG's usual
one. "One by one" is ``together=False``, a loop of the same prepared solver. Milliseconds are medians of whole solves to
``rtol`` with b on the device, without setup and compilation; the two ways take turns. CPU milliseconds are those of all
threads, which other programs disturb less. Milliseconds of an iteration are those of all columns:
time over the most iterations of a column together, time over the mean count one by one. A band is swept by `Sweep`
from the first setup on: A(f), preconditioners where they are renewed, starting vectors. SciPy checks every residual.
``--limit`` seconds end the run between two measurements; records so far are printed.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp

import swell
from swell.pde import helmholtz

DAMPING, SPEED = 0.05, 340.0                                     # 1/Z of the walls, m/s
USUAL = {"cpu": ["ilu0"], "cuda": ["ilu0(solve='sweeps(count=2)')", "jacobi", "none"]}
WAYS = {"together": True, "one by one": False}


def read(folder):
    """(K, M, 0.05 B) as CSR matrices."""
    K, M, B = (sp.csr_matrix(sp.load_npz(folder / f"{name}.npz")) for name in "KMB")
    return K, M, DAMPING * B


def system(matrices, frequency):
    """(wave number, A(f))."""
    K, M, B = matrices
    k = 2 * np.pi * frequency / SPEED
    return k, sp.csr_matrix(K - k * k * M + 1j * k * B)


def sources(n, count):
    """Points spread over the nodes, a column each."""
    b = np.zeros((n, count), complex)
    b[np.linspace(0, n - 1, count + 2).astype(int)[1:-1], np.arange(count)] = 1
    return b


def residual(A, x, b):
    """The largest true relative residual of all columns, by SciPy."""
    return float((np.linalg.norm(b - A @ x, axis=0) / np.linalg.norm(b, axis=0)).max())


def one_frequency(arguments, matrices, b, precond):
    """The record of the solves at one frequency."""
    _, A = system(matrices, arguments.frequency)
    solver = swell.prepare(A, method="cocg", precond=precond, device=arguments.device, rtol=arguments.rtol, maxiter=5000)
    given = b
    if arguments.device != "cpu":
        import cupy
        given = cupy.asarray(b)
    record = {"what": "one frequency", "frequency": arguments.frequency, "setup_s": solver.solve(b[:, 0]).timings["setup"]}
    found, times = {}, {way: [] for way in WAYS}
    for turn in range(1 + arguments.repeat):                     # the first compiles and captures
        for way, together in WAYS.items():
            start, used = time.perf_counter(), time.process_time()
            found[way] = solver.solve(given, together=together)  # ends when the device has finished
            if turn:
                times[way].append((1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)))
    for way, r in found.items():
        counts, walls = [one.iterations for one in r], [wall for wall, _ in times[way]]
        each = max(counts) if WAYS[way] else statistics.mean(counts)
        record[way] = {"ms": statistics.median(walls), "cpu_ms": statistics.median(used for _, used in times[way]),
                       "spread": (max(walls) - min(walls)) / statistics.median(walls), "iterations": sum(counts),
                       "most": max(counts), "ms_an_iteration": statistics.median(walls) / each,
                       "converged": r.converged, "residual": residual(A, solver.space.to_host(r.x), b)}
    found = {way: solver.space.to_host(r.x) for way, r in found.items()}
    record["same_bits"] = bool(np.array_equal(*found.values()))
    return record


def band(arguments, matrices, b, precond):
    """The record of a sweep over the band."""
    record = {"what": "band", "frequencies": len(arguments.band)}
    for way, together in WAYS.items():
        swept(arguments, matrices, b, precond, together, arguments.band[:2])             # compiles
        record[way] = swept(arguments, matrices, b, precond, together, arguments.band)
    return record


def swept(arguments, matrices, b, precond, together, frequencies):
    """What one sweep took."""
    sweep = helmholtz.Sweep(*matrices, method="cocg", precond=precond, device=arguments.device, rtol=arguments.rtol,
                            maxiter=5000, together=together)
    seconds, used, iterations, worst, converged = 0.0, 0.0, 0, 0.0, True
    for frequency in frequencies:
        k, A = system(matrices, frequency)
        start, before = time.perf_counter(), time.process_time()
        r = sweep.solve(k, b)
        seconds, used = seconds + time.perf_counter() - start, used + time.process_time() - before
        iterations, converged = iterations + r.iterations, converged and r.converged
        worst = max(worst, residual(A, sweep.space.to_host(r.x), b))
    return {"ms": 1e3 * seconds, "cpu_ms": 1e3 * used, "iterations": iterations, "setups": sweep.setups, "converged": converged,
            "residual": worst}


def shown(record) -> str:
    """The line of a record."""
    if "error" in record:
        return f"{record['what']:14} {record['precond']:32} {record['error']}"
    cells = [f"{record['what']:14} {record['precond']:32}"]
    for way in WAYS:
        one = record[way]
        each = f" {one['ms_an_iteration']:8.4f} ms each" if "ms_an_iteration" in one else f" {one['setups']:3} setups"
        cells.append(f"{way} {one['ms']:9.1f} ms {one['iterations']:6} iterations{each}, residual {one['residual']:.1e}"
                     + ("" if one["converged"] else " NOT converged"))
    return " | ".join([*cells, f"ratio {record['ratio']:.3f}, of CPU time {record['cpu_ratio']:.3f}"])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--frequency", type=float, default=300.0, help="Hz")
    parser.add_argument("--band", type=helmholtz.band, default="280:300:4", help="FROM:TO:STEP or a list, Hz")
    parser.add_argument("--preconds", nargs="*")
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    for name in "KMB":
        if not (arguments.folder / f"{name}.npz").exists():
            parser.error(f"{arguments.folder} has no {name}.npz: name the folder car_cabin of the real systems")
    matrices, began = read(arguments.folder), time.perf_counter()
    n = matrices[0].shape[0]
    b = sources(n, arguments.sources)
    print(f"{n} unknowns, {arguments.sources} sources, COCG to {arguments.rtol:g}, {arguments.device}", flush=True)
    for precond in arguments.preconds or USUAL[arguments.device.split(":")[0]]:
        for measure in (one_frequency, band):
            if time.perf_counter() - began > arguments.limit:
                print(f"ended after {arguments.limit:g} s", file=sys.stderr)
                return
            record = {"what": measure.__name__.replace("_", " "), "precond": precond, "rows": n,
                      "sources": arguments.sources, "device": arguments.device}
            try:
                record |= measure(arguments, matrices, b, None if precond == "none" else precond)
                for ratio, kind in (("ratio", "ms"), ("cpu_ratio", "cpu_ms")):
                    record[ratio] = record["together"][kind] / record["one by one"][kind]
            except Exception as error:           # the other rows still say something
                record["error"] = f"{type(error).__name__}: {error}"[:300]
            print(shown(record), flush=True)
            if arguments.json:
                with arguments.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
