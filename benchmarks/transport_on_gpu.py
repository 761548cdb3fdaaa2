"""atmosmodd~ (convection and diffusion) on a GPU by multigrid and by ILU(0), from a CuPy matrix on the GPU to x there.

    python benchmarks/transport_on_gpu.py [--repeat 5]

Prints iterations, reason, true residual, and ms of setup with first solve, setup, first solve, second solve, update: of the run
with the least sum of the first two, without the first run, which compiles.
"""
import argparse
import time

import cupy
import cupyx.scipy.sparse

import swell
from swell import gallery

SOLVERS = (("bicgstab", "amg"), ("gmres", "amg"), ("fgmres", "amg"), ("idrs", "amg"), ("bicgstab", "amg(coarsest=300)"),
           ("bicgstab", "ilu0(solve='sweeps(count=2)')"), (None, None))


def clock():
    """Seconds, with an idle GPU."""
    cupy.cuda.Device().synchronize()
    return time.perf_counter()


def measured(A, b, method, precond):
    """(the seconds of one run, its result)."""
    start = clock()
    solver = swell.prepare(A, method=method, precond=precond, rtol=1e-8, device="cuda")
    ready = clock()
    solver.solve(b)
    solved = clock()
    result = solver.solve(b)
    again = clock()
    solver.update(A)
    return (solved - start, ready - start, solved - ready, again - solved, clock() - again), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    A = cupyx.scipy.sparse.csr_matrix(gallery.get("atmosmodd~"))
    b = A @ cupy.random.random(A.shape[0])
    for method, precond in SOLVERS:
        runs = [measured(A, b, method, precond) for _ in range(repeat)]
        seconds, result = min(runs[1:], key=lambda run: run[0])
        print(method, precond, result.iterations, result.reason.name, f"{result.residual:.1e}",
              *(f"{1e3 * part:.1f}" for part in seconds), flush=True)


if __name__ == "__main__":
    main()
