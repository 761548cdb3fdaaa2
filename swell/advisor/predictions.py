"""Predicted seconds of a choice before it is tried: setup + iterations × seconds of an iteration.

Costs are linear in entries, rows and calls of kernels (costs.py). On a CPU an analysis of A's pattern counts the
operations of a factorisation (orderings/minimum_degree.py), and the package that will factor turns them into seconds.
The analysis stops at a limit; the prediction is then a lower bound, which is refined only if that matters. On a GPU
most of a factorisation is cuDSS's analysis, which grows with rows and entries.

The number of iterations is optimistic: a power of n that suits well-behaved grids. An iteration carries values one
layer of A's graph further, so for a Hermitian matrix with a positive diagonal each layer takes some. On a GPU smooth
vectors tell the condition number of D⁻¹A (smooth_vectors.py), which counts instead for CG with Jacobi. If Gershgorin's
circles bound the condition number, this bounds the iterations. The watch on an attempt (watch.py) corrects the rest.

A factorisation of up to 15 ms on a CPU, or 5 ms on a GPU, is taken without comparison: its seconds are certain, and
iterations would save little.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from swell.advisor.costs import BISECTED, COSTS, FACTORISATIONS, MULTIGRID, RESIDENT
from swell.core.configuration import Configuration
from swell.core.errors import FactorisationError
from swell.formats.parts import MAX_HALO, usual_counts
from swell.orderings.minimum_degree import factorisation_cost
from swell.orderings.pivots import eliminate_with_pivots
from swell.preconditioners.banded_factors import narrow_band
from swell.preconditioners.dense_factors import NEARLY_FULL, factored_full
from swell.preconditioners.rslab_factors import BLOCKED, unsuited

ITERATIONS = {          # times the cube root of n
    "none": 45.0, "jacobi": 4.0, "ic": 1.25, "ilu": 0.8, "shifted_laplacian": 1.0,
}
LAYER_ITERATIONS = {"none": 1.5, "jacobi": 1.5, "ic": 0.45}     # for each layer of the graph
DOUBT = 1.25                                     # on iterations by smooth vectors, beside AMG's, which are certain
WAVE_FACTOR = 2.5                                # on the iterations of incomplete factors, which help waves less
AMG_ITERATIONS = {True: 12.0, False: 15.0}       # for an M-matrix, and for another matrix
AGGREGATION_ITERATIONS = 45.0                    # of smoothed aggregation for elastic bodies, by constants
GMRES_FACTOR = 5                                 # on the iterations of gmres, which restarts
FULL_ENTRY, FULL_FLOP = 10e-9, 3e-11             # seconds of an entry and of an operation of a full matrix, by LAPACK
BAND_ROW, BAND_ENTRY = 2e-7, 5e-9                # seconds of a row and of an entry in a banded factorisation
BAND_FLOP = {"f": 3.7e-10, "c": 1e-9}            # seconds of an operation in it
BAND_SOLVE = 6e-8, 2e-9                          # seconds of a row and of an entry in a solve with its factors
CUSOLVER_ROW, CUSOLVER_FLOP = 2.5e-6, 4.8e-14    # seconds of a row and of an operation, by cuSOLVER
CUSOLVER_SOLVE = 0.25e-3, 0.36e-6                # seconds of a solve with its factors, and of each row in it
CUDSS_SOLVE = 1.3e-3                             # seconds of a solve with cuDSS's factors
CERTAIN = {"cpu": 15e-3, "cuda": 5e-3}           # seconds up to which a factorisation is taken without comparison
MEMORY_SHARE = 0.5                               # of the free memory, which factors may take
ANALYSIS_ROW, ANALYSIS_ENTRY = 0.4e-6, 20e-9     # seconds of a row and of an entry of A in the analysis
ANALYSIS_VISIT = 20e-9                           # seconds of a visit of an element of a list in the analysis
ANALYSES_SAVED = 2                               # an analysis begins if a factorisation could save as long as this many
ANALYSIS_FACTOR, ANALYSIS_SHARE = 3, 0.25        # it stops at 3 times its predicted seconds, or 0.25 of the limit
FACTOR_ENTRY = 3e-9                              # seconds of an entry of the factors in a solve
FURTHER_SHARE = 0.5                              # of a solve's seconds, for each further right-hand side in one call


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one choice.

    Attributes
    ----------
    setup, iteration : float
        Seconds of the setup, and of an iteration.
    iterations : float
        Expected number of iterations.
    grows : bool
        True for a Krylov method, whose iterations grow with the difficulty of the system: if one such choice takes more
        iterations than expected, the others will, too. False for AMG and for the direct method.
    certain : bool
        True for a choice that is taken without comparison, since it is quick and its seconds are certain.
    refine : callable or None
        For a lower bound: ``refine(limit)`` returns a more exact Prediction. It stops, with another lower bound, once
        the setup takes more than ``limit`` seconds.
    refining : float
        Predicted seconds of a call of ``refine``.
    further : float
        Seconds that each further right-hand side adds to an iteration, if they are solved together.
    """

    setup: float
    iteration: float
    iterations: float
    grows: bool = True
    certain: bool = False
    refine: Callable | None = field(default=None, compare=False)
    refining: float = 0.0
    further: float = math.inf

    @property
    def solve(self) -> float:
        """Seconds of a solve after the setup."""
        return self.iteration * self.iterations

    def alone(self, columns) -> float:
        """Seconds of solves for ``columns`` right-hand sides, one by one."""
        return columns * self.solve

    def together(self, columns) -> float:
        """Seconds of a solve for ``columns`` right-hand sides together; infinite if there is no such form."""
        return self.solve + ((columns - 1) * self.further * self.iterations if columns > 1 else 0.0)

    def at_best(self, columns) -> float:
        """The lesser of `alone` and `together`."""
        return min(self.alone(columns), self.together(columns))

    def iteration_at_best(self, columns) -> float:
        """Seconds of an iteration for ``columns`` right-hand sides, alone or together, whichever is less."""
        return self.iteration + (columns - 1) * min(self.iteration, self.further) if columns > 1 else self.iteration


