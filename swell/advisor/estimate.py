"""Predicted seconds of a choice before it is tried: setup + iterations × seconds of an iteration.

Costs are linear in entries, rows and calls of kernels (costs.py). An analysis of A's pattern counts the operations of a
factorisation on a CPU (orderings/minimum_degree.py), and the package that will factor turns them into seconds. The
analysis gives up at a limit, and goes on only if the count matters. On a GPU most of a factorisation is cuDSS's
analysis, which grows with rows and entries.

The number of iterations is optimistic: a power of n that suits well-behaved grids. For a Hermitian matrix with a
positive diagonal it is some for each layer of the graph, since an iteration carries values one layer on. If
Gershgorin's circles bound the condition number, this bounds the iterations. The watch on an attempt (watch.py) corrects
the rest. A factorisation of up to 15 ms on a CPU, or 5 ms on a GPU, is made outright: it is certain, and iterations
would save little.
"""
from __future__ import annotations

import math
from functools import partial

from swell.advisor.costs import BISECTED, COSTS, FACTORISATIONS, RESIDENT
from swell.advisor.plan import MULTIGRID, Estimate
from swell.core.configuration import Configuration
from swell.core.errors import FactorisationError
from swell.formats.parts import FEW, usual_counts
from swell.orderings.minimum_degree import factorisation_cost
from swell.orderings.pivots import eliminate_with_pivots
from swell.preconditioners.banded_factors import factored_banded
from swell.preconditioners.dense_factors import NEARLY_FULL, factored_full
from swell.preconditioners.rslab_factors import BLOCKED, unsuited

ITERATIONS = {          # times the cube root of n
    "none": 45.0, "jacobi": 4.0, "ic": 1.25, "ilu": 0.8, "shifted_laplacian": 1.0,
}
LAYER = {"none": 1.5, "jacobi": 1.5, "ic": 0.45}                # iterations for each layer of the graph
WAVES = 2.5                                      # times the iterations of incomplete factors: they help waves less
LEVELS = {True: 12.0, False: 15.0}               # iterations with AMG: of M-matrices, and of others
AGGREGATED = 45.0                                # iterations with smoothed aggregation of elastic bodies, by constants
LAST = 5                                         # times the iterations of gmres, which restarts
COPIED, FULL = 10e-9, 3e-11                      # seconds of an entry and of an operation of a full matrix, by LAPACK
BAND_ROW, BAND_ENTRY, BAND_SOLVED = 2e-7, 5e-9, (6e-8, 2e-9)       # seconds of a row, of an entry; of a solve
BAND_FLOP = {"f": 3.7e-10, "c": 1e-9}            # seconds of an operation of a banded factorisation
CUSOLVER_ROW, CUSOLVER_FLOP = 2.5e-6, 4.8e-14    # seconds of a row and of an operation, by cuSOLVER
CUSOLVER_SOLVED = 0.25e-3, 0.36e-6               # seconds of a solve with its factors, and of each row of it
CERTAIN = {"cpu": 15e-3, "cuda": 5e-3}           # seconds up to which a factorisation is made outright
MEMORY = 0.5                                     # share of the free memory that factors may take
ORDERED = 0.4e-6, 20e-9                          # seconds of a row and of an entry of A in the analysis
LOOKS = 2                                        # analyses that a factorisation must be able to save, to be analysed
LONGER, SHARE = 3, 4                             # an analysis ends after 3 times that, or a quarter of what is at stake
VISIT = 20e-9                                    # seconds of a look at an element of a list in the analysis
SUBSTITUTED = 3e-9                               # seconds of an entry of the factors in a solve
BESIDE = 0.5                                     # share of that for each further right-hand side in one call
CUDSS_SOLVED = 1.3e-3                              # seconds of a solve with cuDSS's factors


def iterative(A, facts, choice: Configuration, machine, multigrid=False, layers=0) -> Estimate:
    """Return the Estimate of time for ``choice``, a Configuration with an iterative method and a known preconditioner.

    Parameters
    ----------
    A : CSRMatrix
    facts : Facts
        Of A.
    machine : Machine
    multigrid : bool
        True if A is such that AMG's iterations are few.
    layers : int
        Levels of a breadth-first search in A's graph, if A is Hermitian with a positive diagonal.
    """
    costs, name, part = COSTS[A.space.name], choice.name("method"), choice.part
    products, rest = costs.methods[name]

    def seconds(cost):
        return costs.seconds(cost, A, machine)

    iteration = products * (seconds(costs.product) + seconds(costs.applied[part])) + seconds(rest)
    further = math.inf if name == "resident_cg" else (
        products * (seconds(costs.further(costs.product)) + seconds(costs.further(costs.applied[part])))
        + seconds(rest._replace(calls=rest.calls * costs.further_calls)))
    setup = seconds(costs.solve) + seconds(costs.setups[part])
    if name == "resident_cg":
        parts = usual_counts(facts.n, A.space)[0]
        near = parts == 1 or 2 * facts.bandwidth * parts <= FEW * facts.n            # the halo of consecutive rows
        setup += seconds(RESIDENT if near else BISECTED)
    return Estimate(setup, iteration, _iterations(facts, name, part, multigrid, layers), part not in MULTIGRID,
                    costs.margin if part in MULTIGRID else 0.0, further=further)


