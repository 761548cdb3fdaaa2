"""Triangular solves of ILU(0) on a GPU: exact, by sweeps, and by sparse approximate inverses.

    python benchmarks/inexact_on_gpu.py atmosmodd~

Products and applications are replayed from CUDA graphs (the least of three means); setups and solves with gmres(30) to
1e-8 are wall times of the second of two. The right-hand side is A times random numbers.
"""
from __future__ import annotations

import argparse
import time

import numpy as np

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.timing import seconds
from swell.formats.csr import CSRMatrix
from swell.formats.sell import SELL

SOLVES = ("exact", "sweeps(count=2)", "sweeps(count=3)", "sweeps(count=4)", "isai(power=1)", "isai(power=2)",
          "isai(power=3)")


def case(space, name, size, solves, repeat):
    """Everything of one matrix."""
    A = gallery.get(name, size)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        sell = SELL().build(csr)
        x = space.from_host(np.random.default_rng(7).random(A.shape[0]))
        y, b = space.xp.empty_like(x), space.xp.empty_like(x)
        csr.apply(x, b)
        product = seconds(space, lambda: sell.apply(x, y), repeat)
    print(f"{name}: {A.shape[0]} rows, {A.nnz} entries, product {1e6 * product:.1f} µs", flush=True)
    for solve in solves:
        precond, took = f"ilu0(solve='{solve}')", []
        with space.active():
            for _ in range(2):
                space.synchronize()
                start = time.perf_counter()
                M = resolve("precond", precond).build(csr)
                space.synchronize()
                took.append(time.perf_counter() - start)
            M.apply(x, y)
            each = seconds(space, lambda M=M: M.apply(x, y), 4)
            triangles = f"{M.L.describe()}; {M.U.describe()}"
        solver = swell.prepare(A, method="gmres(restart=30)", precond=precond, rtol=1e-8, device=space.name)
        solver.solve(b)
        result = solver.solve(b)
        print(f"  {solve}: setup {1e3 * took[1]:.1f} ms, application {1e6 * each:.1f} µs = {each / product:.2f} products; "
              f"{result.iterations} iterations, {result.reason.name}, {1e3 * result.timings['solve']:.1f} ms, "
              f"{1e6 * result.timings['solve'] / result.iterations:.0f} µs each; {triangles}", *M.notes, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("matrices", nargs="*", default=["atmosmodd~"])
    parser.add_argument("--solves", nargs="*", default=SOLVES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", type=int, help="unknowns; by default the matrix's own number")
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    space = make_space(arguments.device)
    for name in arguments.matrices:
        case(space, name, arguments.size, arguments.solves, arguments.repeat)


if __name__ == "__main__":
    main()
