"""Multigrid across ranks: setup, solve, memory by part. Rank 0 prints.

    mpiexec -n 2 python benchmarks/multigrid_ranks.py --planes 232 --side 464 [--device cuda] [--profile] [--file A.npz]

Poisson's matrix on ``--planes`` planes of ``--side``² points, cut into slabs, in CSR parts that lie on their devices; or
a SciPy .npz file, of which each rank reads its rows. CG with multigrid to a true relative residual of 1e-8; b is random.
One rank, too, runs the code of ranks. Times, in milliseconds, are the slowest rank's. Rank 0 counts its sums over ranks
in the first solve and, on a GPU, its launches and host reads.
"""
from __future__ import annotations

import argparse
import time
from collections import defaultdict

import swell
from swell import distributed
from swell.bench.scaling.ranks import slab
from swell.distributed.amg import classical, hierarchy, level, operator, products, window
from swell.distributed.halo import Halo
from swell.formats.sell import SELL
from swell.distributed.devices import on_device

TIMED = ((window.Border, "rows"), (window.Border, "values"), (window.Border, "__init__"), (window.Stacked, "__init__"),
         (level.RankLevel, "_surround"), (classical.ClassicalLevel, "_split"),
         (classical.ClassicalLevel, "_interpolate"), (level.RankLevel, "multiply"),
         (products.RankFourProducts, "__init__"), (Halo, "__init__"), (SELL, "build"), (level, "Galerkin"),
         (level, "transposed"), (level, "Stacked"), (products, "parted"), (products, "smoothing"), (level, "trimmed"),
         (classical, "states"), (hierarchy, "Hierarchy"), (hierarchy, "gathered"))


def profiled(space):
    """Time the steps of the setup, each with the device idle before and after; returns the dict of the sums."""
    sums = defaultdict(float)

    def timed(owner, name):
        plain = getattr(owner, name)

        def call(*arguments):
            space.synchronize()
            start = time.perf_counter()
            found = plain(*arguments)
            space.synchronize()
            sums[f"{owner.__name__.removeprefix('swell.')}.{name}"] += time.perf_counter() - start
            return found
        setattr(owner, name, call)

    for owner, name in TIMED:
        timed(owner, name)
    return sums


def slowest(ranks, call):
    """(result, the longest wall time of all ranks) of ``call()``, which ends with an idle device."""
    ranks.allgather(None)
    start = time.perf_counter()
    found = call()
    return found, 1e3 * max(ranks.allgather(time.perf_counter() - start))


THRESHOLD, RESERVED, USED, HIGHEST = 4, 5, 7, 8      # of cudaMemPoolAttr: bytes; the last is the most that were in use


def stream_ordered(space):
    """Allocate by CUDA's stream-ordered allocator; return a function that gives the most bytes that were in use. The
    pool keeps what is freed, which counts as free: otherwise each setup asks the driver for all its memory again."""
    runtime, memory = space.xp.cuda.runtime, space.memory
    pool = runtime.deviceGetDefaultMemPool(space.device)

    def with_the_pools():
        free, total = memory()
        return free + runtime.memPoolGetAttribute(pool, RESERVED) - runtime.memPoolGetAttribute(pool, USED), total

    runtime.memPoolSetAttribute(pool, THRESHOLD, 2**64 - 1)
    space.xp.cuda.set_allocator(space.xp.cuda.malloc_async)
    space.memory = with_the_pools
    return lambda: runtime.memPoolGetAttribute(pool, HIGHEST)


def counts(space, ranks):
    """Sums over the ranks and, on a GPU, launches so far."""
    return {"sums": ranks.reductions, **({} if space.name == "cpu" else {"launches": space.launches})}


def parts(M, A):
    """Bytes a row of this rank, by part."""
    rows, h = A.own.shape[0], M.hierarchy
    found = {"A": A.own.nbytes + A.rest.nbytes, "levels": h.nbytes, "cycle": M.inner.nbytes - h.nbytes}
    return {name: round(size / rows) for name, size in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--planes", type=int, default=64)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--file")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--malloc-async", action="store_true",
                        help="CUDA's stream-ordered allocator instead of CuPy's pool, which large arrays fragment")
    parser.add_argument("--lean", action="store_true", help="drop each level's setup, as where memory is short")
    arguments = parser.parse_args()
    ranks = distributed.init()
    if arguments.lean:
        operator.KEPT = float("inf")
    space = on_device(ranks, arguments.device)[0]
    used = stream_ordered(space) if arguments.malloc_async else None
    with space.active():
        measured(ranks, space, arguments, used)


def measured(ranks, space, arguments, used):
    def say(text):
        if ranks.rank == 0:
            print(text, flush=True)

    A = (distributed.read(ranks, arguments.file, device=arguments.device) if arguments.file else
         slab(ranks, arguments.side, arguments.device, arguments.planes))
    rows = A.own.shape[0]
    b = A.space.empty(rows, A.dtype)
    A.space.random(5, b)
    sums = profiled(space) if arguments.profile else {}
    say(f"{A.shape[0]} rows on {ranks.size} ranks, {space.describe()}")
    for attempt in range(arguments.repeat):
        solver = None
        sums.clear()
        solver, setup = slowest(ranks, lambda: swell.prepare(A, method="cg", precond="amg", rtol=1e-8,
                                                        format="csr" if arguments.lean else None))
        before = counts(space, A.space.ranks.communicator)
        first, solve = slowest(ranks, lambda: solver.solve(b))
        spent = {name: count - before[name] for name, count in counts(space, A.space.ranks.communicator).items()}
        again = [slowest(ranks, lambda: solver.solve(b))[1] for _ in range(3)]
        say(f"setup {setup:.1f} (compiling {1e3 * solver.solve(b).timings['compile']:.0f}) + solve {solve:.1f}, again "
            f"{min(again):.1f}; {first.iterations} iterations, {first.reason.name}, residual {first.residual:.2e}")
        say(f"the first solve: {spent}, host reads {first.host_reads}")
        for name, seconds in sorted(sums.items(), key=lambda item: -item[1]):
            say(f"    {name:32s} {1e3 * seconds:9.1f}")
    M = solver._prepare(0).setup.M
    say(M.describe())
    say(f"bytes a row: {parts(M, A)}")
    if used is not None:
        most = max(ranks.allgather(used()))
        say(f"GiB in use at most: {most / 2**30:.1f}, {most / rows:.0f} bytes a row")
    elif arguments.device == "cuda":
        pool = space.xp.get_default_memory_pool()
        say(f"GiB held by the pool: {pool.total_bytes() / 2**30:.1f}, {pool.total_bytes() / rows:.0f} bytes a row")
    if not arguments.lean:
        _, update = slowest(ranks, lambda: solver.update(A))
        say(f"update {update:.1f}")


if __name__ == "__main__":
    main()