def iterative(A, facts, choice: Configuration, machine, m_matrix=False, layers=0, elastic=False,
              foreseen=(0.0, False)) -> Prediction:
    """Return the Prediction for ``choice``, a Configuration with an iterative method and a known preconditioner.

    Parameters
    ----------
    A : CSRMatrix
    facts : Facts
        Of A.
    machine : Machine
    m_matrix : bool
        True if A is an M-matrix, for which AMG's iterations are few.
    layers : int
        Levels of a breadth-first search in A's graph, if A is Hermitian with a positive diagonal.
    elastic : bool
        True if the unknowns are coupled as in elasticity.
    foreseen : (float, bool)
        The result of `smooth_vectors.jacobi_iterations` for A.
    """
    costs, name, part = COSTS[A.space.name], choice.name("method"), choice.part
    products, rest = costs.methods[name]

    def seconds(cost):
        return costs.seconds(cost, A, machine)

    iteration = products * (seconds(costs.product) + seconds(costs.applied[part])) + seconds(rest)
    further = math.inf if name == "resident_cg" else (
        products * (seconds(costs.further(costs.product)) + seconds(costs.further(costs.applied[part])))
        + seconds(rest._replace(calls=rest.calls * costs.further_calls)))
    setup = seconds(costs.solve) + seconds(costs.setups[part]) * (
        costs.unsymmetric if part == "amg" and not facts.symmetric else 1.0)
    if name == "resident_cg":
        parts = usual_counts(facts.n, A.space)[0]
        consecutive = parts == 1 or 2 * facts.bandwidth * parts <= MAX_HALO * facts.n  # few ghost values between parts
        setup += seconds(RESIDENT if consecutive else BISECTED)
    difficulty = costs.difficulty * (costs.elastic_difficulty if elastic else 1.0)
    return Prediction(setup, iteration, _iterations(facts, name, part, m_matrix, layers, difficulty, foreseen),
                      part not in MULTIGRID, further=further)


def _iterations(facts, method, part, m_matrix, layers, difficulty=1.0, foreseen=(0.0, False)):
    """Return the number of iterations that a well-behaved system would take.

    ``facts``: `Facts` of A. ``method``, ``part``: names of the method and of the preconditioner or scaling.
    ``m_matrix``, ``layers``, ``foreseen``: see `iterative`. ``difficulty``: a factor, for methods whose iterations
    grow."""
    if part in MULTIGRID:
        return AMG_ITERATIONS[m_matrix] if part == "amg" else AGGREGATION_ITERATIONS
    sparse = facts.nnz < NEARLY_FULL * facts.n**2                # n iterations are expected for a full matrix
    count = ITERATIONS[part] * (facts.n ** (1 / 3) if sparse else facts.n) * (GMRES_FACTOR if method == "gmres" else 1)
    count *= difficulty if sparse else 1.0
    if method == "cocg" and part != "jacobi":
        count *= WAVE_FACTOR
    _, low, high = facts.gershgorin
    if method == "bicgstab" and low > 0:         # Jacobi's sweeps reduce the error by 1 − low/high or more
        count = min(count, math.log(2e8) / (-2 * math.log1p(-low / high)) if low < high else 1.0)
    if facts.hermitian and facts.positive_diagonal:
        if part in LAYER_ITERATIONS:
            count = max(count, min(difficulty * LAYER_ITERATIONS[part] * layers, facts.n))
            if part == "jacobi" and foreseen[0]:
                count = DOUBT * foreseen[0] if foreseen[1] else max(count, DOUBT * foreseen[0])
        bound = gershgorin_bound(facts)
        count = min(count, bound if part in ("none", "jacobi") else bound / 2)
    return max(count, 1.0)


