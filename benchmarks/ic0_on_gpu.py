"""Incomplete Cholesky on a GPU: its setup and an application in units of a SELL product, and CG with it to 1e-8.

    python benchmarks/ic0_on_gpu.py ecology2~ parabolic_fem~ thermal2~

Products and applications are replayed from CUDA graphs (medians); setups are wall times of the second of two, compiled
and synchronised. The right-hand side is A times random numbers, on the device; solves that take less than a second are
repeated, and the second counts.
"""
from __future__ import annotations

import argparse
import time

import numpy as np

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.timing import times
from swell.formats.csr import CSRMatrix
from swell.formats.sell import SELL
from swell.preconditioners.ic import FixedPointFactor, LevelFactor, lower_pattern, scatter
from swell.preconditioners.level_schedule import Schedule

RTOL = 1e-8
SHIFT = 0.128           # of the timed factorisations: one attempt, whatever the matrix
PRECONDITIONERS = (
    "ic0(solve=\"exact(schedule='levels')\")", "ic0", "ic0(ordering='twisted')", "ic0(ordering='multicolor')",
    "ic0(ordering='multicolor', solve=\"exact(schedule='sync_free')\")", "ic0(ordering='greedy_coloring')",
    "ic0(solve='sweeps(count=3)')", "ic0(factor='sweeps', solve='sweeps(count=3)')",
    "ic0(factor='sweeps', solve='sweeps(count=3)', shift=0.1)", "ic(level=1, ordering='multicolor')")


def replayed(space, launch, per_graph=4, repeat=7) -> float:
    """Median µs of a launch, from graphs of ``per_graph``."""
    with space.active():
        return 1e6 * float(np.median(times(space, launch, per_graph, repeat)))


def second(space, work):
    """(µs of the second call, its result)."""
    with space.active():
        work()
        space.synchronize()
        start = time.perf_counter()
        result = work()
        space.synchronize()
        return 1e6 * (time.perf_counter() - start), result


def setups(space, csr, product):
    """Times of the parts of a setup in natural order."""
    xp = space.xp
    with space.active():
        indptr, indices = lower_pattern(csr)
        lower, L = (CSRMatrix(space, indptr, indices, xp.empty(indices.size, csr.dtype), csr.shape) for _ in range(2))
        scatter(csr, lower)
    took, schedule = second(space, lambda: Schedule(lower, True))
    print(f"  schedule of {schedule.levels} levels: {took:.0f} µs = {took / product:.0f} products")
    for name, factor in (("in the order of levels", LevelFactor(lower, L, schedule)),
                         ("by 1 sweep", FixedPointFactor(lower, L, 1)), ("by 5 sweeps", FixedPointFactor(lower, L, 5))):
        took, _ = second(space, lambda factor=factor: factor(SHIFT))
        print(f"  factor {name}: {took:.0f} µs = {took / product:.0f} products", flush=True)


def case(space, name, preconditioners, solves):
    """Everything of one matrix."""
    A = gallery.get(name)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        sell = SELL().build(csr)
        x = space.xp.random.RandomState(7).random_sample(A.shape[0])
        y, b = space.xp.empty_like(x), space.xp.empty_like(x)
        csr.apply(x - 0.5, b)
    product = replayed(space, lambda: sell.apply(x, y), 20)
    print(f"{name}: {A.shape[0]} rows, {A.nnz} entries, product {product:.1f} µs")
    setups(space, csr, product)
    for precond in preconditioners:
        took, M = second(space, lambda precond=precond: resolve("precond", precond).build(csr))
        each = replayed(space, lambda M=M: M.apply(x, y))
        print(f"  {precond}: setup {took / 1e3:.1f} ms = {took / product:.0f} products, application {each:.1f} µs = "
              f"{each / product:.1f} products; {M.describe().split('solved by ')[1]}, shift {M.shift:g}", flush=True)
    for precond in (None, *preconditioners) if solves else ():
        solver = swell.prepare(A, method="cg", precond=precond, scaling=None if precond else "jacobi", rtol=RTOL,
                               device="cuda", maxiter=20_000)
        result = solver.solve(b)
        if result.timings["solve"] < 1:
            result = solver.solve(b)
        seconds = result.timings["solve"]
        print(f"  CG, {precond or 'Jacobi scaling'}: {result.iterations} iterations, {result.reason.name}, residual "
              f"{result.residual:.1e}, {1e3 * seconds:.1f} ms, {1e6 * seconds / result.iterations:.1f} µs each",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("matrices", nargs="*", default=["ecology2~", "parabolic_fem~", "thermal2~"])
    parser.add_argument("--precond", nargs="*", default=PRECONDITIONERS)
    parser.add_argument("--no-solves", action="store_true")
    arguments = parser.parse_args()
    space = make_space("cuda")
    for name in arguments.matrices:
        case(space, name, arguments.precond, not arguments.no_solves)


if __name__ == "__main__":
    main()
