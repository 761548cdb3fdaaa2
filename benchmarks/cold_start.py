"""The first answer of a fresh installation on a CPU: seconds, and what they go into.

    python benchmarks/cold_start.py [--top N] [--rounds N] [CASE ...]

Each case runs in a process of its own with an empty folder for compiled kernels: ``auto:30`` and ``auto:300`` (nothing
named, a Poisson problem of 30² or 300² unknowns), ``cg+ic0:30`` and ``cg+ic0:300``. A further case, as ``cg+amg:30``,
runs in a copy of the folder that ``cg+ic0:30`` left. Prints the wall time of the whole process with Python's start and
the imports, its CPU time, the functions compiled, and the ``--top`` most expensive of them by their own CPU time. Wall
times of a busy machine say little: compare CPU times of one run. ``--rounds`` repeats, and the least counts.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

FIRST = "auto:30", "auto:300", "cg+ic0:30", "cg+ic0:300"
FURTHER = "cg+amg:30", "bicgstab+ilu0:30", "gmres+ilu0:30", "direct:30", "cocg+ilu0:30"
BEFORE = "cg+ic0:30"    # what ran before a further case


def child(case):
    """Solve one case, watching Numba; prints what was found as JSON."""
    import numpy as np
    from numba.core import event

    import swell

    compiled, under_way = [], []

    class Listener(event.Listener):
        def on_start(self, event):
            under_way.append([time.process_time(), 0.0])

        def on_end(self, event):
            start, within = under_way.pop()
            seconds = time.process_time() - start
            if under_way:
                under_way[-1][1] += seconds
            function = event.data["dispatcher"].py_func
            compiled.append((seconds - within, f"{function.__module__}.{function.__name__}"))

    event.register("numba:compile", Listener())
    name, _, side = case.partition(":")
    method, _, precond = name.partition("+")
    A = swell.gallery.poisson2d(int(side))
    if method in ("bicgstab", "gmres"):
        A = swell.gallery.get("convection_diffusion2d", int(side)**2)
    if method == "cocg":
        A = A * (1 + 0.1j)
    result = swell.solve(A, np.ones(A.shape[0]), method=None if method == "auto" else method, precond=precond or None)
    assert result.converged, str(result)
    print(json.dumps({"cpu": time.process_time(), "compiled": compiled}))


def measured(case, folder):
    """Run a case with this folder for kernels: (wall seconds, what the child found)."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--child", case], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "NUMBA_CACHE_DIR": folder, "SWELL_QUIET": "1"})
    return time.perf_counter() - start, json.loads(done.stdout.splitlines()[-1])


def main():
    """Measure the cases, and print a line and a table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[*FIRST, *FURTHER])
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)
    with tempfile.TemporaryDirectory() as folder:
        before = os.path.join(folder, "before")
        if set(arguments.cases) - set(FIRST):
            measured(BEFORE, before)
        for case in arguments.cases:
            runs = []
            for k in range(arguments.rounds):
                mine = os.path.join(folder, f"{case}-{k}")
                if case not in FIRST:
                    shutil.copytree(before, mine)
                runs.append(measured(case, mine))
            wall, found = min(runs, key=lambda run: run[1]["cpu"])
            compiled = sorted(found["compiled"], reverse=True)
            print(f"{case}: {wall:.1f} s, CPU {found['cpu']:.1f} s, of it {sum(s for s, _ in compiled):.1f} s for "
                  f"{len(compiled)} functions", flush=True)
            for seconds, name in compiled[:arguments.top]:
                print(f"  {seconds:6.2f} s  {name}")


if __name__ == "__main__":
    main()
