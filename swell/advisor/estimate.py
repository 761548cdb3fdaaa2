"""What a choice will cost on a CPU, in seconds, before it is tried: setup + iterations × the cost of one.

Costs are linear in entries, rows and calls of kernels. Their constants were fitted to solves of the systems of ``swell
bench auto``, by a machine that copies at `REFERENCE` bytes a second (benchmarks/NOTES.md). A machine's own copy speed
scales them (machine.py). A factorisation is counted by an analysis of A's pattern
(orderings/minimum_degree.py), which gives up at a limit, and is looked into further when that matters.

The iterations are optimistic: a power of n that suits well-behaved grids, or where Gershgorin's circles bound the
condition, what that allows. The watch on an attempt (watch.py) sees to the rest. A factorisation that takes up to 15 ms
is made outright: it is certain, and fewer iterations than expected would save little.
"""
from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from swell.advisor.plan import Estimate
from swell.core.configuration import Configuration
from swell.core.cpu import SERIAL
from swell.orderings.minimum_degree import factorisation_cost
from swell.preconditioners.dense_factors import NEARLY_FULL, nearly_full

REFERENCE = 24e9        # bytes a second, read and written, by the copy of the machine that the constants are from
COMPLEX = 1.9           # times the cost of real numbers, for entries and rows
CALL = 3e-6             # seconds of a kernel's call from Python
SHARED = 0.7            # T threads are taken to be Tˢ times as fast as one, where a kernel uses them


class Cost(NamedTuple):
    """Calls of kernels, and nanoseconds an entry, a row, and a square of a row's length of A; ``serial``: one thread
    does it, however many there are."""

    calls: float
    entry: float
    row: float
    serial: bool = False
    square: float = 0.0

    def seconds(self, A, machine) -> float:
        """On a machine, for a matrix."""
        scale = (COMPLEX if A.dtype.kind == "c" else 1.0) * REFERENCE / machine.copy
        if not self.serial and A.shape[0] >= SERIAL:
            scale /= machine.threads ** SHARED
        work = self.entry * A.nnz + self.row * A.shape[0]
        if self.square:
            spread = A.facts(search=False).row_spread
            work += self.square * (1 + spread**2) * A.nnz**2 / max(A.shape[0], 1)
        return self.calls * CALL + 1e-9 * scale * work


SOLVE = Cost(270, 4, 20)                         # checks, facts, format, norms and the true residual of any solve
PRODUCT = Cost(1.5, 0.45, 1)
METHODS = {             # products and applications of M an iteration, and the rest of it
    "cg": (1, Cost(1, 0, 2)), "minres": (1, Cost(2, 0, 5)), "cocg": (1, Cost(1, 0, 2)),
    "bicgstab": (2, Cost(5, 0, 3)), "gmres": (1, Cost(4, 0, 20)),
}
SETUPS = {              # of preconditioners and scalings
    "none": Cost(0, 0, 0), "jacobi": Cost(20, 0, 10), "ic0": Cost(60, 10, 60, True, 1.0),
    "ilu0": Cost(80, 25, 60, True, 0.5), "block_ilu0": Cost(80, 25, 60, True, 0.5),
    "shifted_laplacian": Cost(120, 60, 150, True, 1.0), "amg": Cost(300, 60, 500),
}
APPLIED = {
    "none": Cost(0, 0, 0), "jacobi": Cost(0.5, 0, 0.7), "ic0": Cost(4, 1.3, 1, True), "ilu0": Cost(3, 1.2, 1, True),
    "shifted_laplacian": Cost(5, 2, 3, True), "block_ilu0": Cost(3, 1.2, 1, True), "amg": Cost(12, 0.5, 32),
}
ITERATIONS = {          # times the cube root of n
    "none": 30.0, "jacobi": 4.0, "ic0": 1.0, "ilu0": 0.8, "block_ilu0": 0.8, "shifted_laplacian": 1.0,
}
MARGIN = 0.05                                    # seconds that AMG must save: at its first use it compiles some 10 s
LEVELS = {True: 10.0, False: 25.0}               # iterations with AMG: of M-matrices, and of others
LAST = 5                                         # times the iterations of gmres, which restarts
COPIED, FULL = 10e-9, 3e-11                      # seconds of an entry and of an operation of a full matrix, by LAPACK
CERTAIN = 15e-3                                  # seconds up to which a factorisation is made outright
MEMORY = 0.5                                     # share of the free memory that factors may take
DIRECT = Cost(500, 30, 150, True)
ENTRY = {"f": 48e-9, "c": 60e-9}                 # seconds of an entry of the factors, real or complex
FLOP = {"f": 0.85e-10, "c": 2.5e-10}              # seconds of an operation
ORDERED = 2.5e-9                                 # seconds of A's entries in the analysis, to the power of 1.3
SUBSTITUTED = 3e-9                               # seconds of an entry of the factors in a solve