def gershgorin_bound(facts) -> float:
    """Return a bound of the iterations of CG for a Hermitian matrix, by Gershgorin's circles; inf if they tell nothing.

    CG reduces the error by 2 ((√κ − 1)/(√κ + 1))ᵏ in k iterations."""
    _, low, high = facts.gershgorin
    return 0.5 * math.sqrt(high / low) * math.log(2e8) if low > 0 else math.inf


def direct(A, machine, limit=0.0) -> Prediction:
    """Return the Prediction of the direct method for the CSRMatrix A on ``machine``, a Machine.

    It is a lower bound if the setup takes more than ``limit`` seconds, and infinite if memory is too small for factors.
    """
    costs, kind = COSTS[A.space.name], A.dtype.kind
    scale = costs.scale(machine)
    fixed = sum(costs.seconds(cost, A, machine) for cost in (costs.solve, costs.direct))
    n, on_gpu = A.shape[0], A.space.name != "cpu"
    if factored_full(A):
        if 8 * n**2 * (2 if kind == "c" else 1) > MEMORY_SHARE * A.space.memory()[0]:
            return Prediction(math.inf, 0.0, 1.0, False)
        flops = 2 / 3 * n**3 * (4 if kind == "c" else 1)
        if on_gpu:
            setup = costs.seconds(costs.solve, A, machine) + CUSOLVER_ROW * n + CUSOLVER_FLOP * flops
            solve = CUSOLVER_SOLVE[0] + CUSOLVER_SOLVE[1] * n
        else:
            setup, solve = fixed + scale * (FULL_ENTRY * n**2 + FULL_FLOP * flops), scale * FACTOR_ENTRY * n**2
        return _of_factors(A, setup, solve)
    if on_gpu:
        return Prediction(fixed, CUDSS_SOLVE, 1.0, False, further=FURTHER_SHARE * CUDSS_SOLVE)
    if band := narrow_band(A):
        width = band.width
        setup = costs.seconds(costs.solve, A, machine) + scale * (
            BAND_ROW * n + BAND_ENTRY * A.nnz + BAND_FLOP[kind] * n * 2 * width * (2 * width + 1))
        return _of_factors(A, setup, scale * (BAND_SOLVE[0] * n + BAND_SOLVE[1] * n * (3 * width + 1)))
    package = FACTORISATIONS["superlu" if unsuited(A) else "rslab"][kind]
    least = fixed + scale * package.factor * A.nnz               # the factors have at least A's entries
    analysis = scale * (ANALYSIS_ROW * n + ANALYSIS_ENTRY * A.nnz)
    if least + ANALYSES_SAVED * analysis > limit:
        return Prediction(least + analysis, 0.0, 1.0, False, refine=partial(direct, A, machine), refining=analysis)
    seconds, fitting = max(limit - fixed, 1e-3) / scale, MEMORY_SHARE * A.space.memory()[0] / (A.dtype.itemsize + 4)
    # The analysis of a random graph takes longer than the analysis of a mesh.
    visits = max(ANALYSIS_FACTOR * analysis, ANALYSIS_SHARE * limit) / (scale * ANALYSIS_VISIT)
    cost = _cost(A, min(seconds / package.factor, fitting), seconds / package.flop, visits)
    if cost.complete and cost.flops <= BLOCKED * cost.entries:
        package = FACTORISATIONS["superlu"][kind]                # as Direct takes for thin factors
    if cost.entries > fitting:
        return Prediction(math.inf, 0.0, 1.0, False)
    setup = fixed + scale * (package.entry * A.nnz + package.factor * cost.entries + package.flop * cost.flops)
    solve = scale * FACTOR_ENTRY * cost.entries + costs.seconds(costs.product, A, machine)
    if cost.complete:
        return _of_factors(A, setup, solve)
    return Prediction(max(setup, limit), solve, 1.0, False, refine=partial(direct, A, machine), refining=analysis,
                      further=FURTHER_SHARE * solve)


def _of_factors(A, setup, solve):
    """Return the Prediction for a factorisation with known seconds of its ``setup`` and of a ``solve``."""
    return Prediction(setup, solve, 1.0, False, certain=setup + solve <= CERTAIN[A.space.name],
                      further=FURTHER_SHARE * solve)


def _cost(A, *limits):
    """Return the cost of A's factors, with good pivots on the diagonal."""
    try:
        return eliminate_with_pivots(A, *limits)[0].cost
    except FactorisationError:                   # structurally singular, which the factorisation will report
        return factorisation_cost(A, *limits)
