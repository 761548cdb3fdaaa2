"""The first answer of a fresh process on a GPU: seconds, and what they go into.

    python benchmarks/cold_start_gpu.py [--top N] [--rounds N] [CASE ...]

Each case runs in a process of its own with an empty folder for compiled kernels: ``auto:100`` and ``cg+ic0:100`` (a
Poisson problem of 100² unknowns). A further case, as ``cg+amg:100``, runs in a copy of the folder that the latter left.
Prints the wall time of the whole process with Python's start and the imports, the first solve's, the kernels compiled,
and the ``--top`` most expensive of them, with the line that asked, or as compiled ahead by a thread. "For compilers" is
what the main thread waited for kernels of swell; CuPy's own come on top. ``--rounds`` repeats, and the least counts.
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

FIRST = "auto:100", "cg+ic0:100"
FURTHER = "cg+amg:100", "resident_cg:100", "bicgstab+jacobi:100", "gmres:100"
BEFORE = "cg+ic0:100"   # what ran before a further case
FOLDERS = "CUPY_CACHE_DIR", "SWELL_CACHE"


def watch_nvrtc(compiled):
    """Note what CuPy compiles: (seconds, line of swell that asked, or "ahead" in a thread)."""
    import threading
    import traceback

    from cupy.cuda import compiler
    original = compiler._NVRTCProgram.compile

    def compile(self, *arguments, **named):
        start = time.perf_counter()
        result = original(self, *arguments, **named)
        frames = [f for f in traceback.extract_stack() if "/swell/" in f.filename]
        line = f"{frames[-1].filename.rpartition('/swell/')[2]}:{frames[-1].lineno}" if frames else "elsewhere"
        mine = threading.current_thread() is threading.main_thread()
        kernel = " ".join(self.name_expressions or ["of CuPy"])
        compiled.append((time.perf_counter() - start, f"{line if mine else 'ahead'}: {kernel}"))
        return result

    compiler._NVRTCProgram.compile = compile


def child(case):
    """Solve one case, watching compilers; prints what was found as JSON."""
    import numpy as np

    import swell
    from swell.core import compilation

    compiled = []
    watch_nvrtc(compiled)
    name, _, side = case.partition(":")
    method, _, precond = name.partition("+")
    A = swell.gallery.poisson2d(int(side))
    if method in ("bicgstab", "gmres"):
        A = swell.gallery.get("convection_diffusion2d", int(side)**2)
    start = time.perf_counter()
    result = swell.solve(A, np.ones(A.shape[0]), method=None if method == "auto" else method, precond=precond or None,
                         device="cuda")
    first = time.perf_counter() - start
    assert result.converged, str(result)
    print(json.dumps({"cpu": time.process_time(), "first": first, "waited": compilation.spent(),
                      "compiled": compiled}))


def measured(case, folder):
    """Run a case with this folder for kernels: (wall seconds, what the child found)."""
    start = time.perf_counter()
    folders = {variable: os.path.join(folder, variable) for variable in FOLDERS}
    done = subprocess.run([sys.executable, __file__, "--child", case], check=True,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, **folders, "SWELL_QUIET": "1"})
    return time.perf_counter() - start, json.loads(done.stdout.splitlines()[-1])


def main():
    """Measure the cases, and print a line and a table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)
    cases = arguments.cases or [*FIRST, *FURTHER]
    with tempfile.TemporaryDirectory() as folder:
        before = os.path.join(folder, "before")
        if set(cases) - set(FIRST):
            measured(BEFORE, before)
        for case in cases:
            runs = []
            for k in range(arguments.rounds):
                mine = os.path.join(folder, f"{case}-{k}")
                if case not in FIRST:
                    shutil.copytree(before, mine)
                runs.append(measured(case, mine))
            wall, found = min(runs, key=lambda run: run[1]["first"])
            compiled = sorted(found["compiled"], reverse=True)
            print(f"{case}: {wall:.2f} s, first solve {found['first']:.2f} s, of it {found['waited']:.2f} s for compilers; "
                  f"CPU {found['cpu']:.1f} s; {len(compiled)} functions in {sum(s for s, _ in compiled):.1f} s",
                  flush=True)
            for seconds, name in compiled[:arguments.top]:
                print(f"  {seconds:6.2f} s  {name}")


if __name__ == "__main__":
    main()