def iterative(A, facts, choice: Configuration, machine, multigrid=False) -> Estimate:
    """The estimate of a choice with an iterative method and a preconditioner of the tables above.

    Parameters
    ----------
    A : CSRMatrix
    facts : Facts
        Of A.
    machine : Machine
    multigrid : bool
        True if A is such that AMG's iterations are few.
    """
    method, part = choice.name("method"), choice.part
    products, rest = METHODS[method]
    iteration = (products * (PRODUCT.seconds(A, machine) + APPLIED[part].seconds(A, machine))
                 + rest.seconds(A, machine))
    setup = SOLVE.seconds(A, machine) + SETUPS[part].seconds(A, machine)
    return Estimate(setup, iteration, _iterations(facts, method, part, multigrid), part != "amg",
                    MARGIN if part == "amg" else 0.0)


def _iterations(facts, method, part, multigrid):
    """How many are expected, at best."""
    if part == "amg":
        return LEVELS[multigrid]
    grid = facts.nnz < NEARLY_FULL * facts.n**2  # else n iterations are expected
    count = ITERATIONS[part] * (facts.n ** (1 / 3) if grid else facts.n) * (LAST if method == "gmres" else 1)
    if facts.hermitian and facts.positive_diagonal:
        _, low, high = facts.gershgorin
        if low > 0:                              # CG reduces the error by 2 ((√κ − 1)/(√κ + 1))ᵏ
            bound = 0.5 * math.sqrt(high / low) * math.log(2e8)
            count = min(count, bound if part in ("none", "jacobi") else bound / 2)
    return max(count, 1.0)


def direct(A, machine, seconds=0.0) -> Estimate:
    """The estimate of the direct method; a lower bound if its setup takes more than some seconds, infinite if its
    factors do not fit in memory."""
    scale, kind = REFERENCE / machine.copy, A.dtype.kind
    fixed = SOLVE.seconds(A, machine) + DIRECT.seconds(A, machine)
    least, looking = fixed + scale * ENTRY[kind] * A.nnz, scale * ORDERED * A.nnz**1.3
    n = A.shape[0]
    if nearly_full(A):                           # nothing to look for
        flops = 2 / 3 * n**3 * (4 if kind == "c" else 1)
        setup, solve = fixed + scale * (COPIED * n**2 + FULL * flops), scale * SUBSTITUTED * n**2
        return Estimate(setup, solve, 1.0, False, outright=setup + solve <= CERTAIN)
    if least + looking > seconds:                # the factors hold all of A
        return Estimate(least + looking, 0.0, 1.0, False, finer=partial(direct, A, machine), looking=looking)
    room, fits = max(seconds - fixed, 1e-3) / scale, MEMORY * A.space.memory()[0] / (A.dtype.itemsize + 4)
    cost = factorisation_cost(A, min(room / ENTRY[kind], fits), room / FLOP[kind])
    if cost.entries > fits:
        return Estimate(math.inf, 0.0, 1.0, False)
    setup = fixed + scale * (ENTRY[kind] * cost.entries + FLOP[kind] * cost.flops)
    finer = None if cost.complete else partial(direct, A, machine)
    solve = scale * SUBSTITUTED * cost.entries + PRODUCT.seconds(A, machine)
    outright = cost.complete and setup + solve <= CERTAIN
    return Estimate(setup if cost.complete else max(setup, seconds), solve, 1.0, False, outright=outright, finer=finer,
                    looking=looking)
