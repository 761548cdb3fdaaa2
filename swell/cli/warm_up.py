"""Compile the GPU kernels of common calls in advance. The install compiles the CPU's kernels.

Solves small and large model problems with the usual methods, in as many processes at a time as the machine has cores.
The compiled kernels stay on disk, where later processes load them. Without --method: the advisor's choices, and cg,
bicgstab, gmres (complex: cocg, bicgstab, gmres) and direct with their usual preconditioners.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from swell.cli.arguments import named_solver
from swell.core import caches
from swell.core.ahead import cores
from swell.core.errors import InputError, SwellError

HELP = "compile the GPU kernels of common calls"
SIDES = (12, 30), (150,)         # of model problems
REAL = ("auto", None), ("cg", "ic0"), ("cg", "amg"), ("bicgstab", "ilu0"), ("gmres", "ilu0"), ("direct", None)
COMPLEX = ("auto", None), ("cocg", "ilu0"), ("bicgstab", "ilu0"), ("gmres", "ilu0"), ("direct", None)
CHILD = "import sys; from swell.cli.warm_up import child; child(sys.argv[1])"


def add_arguments(parser):
    """Add the arguments of ``swell warm-up``."""
    parser.add_argument("--method", metavar="NAME", help="compile for this method alone")
    parser.add_argument("--precond", metavar="NAME", help="with this preconditioner")
    parser.add_argument("--complex", action="store_true", help="compile for complex numbers")
    parser.set_defaults(scaling=None, format=None, ordering=None)


def run(arguments) -> int:
    """Check the arguments, compile in processes, print the time; return the exit status.

    Raises
    ------
    InputError
        For an unknown method, a preconditioner without a method, or a folder that cannot be written.
    MissingDependency
        If there is no GPU.
    """
    from swell.core.devices import make_space
    named_solver(arguments)
    if arguments.precond and not arguments.method:
        raise InputError(f"--precond {arguments.precond} without --method: name the method that it is for")
    folder = kept_in()                           # before CuPy gets a temporary folder, which would not last
    make_space("cuda")
    solvers = [(arguments.method, arguments.precond)] if arguments.method else COMPLEX if arguments.complex else REAL
    start = time.perf_counter()
    jobs = [{"method": method, "precond": precond, "sides": sides, "complex": arguments.complex}
            for method, precond in solvers for sides in SIDES]
    _all(jobs[:len(SIDES)])                      # the first jobs compile shared kernels
    _all(jobs[len(SIDES):])
    print(f"compiled in {time.perf_counter() - start:.0f} s; the kernels are kept in {folder}")
    return 0


def kept_in() -> str:
    """Return the folder in which compiled kernels are kept; raise InputError if it cannot be written."""
    folder = caches.of_cupy()
    if not caches.writable(folder):
        raise InputError(f"compiled kernels cannot be kept in {folder}: name a folder that can be written with "
                         "CUPY_CACHE_DIR")
    return folder


def _all(jobs):
    """Run the jobs in processes, as many at a time as there are cores."""
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(_one, jobs))


def _one(job):
    """Run a job (a dict) in a separate process, and print a line after it."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, json.dumps(job)], capture_output=True, text=True, check=False,
                          env={**os.environ, "SWELL_QUIET": "1"})
    beside = f" with {job['precond']}" if job["precond"] else ""
    name = f"{job['method']}{beside}, {' and '.join(str(side**2) for side in job['sides'])} unknowns"
    if done.returncode:
        raise InputError(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'ended early'}")
    print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def child(job):
    """Solve the model problems of ``job`` (a JSON text) on the GPU. It runs in a process of its own."""
    import numpy as np

    import swell
    task = json.loads(job)
    for side in task["sides"]:
        A = swell.gallery.poisson2d(side)
        if task["method"] in ("bicgstab", "gmres"):
            A = swell.gallery.get("convection_diffusion2d", side**2)
        try:
            swell.solve(A * (1 + 0.1j) if task["complex"] else A, np.ones(A.shape[0]), device="cuda",
                        method=None if task["method"] == "auto" else task["method"], precond=task["precond"])
        except SwellError as error:
            sys.exit(str(error))
