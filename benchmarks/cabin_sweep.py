"""The real cabin, 100 frequencies × 16 sources to a true 1e-6: sweeps of all sources, of one, factorisations, modes.

    python benchmarks/cabin_sweep.py FOLDER [--device cuda] [--frequencies 20:300:28] [--sources 16] [--rtol 1e-6]
        [--parts together single direct modes] [--preconds "ilu0" "shifted(0.5, amg)"] [--remember 0 8] [--json FILE]

FOLDER has K.npz, M.npz, B.npz and carinterior.mat (car_cabin/ of the real systems): A(f) = K − k²M + 0.05 i k B,
k = 2πf/340. Sources are points spread over the nodes. "together" sweeps all sources at once, "single" the middle one
alone, whose seconds times the number of sources are a loop's. "shifted(β, inner)" is the shifted Laplacian with the
real mass. "direct" factors A(f) by SciPy's SuperLU at three frequencies, once for all sources. "modes" compares the
response by modes with the direct one at eight ears. Times are of whole sweeps, from the first setup on, without
compilation, which two frequencies before bring. SciPy computes the residual of every answer in double precision.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import time
from itertools import product

import numpy as np
import scipy.sparse.linalg as spla
from many_sources import DAMPING, SPEED, read, residual, sources, system
from refined_cabin import cabin

import swell
from swell.pde import helmholtz
from swell.pde.helmholtz.sweeping import columns_of

SHIFTED = re.compile(r"shifted\(([\d.]+), (.+)\)")
EARS = 8


def sweep_of(arguments, matrices, precond, remember):
    """The Sweep of one row."""
    K, M, B = matrices
    shifted = SHIFTED.fullmatch(precond)
    named = (swell.ShiftedLaplacian(float(shifted[1]), shifted[2]) if shifted else
             None if precond in ("none", "chosen") else precond)
    return helmholtz.Sweep(K, M, B, method=None if precond == "chosen" else "cocg", precond=named, rtol=arguments.rtol,
                           device=arguments.device, maxiter=5000, remember=remember)


def swept(arguments, matrices, b, precond, remember):
    """The record of a sweep over all frequencies for b, one source or several."""
    compiled = sweep_of(arguments, matrices, precond, min(remember, 1))
    for f in arguments.frequencies[:2]:
        compiled.solve(2 * np.pi * f / SPEED, b)
    sweep = sweep_of(arguments, matrices, precond, remember)
    used, each, counts, most, worst, failed = 0.0, [], [], [], 0.0, 0
    for f in arguments.frequencies:
        k, A = system(matrices, f)
        start, before = time.perf_counter(), time.process_time()
        r = sweep.solve(k, b)
        x = sweep.space.to_host(r.x)
        each.append(time.perf_counter() - start)
        used += time.process_time() - before
        counts.append(sum(one.iterations for one in columns_of(r)))
        most.append(max(one.iterations for one in columns_of(r)))
        failed += sum(not one.converged for one in columns_of(r))
        worst = max(worst, residual(A, x.reshape(len(x), -1), b.reshape(len(b), -1)))
    answers = len(each) * (b.shape[1] if b.ndim > 1 else 1)
    return {"answers": answers, "seconds": sum(each), "threads_seconds": used,
            "ms_an_answer": 1e3 * sum(each) / answers,
            "iterations": sum(counts), "most": max(most), "setups": sweep.setups, "failed": failed, "residual": worst,
            "device": sweep.space.describe(), "first_s": each[0], "seconds_of_each": [round(s, 5) for s in each],
            "most_of_each": most, "configuration": f"{columns_of(r)[0].method}, {columns_of(r)[0].precond}"}


def direct(arguments, matrices, b):
    """The record of SuperLU's factorisations at three frequencies, with solves for all sources."""
    factor, solve, worst = [], [], 0.0
    for f in np.quantile(arguments.frequencies, (0, 0.5, 1)):
        _, A = system(matrices, f)
        start = time.perf_counter()
        factors = spla.splu(A.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01,
                            options={"SymmetricMode": True})
        middle = time.perf_counter()
        x = factors.solve(b)
        factor.append(middle - start), solve.append(time.perf_counter() - middle)
        worst = max(worst, residual(A, x, b))
    return {"factor_s": factor, "solve_s": solve, "entries": factors.L.nnz + factors.U.nnz, "residual": worst,
            "seconds": float(len(arguments.frequencies) * (np.mean(factor) + np.mean(solve)))}


