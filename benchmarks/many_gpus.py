"""Ranks with a GPU each: products with and without overlap, iterations, solves. Rank 0 prints.

    mpiexec -n 2 python benchmarks/many_gpus.py [--edge 256] [--matrices thermal2~,atmosmodd~] [--partition graph]
        [--messages nccl] [--iterations 1000]

Strong scaling: Poisson's matrix on a cube of ``--edge``³ points; weak: as many planes of it for each rank as a cube has.
Products are replayed from CUDA graphs (the least of three means, of the slowest rank), iterations are those of a whole
solve of ``--iterations`` of them (the least of three), solves go to 1e-8 (the second of two).
"""
from __future__ import annotations

import argparse

import swell
from swell import distributed, gallery
from swell.bench import engine
from swell.bench.scaling.ranks import slab
from swell.core.timing import seconds
from swell.distributed.devices import on_device

SOLVES = {"thermal2~": [("cg", None, "jacobi"), ("single_reduction_cg", None, "jacobi")],
          "atmosmodd~": [("gmres", "ilu0", None), ("gmres", "ilu0(solve='sweeps(count=3)')", None),
                         ("gmres", "ilu0(solve='isai(power=1)')", None), ("bicgstab", None, None)]}


def slowest(A, value):
    """The largest of all ranks' values."""
    return max(A.space.ranks.allgather(value))


def measured(A, name, say, iterations):
    """Products and iterations of one matrix."""
    space, n = A.space, A.shape[0]
    A = A.stored_as(swell.SELL())
    b, y = space.empty(A.own.shape[0], A.dtype), space.empty(A.own.shape[0], A.dtype)
    space.random(5, b)
    took = {}
    for overlap in (True, False):
        A.overlap = overlap
        took[overlap] = 1e6 * slowest(A, seconds(space, lambda: A.apply(b, y), 20))
    A.overlap = True
    local = 1e6 * slowest(A, seconds(space, lambda: A.local.apply(b, y), 20))
    say(f"{name}, {n} rows: product {took[True]:.1f} µs, without overlap {took[False]:.1f}, diagonal block {local:.1f}, "
        f"halo {A.halo.ghosts.size} entries")
    talk(A, say)
    for method in ("cg", "single_reduction_cg"):
        solver = swell.prepare(A, method=method, stopping=engine.fixed(iterations))
        solver.solve(b)
        results = [solver.solve(b) for _ in range(3)]
        took = min(slowest(A, r.timings["solve"]) / r.iterations for r in results)
        say(f"  {method}: {1e6 * took:.1f} µs an iteration, {results[0].iterations} of them, {results[0].reason.name}")


def talk(A, say):
    """An exchange and a sum alone."""
    space = A.space
    x, sums = space.empty(A.own.shape[0], A.dtype), space.empty(2, A.dtype)
    sums.fill(0)

    def exchange():
        A.halo.start(x)
        A.halo.finish()

    took = [1e6 * slowest(A, seconds(space, what, 20)) for what in (exchange, lambda: space.ranks.allreduce(sums))]
    say("  exchange {:.1f} µs, sum of two numbers {:.1f}".format(*took))


def solved(A, name, say):
    """Whole solves."""
    say(A.origin)
    b = A.space.empty(A.own.shape[0], A.dtype)
    A.space.random(5, b)
    for method, precond, scaling in SOLVES[name]:
        solver = swell.prepare(A, method=method, precond=precond, scaling=scaling)
        solver.solve(b)
        result = solver.solve(b)
        took = slowest(A, result.timings["solve"])
        say(f"{name}, {method}, {precond or scaling or 'no preconditioner'}: {result.reason.name}, {result.iterations} "
            f"iterations, {1e3 * took:.1f} ms, {1e6 * took / result.iterations:.1f} µs each, true residual "
            f"{result.residual:.1e}")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edge", type=int, default=256)
    parser.add_argument("--matrices", default=",".join(SOLVES))
    parser.add_argument("--partition", default="rows", help="of the matrices: rows, or graph")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--messages", choices=("peer", "nccl"), help="default: peer where it can be")
    parser.add_argument("--iterations", type=int, default=1000)
    arguments = parser.parse_args()
    ranks = distributed.init()
    on_device(ranks, arguments.device, arguments.messages)

    def say(text):
        if ranks.rank == 0:
            print(f"{ranks.size} ranks, {text}", flush=True)

    warm = slab(ranks, 8, arguments.device)
    with warm.space.active():
        measured(warm, "next to nothing", say, arguments.iterations)
        measured(slab(ranks, arguments.edge, arguments.device, arguments.edge), "strong", say, arguments.iterations)
        if ranks.size > 1:
            measured(slab(ranks, arguments.edge, arguments.device), "weak", say, arguments.iterations)
        for name in filter(None, arguments.matrices.split(",")):
            A = gallery.get(name) if ranks.rank == 0 else None
            solved(distributed.scatter(ranks, A, device=arguments.device, partition=arguments.partition), name, say)


if __name__ == "__main__":
    main()