def _iterations(facts, method, part, multigrid, layers):
    """Return the expected number of iterations, at best.

    ``facts``: `Facts` of A. ``method``, ``part``: names of the method and of the preconditioner or scaling.
    ``multigrid``: A suits AMG. ``layers``: see `iterative`."""
    if part in MULTIGRID:
        return LEVELS[multigrid] if part == "amg" else AGGREGATED
    grid = facts.nnz < NEARLY_FULL * facts.n**2  # else n iterations are expected
    count = ITERATIONS[part] * (facts.n ** (1 / 3) if grid else facts.n) * (LAST if method == "gmres" else 1)
    if method == "cocg" and part != "jacobi":
        count *= WAVES
    if facts.hermitian and facts.positive_diagonal:
        if part in LAYER:
            count = max(count, min(LAYER[part] * layers, facts.n))
        _, low, high = facts.gershgorin
        if low > 0:                              # CG reduces the error by 2 ((√κ − 1)/(√κ + 1))ᵏ
            bound = 0.5 * math.sqrt(high / low) * math.log(2e8)
            count = min(count, bound if part in ("none", "jacobi") else bound / 2)
    return max(count, 1.0)


def direct(A, machine, seconds=0.0) -> Estimate:
    """Return the Estimate of the direct method for the CSRMatrix A on ``machine``, a Machine.

    It is a lower bound if the setup takes more than ``seconds``, and infinite if the factors do not fit in memory.
    """
    costs, kind = COSTS[A.space.name], A.dtype.kind
    scale = costs.scale(machine)
    fixed = sum(costs.seconds(cost, A, machine) for cost in (costs.solve, costs.direct))
    n, on_gpu = A.shape[0], A.space.name != "cpu"
    if factored_full(A):
        if 8 * n**2 * (2 if kind == "c" else 1) > MEMORY * A.space.memory()[0]:
            return Estimate(math.inf, 0.0, 1.0, False)
        flops = 2 / 3 * n**3 * (4 if kind == "c" else 1)
        if on_gpu:
            setup = costs.seconds(costs.solve, A, machine) + CUSOLVER_ROW * n + CUSOLVER_FLOP * flops
            solve = CUSOLVER_SOLVED[0] + CUSOLVER_SOLVED[1] * n
        else:
            setup, solve = fixed + scale * (COPIED * n**2 + FULL * flops), scale * SUBSTITUTED * n**2
        return Estimate(setup, solve, 1.0, False, outright=setup + solve <= CERTAIN[A.space.name],
                        further=BESIDE * solve)
    if on_gpu:
        return Estimate(fixed, CUDSS_SOLVED, 1.0, False, further=BESIDE * CUDSS_SOLVED)
    if factored_banded(A):
        width = A.facts(search=False).bandwidth
        setup = costs.seconds(costs.solve, A, machine) + scale * (
            BAND_ROW * n + BAND_ENTRY * A.nnz + BAND_FLOP[kind] * n * 2 * width * (2 * width + 1))
        solve = scale * (BAND_SOLVED[0] * n + BAND_SOLVED[1] * n * (3 * width + 1))
        return Estimate(setup, solve, 1.0, False, outright=setup + solve <= CERTAIN["cpu"], further=BESIDE * solve)
    package = FACTORISATIONS["superlu" if unsuited(A) else "rslab"][kind]
    least, looking = fixed + scale * package.factor * A.nnz, scale * (ORDERED[0] * n + ORDERED[1] * A.nnz)
    if least + LOOKS * looking > seconds:        # the factors have A's entries; a look must be able to save one
        return Estimate(least + looking, 0.0, 1.0, False, finer=partial(direct, A, machine), looking=looking)
    room, fits = max(seconds - fixed, 1e-3) / scale, MEMORY * A.space.memory()[0] / (A.dtype.itemsize + 4)
    patience = max(LONGER * looking, seconds / SHARE)            # graphs at random take longer than meshes
    cost = _cost(A, min(room / package.factor, fits), room / package.flop, patience / (scale * VISIT))
    if cost.complete and cost.flops <= BLOCKED * cost.entries:
        package = FACTORISATIONS["superlu"][kind]                # as Direct takes for thin factors
    if cost.entries > fits:
        return Estimate(math.inf, 0.0, 1.0, False)
    setup = fixed + scale * (package.entry * A.nnz + package.factor * cost.entries + package.flop * cost.flops)
    finer = None if cost.complete else partial(direct, A, machine)
    solve = scale * SUBSTITUTED * cost.entries + costs.seconds(costs.product, A, machine)
    outright = cost.complete and setup + solve <= CERTAIN["cpu"]
    return Estimate(setup if cost.complete else max(setup, seconds), solve, 1.0, False, outright=outright, finer=finer,
                    looking=looking, further=BESIDE * solve)


def _cost(A, *limits):
    """Return the cost of A's factors, with good pivots on the diagonal."""
    try:
        return eliminate_with_pivots(A, *limits)[0].cost
    except FactorisationError:                   # structurally singular: the factorisation will tell
        return factorisation_cost(A, *limits)
