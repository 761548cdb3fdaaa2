"""Dense LU on a GPU: swell's decomposers beside torch's and CuPy's lu_factor, which call cuSOLVER.

    python benchmarks/dense_on_gpu.py [ROWS ...] [--batch N | --libraries] [--out FILE]

Standard normal entries, double precision; ms, the best of five wall times after one that warms up. All pivot for every
column, but for ICM without "full", which does where an entry of the diagonal is bad. ``--batch``: N matrices together.
``--libraries``: only getrf of cuSOLVER and of MAGMA, both called by torch. ``--out`` appends records as JSON lines.
torch is left out where it is not installed.
"""
from __future__ import annotations

import argparse
import shlex
import sys
import time

import numpy as np

from swell import dense
from swell.bench import engine
from swell.core.devices import make_space

DECOMPOSERS = {"getrf": dense.Getrf(), "PCM 32": dense.PCM(x=32), "PCM 16": dense.PCM(x=16), "PCM 8": dense.PCM(x=8),
               "ICM 32": dense.ICM(x=32), "ICM 8": dense.ICM(x=8), "ICM 32, full": dense.ICM(x=32, pivoting="full"),
               "ICM 16, full": dense.ICM(x=16, pivoting="full")}


def best(space, run, repeat=5):
    """The least wall time in ms."""
    run()
    took = []
    for _ in range(repeat):
        space.synchronize()
        start = time.perf_counter()
        run()
        space.synchronize()
        took.append(time.perf_counter() - start)
    return 1e3 * min(took)


def peers(A):
    """What others call for the same, by name."""
    from cupyx.scipy.linalg import lu_factor
    named = {"cupyx": lambda: lu_factor(A, check_finite=False)}
    try:
        import torch
    except ImportError:
        return named
    copy = torch.as_tensor(A, device="cuda")

    def by_torch():
        torch.linalg.lu_factor(copy)
        torch.cuda.synchronize()
    return {"torch": by_torch} | named


def libraries(A):
    """getrf by the libraries that torch can call, by name: ``A`` is factored anew in each call."""
    import torch
    copy = torch.as_tensor(A, device="cuda")

    def by(library):
        def run():
            torch.backends.cuda.preferred_linalg_library(library)
            torch.linalg.lu_factor(copy)
            torch.cuda.synchronize()
        return run
    return {"cuSOLVER": by("cusolver"), "MAGMA": by("magma")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[178, 558, 1228, 3202, 4156, 10135])
    parser.add_argument("--batch", type=int, metavar="N", help="matrices that are factored together")
    parser.add_argument("--libraries", action="store_true", help="cuSOLVER and MAGMA by torch, and nothing else")
    parser.add_argument("--out", help="a .jsonl file to append records to")
    arguments = parser.parse_args()
    space, random = make_space("cuda"), np.random.default_rng(0)
    with space.active():
        for n in arguments.sizes:
            if arguments.batch:
                A = space.from_host(random.standard_normal((arguments.batch, n, n)))
                runs = {name: lambda d=d, A=A: d.factor_batch(A, space) for name, d in DECOMPOSERS.items()}
            elif arguments.libraries:
                runs = libraries(space.from_host(random.standard_normal((n, n))))
            else:
                A = space.from_host(random.standard_normal((n, n)))
                runs = peers(A) | {name: lambda d=d, A=A: d.factor(A, space) for name, d in DECOMPOSERS.items()}
            took = {name: best(space, run) for name, run in runs.items()}
            print(n, *(f"{name} {ms:.2f}" for name, ms in took.items()), sep=", ", flush=True)
            if arguments.out:
                engine.append(arguments.out, [{"benchmark": "dense factorisations", "n": n, "batch": arguments.batch,
                                              "ms": took, **engine.circumstances(space),
                                              "command": shlex.join(["python", *sys.argv])}])


if __name__ == "__main__":
    main()
