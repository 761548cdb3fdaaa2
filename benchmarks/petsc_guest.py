"""What it costs to use swell from inside PETSc: the same solve by swell alone, by its KSP and by its PC, in one process.

    python benchmarks/petsc_guest.py --grid 100 --method cg --precond ic0 --repeat 5 [--clock cpu]

Needs petsc4py for this NumPy. Poisson's equation on a cube, right-hand side of random numbers, rtol 1e-8 of ‖b − A x‖ (of
PETSc's unpreconditioned norm). The solves alternate in random order, and the least time of each is given beside the ratio to
swell alone; "update" is what new values of the same pattern cost, "PETSc" its own method of that name with its own
preconditioner. On a machine with other work to do take CPU seconds.
"""
from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import petsc4py

petsc4py.init(sys.argv[:1])
from petsc4py import PETSc                 # noqa: E402

import swell                               # noqa: E402
from swell.guests.petsc import views       # noqa: E402
from swell.guests.petsc import KSP, PC     # noqa: E402

RTOL = 1e-8
PETSC = {"ic0": "icc", "ilu0": "ilu", "jacobi": "jacobi"}        # the same preconditioner by PETSc's name


class Alone:
    """swell without PETSc."""

    def __init__(self, A, S, options):
        self.S, self.options = S, options

    def set_up(self):
        o = self.options
        self.solver = swell.prepare(self.S, method=o.method, precond=o.precond, rtol=RTOL, maxiter=10000)

    def update(self):
        self.solver.update(self.S)

    def solve(self, b, x):
        self.result = self.solver.solve(b.array_r)
        return self.result.iterations


class Guest:
    """A KSP of PETSc's, made by ``fill``."""

    def __init__(self, A, fill):
        self.A, self.fill = A, fill

    def set_up(self):
        self.ksp = PETSc.KSP().create(PETSc.COMM_SELF)
        self.ksp.setOperators(self.A)
        self.fill(self.ksp)
        self.ksp.setTolerances(rtol=RTOL)
        self.ksp.setUp()

    def update(self):
        self.A.stateIncrease()                   # as new values do
        self.ksp.getPC().setUp()
        if self.ksp.getType() == "python":
            self.ksp.getPythonContext().setUp(self.ksp)      # else it would be part of the solve

    def solve(self, b, x):
        x.set(0)
        self.ksp.solve(b, x)
        assert self.ksp.getConvergedReason() > 0
        return self.ksp.getIterationNumber()


def swells_ksp(options):
    def fill(ksp):
        ksp.setType("python")
        ksp.setPythonContext(KSP(method=options.method, precond=options.precond))
    return fill


def petscs_ksp(options, own):
    def fill(ksp):
        ksp.setType(options.method)
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        if options.method == "gmres":
            ksp.setPCSide(PETSc.PC.Side.RIGHT)
        pc = ksp.getPC()
        if own:
            pc.setType(PETSC[options.precond])
        else:
            pc.setType("python")
            pc.setPythonContext(PC(precond=options.precond))
    return fill


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}           # CPU seconds are those of all threads
clock = CLOCKS["wall"]


def seconds(f, *arguments):
    start = clock()
    value = f(*arguments)
    return clock() - start, value


def system(grid):
    S = swell.gallery.poisson3d(grid).tocsr()
    A = PETSc.Mat().createAIJ(S.shape, comm=PETSc.COMM_SELF, csr=(
        S.indptr.astype(PETSc.IntType), S.indices.astype(PETSc.IntType), S.data.astype(PETSc.ScalarType)))
    A.assemble()
    x, b = A.createVecs()
    b.setArray(np.random.default_rng(0).standard_normal(S.shape[0]))
    return S, A, x, b


def measure(grid, options, repeat):
    """{who: {what: least seconds}} and the iterations."""
    S, A, x, b = system(grid)
    ways = {"swell alone": Alone(A, S, options), "swell's KSP": Guest(A, swells_ksp(options)),
            "PETSc with swell's PC": Guest(A, petscs_ksp(options, own=False)),
            "PETSc": Guest(A, petscs_ksp(options, own=True))}
    best, counts, order = {who: {} for who in ways}, {}, np.random.default_rng(1)
    for _ in range(repeat):
        for who in order.permutation([*ways]):   # who comes after whom decides who finds memory that was touched
            way = ways[who]
            for what, run in (("set up", way.set_up), ("update", way.update), ("solve", lambda: way.solve(b, x))):
                took, value = seconds(run)
                best[who][what] = min(took, best[who].get(what, np.inf))
            counts[who] = value
            way.ksp = way.solver = None          # its memory goes before the next one sets up
    return S, A, best, counts


def application(A, precond, repeat):
    """Least seconds of an application of swell's preconditioner, by swell itself and through PETSc's PCApply."""
    pc = PETSc.PC().create(PETSc.COMM_SELF)
    pc.setOperators(A)
    pc.setType("python")
    context = PC(precond=precond)
    pc.setPythonContext(context)
    pc.setUp()
    x, b = A.createVecs()
    b.set(1)
    r, z, M = np.ones(b.getSize()), np.empty(b.getSize()), context._M
    least = [np.inf, np.inf]
    for _ in range(repeat):
        least = [min(least[0], seconds(M.apply, r, z)[0]), min(least[1], seconds(pc.apply, b, x)[0])]
    assert np.array_equal(z, x.array)
    return least


def door(S, A, repeat):
    """Least seconds to see PETSc's matrix as SciPy's, by views and by petsc4py's own copies."""
    seen = min(seconds(views.matrix, A)[0] for _ in range(repeat))
    copies = min(seconds(A.getValuesCSR)[0] for _ in range(repeat))
    return seen, copies


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", type=int, default=100)
    parser.add_argument("--method", default="cg")
    parser.add_argument("--precond", default="ic0", choices=PETSC)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clock", default="wall", choices=CLOCKS)
    options = parser.parse_args()
    global clock
    clock = CLOCKS[options.clock]
    measure(30, options, 1)                      # compiles what there is to compile
    S, A, best, counts = measure(options.grid, options, options.repeat)
    print(f"poisson3d({options.grid}): {S.shape[0]} rows, {options.method} with {options.precond}, rtol {RTOL:g}, "
          f"least of {options.repeat}, {options.clock} seconds")
    print(f"{'':24s}{'set up':>14s}{'update':>14s}{'solve':>14s}{'iterations':>12s}")
    reference = best["swell alone"]
    for who, times in best.items():
        row = "".join(f"{times[k]:8.3f} {times[k] / reference[k]:4.2f}x" for k in ("set up", "update", "solve"))
        print(f"{who:24s}{row}{counts[who]:12d}")
    own, through = application(A, options.precond, 20 * options.repeat)
    print(f"an application of {options.precond}: {own * 1e3:.3f} ms by swell, {through * 1e3:.3f} ms by PCApply")
    seen, copies = door(S, A, options.repeat)
    print(f"the matrix as SciPy's: {seen * 1e3:.3f} ms by views, {copies * 1e3:.1f} ms by petsc4py's getValuesCSR")


if __name__ == "__main__":
    main()
