"""Whether single precision can hold a cycle.

A cycle computes the residual r = b − D A D x with an error of some eps ‖x‖: all entries of D A D are about 1
(balancing.py). The smoothest errors of a thin body have residuals as small as this. Then the correction is rounding, CG
stagnates, or finds M indefinite. So one look at the setup measures the smallest ‖D A D v‖ / ‖v‖ that the levels know: v
is interpolated from the coarsest level, where inverse iteration with the dense inverse finds it.

Plates of 60 × 60 × 2 hexahedra: 4.7e-6 for cells 1 × 1 × 0.1, where single precision takes the iterations of double;
4.9e-7 for 0.01, where it takes up to a sixth more; 4.9e-8 for 0.001, where it takes 86 iterations instead of 33.
"""
from __future__ import annotations

import numpy as np

SEED, STEPS = 5, 2      # of the inverse iteration: random vector, products with the inverse
NULL = 1e-13            # a vector below this ‖D A D v‖ / ‖v‖ is a null vector, whose error no residual shows


def smoothest(cycle):
    """Return the smoothest vector that the levels of a `BalancedCycle` know, a float64 array for its finest level; None
    if the coarsest level has no dense inverse."""
    hierarchy, space = cycle.hierarchy, cycle.space
    if not hierarchy.dense:
        return None
    last = cycle.levels[-1]
    y, z = (space.empty(hierarchy.last.shape[0], cycle.dtype) for _ in range(2))
    start = space.empty(y.size, np.float64)
    space.random(SEED, start)
    y[...] = start
    for _ in range(STEPS):
        last.solve(y, z)
        y[...] = z / space.norms(z)[1]  # sync
    v = cycle.scales[-1] * y                                                   # of the last level, unbalanced
    for level in reversed(hierarchy.levels):
        fine = space.empty(level.A.shape[0], np.float64)
        level.P.apply(v, fine)
        v = fine
    return v


def response(A, scale, v) -> float:
    """Return ‖D A D u‖ / ‖u‖ with u = D⁻¹ v; 1 where this is no number.

    A is a CSRMatrix, or the RankRows of a matrix across ranks, in double precision; ``scale`` is the diagonal of D."""
    space, product = A.space, A.space.empty(v.size, np.float64)
    A.apply(v, product)
    u = space.xp.where(scale > 0, v / space.xp.where(scale > 0, scale, 1), 0)
    product *= scale
    below, _, above, _ = space.norms(u, product)  # sync
    return float(above / below) if below > 0 and np.isfinite(above / below) else 1.0


def too_narrow(cycle) -> bool:
    """True if the residuals of the smoothest errors are rounding in the precision of a `BalancedCycle`, and would not
    be in double precision."""
    return NULL < cycle.least_response() < 2 * np.finfo(cycle.dtype).eps