def modes(arguments, matrices, b):
    """Yield records of the response by modes, beside the direct one at ears in nodes."""
    mesh = cabin(arguments.folder)
    room = helmholtz.Helmholtz(mesh, helmholtz.Medium(SPEED, 1.0), {"boundary": helmholtz.Impedance(SPEED / DAMPING)})
    points = [helmholtz.Monopole(mesh.points[i]) for i in b.argmax(axis=0)]
    ears = mesh.points[np.linspace(0, len(mesh.points) - 1, EARS + 2).astype(int)[1:-1] + 7]
    few = arguments.frequencies[::max(1, len(arguments.frequencies) // 8)]
    exact = room.response(sources=points, ear=ears, frequencies=few, method="cocg", rtol=1e-8, device=arguments.device)
    room.modes(4, device=arguments.device)       # compiles
    for count in arguments.modes:
        start = time.perf_counter()
        found = room.modes(count, device=arguments.device)
        middle = time.perf_counter()
        by_modes = found.response(sources=points, ear=ears, frequencies=arguments.frequencies)
        end, at = time.perf_counter(), np.isin(by_modes.frequencies, few)
        off = abs(by_modes.pressure[at] - exact.pressure) / abs(exact.pressure).max(axis=(1, 2), keepdims=True)
        yield {"modes": count, "up_to_Hz": float(found.frequencies[-1]), "modes_s": middle - start,
               "response_s": end - middle, "seconds": end - start, "converged": found.converged,
               "worst_of_loudest": float(off.max()), "median_of_loudest": float(np.median(off)), "Hz": few.tolist(),
               "worst_at_each": off.max(axis=(1, 2)).tolist()}


def rows(arguments, matrices, b):
    """Yield a record for each row of the table."""
    for part in arguments.parts:
        if part in ("together", "single"):
            for precond, remember in product(arguments.preconds, arguments.remember):
                given = b if part == "together" else b[:, b.shape[1] // 2].copy()
                head = {"part": part, "precond": precond, "remember": remember}
                try:
                    yield head | swept(arguments, matrices, given, precond, remember)
                except Exception as error:       # the other rows still say something
                    yield head | {"error": f"{type(error).__name__}: {error}"[:300]}
        else:
            found = [direct(arguments, matrices, b)] if part == "direct" else modes(arguments, matrices, b)
            yield from ({"part": part} | one for one in found)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--frequencies", default=None, help="FROM:TO:STEP or a list, Hz; default 100 from 20 to 300")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--parts", nargs="*", default=["together", "single"],
                        choices=["together", "single", "direct", "modes"])
    parser.add_argument("--modes", nargs="*", type=int, default=[50, 100, 200])
    parser.add_argument("--preconds", nargs="*", default=["chosen"])
    parser.add_argument("--remember", nargs="*", type=int, default=[8])
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    needed = "K.npz", "M.npz", "B.npz", "carinterior.mat"
    missing = [name for name in needed if not (arguments.folder / name).exists()]
    if missing:
        parser.error(f"{arguments.folder} has no {missing[0]}: name the folder car_cabin of the real systems")
    arguments.frequencies = (helmholtz.band(arguments.frequencies) if arguments.frequencies
                             else np.linspace(20, 300, 100))
    matrices = read(arguments.folder)
    b = sources(matrices[0].shape[0], arguments.sources)
    for record in rows(arguments, matrices, b):
        record |= {"sources": arguments.sources, "frequencies": len(arguments.frequencies), "rtol": arguments.rtol}
        hidden = ("seconds_of_each", "most_of_each", "Hz")
        print(", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items()
                        if k not in hidden), flush=True)
        if arguments.json:
            with arguments.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
