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


def least_response(cycle) -> float:
    """Return the ‖D A D v‖ / ‖v‖ of the smoothest vector v that the levels of a `BalancedCycle` know; 1 if the coarsest
    level has no dense inverse."""
    hierarchy, space = cycle.hierarchy, cycle.space
    if not hierarchy.dense or not hierarchy.levels:
        return 1.0
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
    A, scale = hierarchy.levels[0].A, cycle.scales[0]
    product = space.empty(v.size, np.float64)
    A.apply(v, product)
    v[...] = space.xp.where(scale > 0, v / space.xp.where(scale > 0, scale, 1), 0)
    product *= scale                                                           # D A D v for v = D⁻¹ v
    below, _, above, _ = space.norms(v, product)  # sync
    return float(above / below) if below > 0 and np.isfinite(above / below) else 1.0


def too_narrow(cycle) -> bool:
    """True if the residuals of the smoothest errors are rounding in the precision of a `BalancedCycle`, and would not
    be in double precision."""
    return NULL < least_response(cycle) < 2 * np.finfo(cycle.dtype).eps
