"""The verdict on a solve: what the loop's reason and the quality of x mean together."""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason
from swell.solving.measure import ROUNDING, Goal, Quality

SINGULAR = 0.1          # A is singular to working precision if ‖|A||x| + |b|‖ > SINGULAR/eps (‖b‖ + ‖r‖)
UNSOLVED = 0.2          # a group of rows whose residual is more than this part of its terms is not solved at all
MOVES = 0.01            # and solving it would move x by more than this part of ‖x‖∞


def verdict(reason: Reason, quality: Quality, goal: Goal, dtype) -> Reason:
    """Return the reason that the result reports: the loop's, unless the quality of x says otherwise.

    Parameters
    ----------
    reason : Reason
        The loop's reason.
    quality : Quality
        Of x, for the caller's A and b.
    goal : Goal
    dtype : numpy.dtype
        The type of x.
    """
    confirmed = quality.confirms(goal.threshold)
    unsolved = confirmed and min(quality.rows, quality.shift) > goal.of_rows and (
        quality.residual <= quality.floor                        # rounding of the large rows hides the small ones
        or quality.rows > UNSOLVED and quality.shift > MOVES)
    if confirmed and not unsolved:
        return Reason.CONVERGED
    if reason in (Reason.INTERRUPTED, Reason.STOPPED, Reason.OVERTAKEN):
        return reason
    if unsolved:
        return Reason.UNSOLVED_ROWS
    residual, eps = quality.residual, np.finfo(dtype).eps
    if not math.isfinite(residual):              # x has overflowed: the comparisons below would mean nothing
        return Reason.NONFINITE
    if quality.terms > SINGULAR / eps * (goal.norm_b + residual):
        return Reason.SINGULAR
    if residual <= ROUNDING * eps * quality.terms:
        return Reason.ATTAINABLE_ACCURACY
    return Reason.FALSE_CONVERGENCE if reason is Reason.CONVERGED else reason
