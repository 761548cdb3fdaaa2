"""Solves by several copies of swell, a process for each, in turn: ratios that a busy machine leaves alone.

    python benchmarks/in_turns.py FOLDER FOLDER … [--rounds 6] [--only TEXT] [--systems NAME,NAME,…]

A FOLDER holds a package ``swell`` with its native library. Without ``--systems``: pairs of a method and a preconditioner with a fixed
number of iterations; setup and solve beside the first folder's. With ``--systems``, names of `swell bench auto`: ``swell.solve(A, b)``
with nothing named, and its choice. Processor seconds of one thread, the least of all rounds. An editable install of swell takes
precedence over FOLDER: use a Python without one.
"""
import argparse
import json
import logging
import math
import os
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

ITERATIONS = 40
CHOICES = [("spd", f"cg {p}", None) for p in ("ic0", "chebyshev", "gauss_seidel")] + [
    ("spd", "cg jacobi", f) for f in ("csr", "sell", "staircase_sell", "modified_sell", "ell")] + [
    ("spd", "cg amg", None), ("spd", "minres ic0", None), ("spd", "single_reduction_cg jacobi", None)] + [
    ("general", f"{m} ilu0", None) for m in ("gmres", "bicgstab", "bicgstabl", "idrs", "qmr", "tfqmr")] + [
    ("general", "gmres ilu(drop=0.001)", None), ("complex", "gmres ilu0", None), ("complex", "gmres jacobi", "sell"),
    ("complex", "cocg jacobi", None), ("blocks", "cg block_jacobi", None), ("blocks", "cg smoothed_aggregation", None),
    ("blocks", "gmres ilu(block=None)", None)]


def matrices():
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    eye = sp.eye_array(40)
    spd = sp.csr_array(sp.kron(sp.kron(line, eye) + sp.kron(eye, line), eye) + sp.kron(sp.kron(eye, eye), line))
    small = spd[:6000, :6000]
    return {"spd": spd, "general": sp.csr_array(spd + sp.diags_array([0.3], offsets=[1], shape=spd.shape)),
            "complex": sp.csr_array(spd + 0.3j * sp.eye_array(spd.shape[0])),
            "blocks": sp.csr_array(sp.kron(small, np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 5]])))}


def serve():
    """Answer each line of the standard input, a case, with [seconds of the setup, of the solve, what ran]."""
    logging.disable(logging.CRITICAL)
    import swell
    from swell.bench import auto
    made = matrices()
    for line in sys.stdin:
        case = json.loads(line)
        start = time.process_time()
        if isinstance(case, str):
            A, b = auto.load(case)
            start = time.process_time()
            r = swell.solve(A.copy(), b)
            print(json.dumps([0.0, time.process_time() - start, f"{r.method}, {r.precond}"]), flush=True)
            continue
        kind, pair, form = case
        A, (method, precond) = made[kind], pair.split()
        b = np.random.default_rng(1).random(A.shape[0]).astype(A.dtype)
        start = time.process_time()
        solver = swell.prepare(A, method=method, precond=precond, format=form, maxiter=ITERATIONS, rtol=1e-30)
        middle = time.process_time()
        r = solver.solve(b)
        print(json.dumps([middle - start, time.process_time() - middle, f"{r.iterations}"]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--systems", default="")
    arguments = parser.parse_args()
    servers = [subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "SWELL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
            [folder, os.environ.get("PYTHONPATH", "")])}) for folder in arguments.folders]
    cases = arguments.systems.split(",") if arguments.systems else CHOICES
    products = [[] for _ in servers]
    for case in cases:
        if arguments.only not in str(case):
            continue
        best = [[math.inf, math.inf, ""] for _ in servers]
        for turn in range(arguments.rounds):
            for k in list(range(len(servers)))[::1 - 2 * (turn % 2)]:
                servers[k].stdin.write(json.dumps(case) + "\n")
                servers[k].stdin.flush()
                setup, solve, what = json.loads(servers[k].stdout.readline())
                best[k] = [min(best[k][0], setup), min(best[k][1], solve), what]
        first = best[0]
        line = [f"{case!s:50} {first[0] * 1e3:7.1f} {first[1] * 1e3:7.1f} ms"]
        for k, (setup, solve, what) in enumerate(best[1:], 1):
            products[k].append(solve / first[1])
            line.append(f"{setup / max(first[0], 1e-9):.2f} {solve / first[1]:.2f}" + ("" if what == first[2] else f" {what}"))
        print(" | ".join(line), flush=True)
    for folder, ratios in zip(arguments.folders[1:], products[1:]):
        print(f"{folder}: solves {math.exp(np.mean(np.log(ratios))):.3f}")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
