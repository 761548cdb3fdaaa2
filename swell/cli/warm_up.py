"""Compile the kernels of common calls in advance.

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
from swell.core.errors import InputError, SwellError

HELP = "compile the kernels of common calls"
SIDES = (12, 30), (150,)         # of model problems: small ones in CSR and in SELL, one above ``core.cpu.SERIAL``
REAL = ("auto", None), ("cg", "ic0"), ("cg", "amg"), ("bicgstab", "ilu0"), ("gmres", "ilu0"), ("direct", None)
COMPLEX = ("auto", None), ("cocg", "ilu0"), ("bicgstab", "ilu0"), ("gmres", "ilu0"), ("direct", None)
ROUNDS = 3              # of two processes that store one function at the same time, the first one's version is lost
CHILD = "import sys; from swell.cli.warm_up import child; child(sys.argv[1])"


def add_arguments(parser):
    """Add the arguments of ``swell warm-up``."""
    parser.add_argument("--method", metavar="NAME", help="compile for this method alone")
    parser.add_argument("--precond", metavar="NAME", help="with this preconditioner")
    parser.add_argument("--complex", action="store_true", help="compile for complex numbers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.set_defaults(scaling=None, format=None, ordering=None)


def run(arguments) -> int:
    """Check the arguments, compile in processes, print the time; return the exit status.

    Raises
    ------
    InputError
        For an unknown method, a preconditioner without a method, or a folder that cannot be written.
    MissingDependency
        If the device is not available.
    """
    from swell.core.devices import make_space
    named_solver(arguments)
    if arguments.precond and not arguments.method:
        raise InputError(f"--precond {arguments.precond} without --method: name the method that it is for")
    make_space(arguments.device)
    folder = kept_in(arguments.device)
    solvers = [(arguments.method, arguments.precond)] if arguments.method else COMPLEX if arguments.complex else REAL
    start = time.perf_counter()
    jobs = [{"method": method, "precond": precond, "sides": sides, "complex": arguments.complex,
             "device": arguments.device} for method, precond in solvers for sides in SIDES]
    compiled = _all(jobs[:len(SIDES)]) + _all(jobs[len(SIDES):])                 # the first jobs compile shared kernels
    rounds = 1
    while compiled and rounds < ROUNDS and arguments.device == "cpu":            # CuPy stores each kernel in a file
        compiled, rounds = _all(jobs, say=False), rounds + 1
    print(f"compiled in {time.perf_counter() - start:.0f} s; the kernels are kept in {folder}")
    return 0


def kept_in(device) -> str:
    """Return the folder in which a device's compiled kernels are kept; raise InputError if it cannot be written."""
    variable, folder = ("NUMBA_CACHE_DIR", caches.of_numba())
    if device == "cuda":
        variable, folder = ("CUPY_CACHE_DIR", caches.of_cupy())
    named = os.environ.get(variable) or folder   # Numba takes another folder if it cannot write this one
    if not caches.writable(named):
        raise InputError(f"compiled kernels cannot be kept in {named}: name a folder that can be written with "
                         f"{variable}")
    return folder


def _all(jobs, say=True) -> int:
    """Run the jobs in processes, as many at a time as there are cores; return how many functions they compiled.
    ``say``: print a line after each job."""
    from numba import config
    with ThreadPoolExecutor(config.NUMBA_NUM_THREADS) as pool:
        return sum(pool.map(lambda job: _one(job, say), jobs))


def _one(job, say):
    """Run a job (a dict) in a separate process; return how many functions it compiled. ``say``: print a line after
    it."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, json.dumps(job)], capture_output=True, text=True, check=False,
                          env={**os.environ, "SWELL_QUIET": "1"})
    beside = f" with {job['precond']}" if job["precond"] else ""
    name = f"{job['method']}{beside}, {' and '.join(str(side**2) for side in job['sides'])} unknowns"
    if done.returncode:
        raise InputError(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'ended early'}")
    if say:
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    return int(done.stdout.split()[-1])


def child(job):
    """Solve the model problems of ``job`` (a JSON text), and print how many functions were compiled. It runs in a
    process of its own."""
    import numpy as np

    import swell
    from swell.core.compilation import compilations
    given = json.loads(job)
    for side in given["sides"]:
        A = swell.gallery.poisson2d(side)
        if given["method"] in ("bicgstab", "gmres"):
            A = swell.gallery.get("convection_diffusion2d", side**2)
        try:
            swell.solve(A * (1 + 0.1j) if given["complex"] else A, np.ones(A.shape[0]), device=given["device"],
                        method=None if given["method"] == "auto" else given["method"], precond=given["precond"])
        except SwellError as error:
            sys.exit(str(error))
    print(compilations())
