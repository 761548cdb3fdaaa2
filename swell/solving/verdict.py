"""The verdict on a solve: what the loop's reason and the quality of x mean together."""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason
from swell.solving.measure import ROUNDING, Goal, Quality

SINGULAR = 0.1          # A is singular to working precision if ‖|A||x| + |b|‖ > SINGULAR/eps (‖b‖ + ‖r‖)
UNSOLVED = 0.2          # a group of rows whose residual is more than this part of its terms is not solved at all
MOVES = 0.01            # and solving it would move x by more than this part of ‖x‖∞
ASKED = Reason.INTERRUPTED, Reason.STOPPED, Reason.OVERTAKEN     # ends that came from outside of the iteration


def decide(reason: Reason, met: bool, finite: bool, at_rounding: bool, unsolved=False, singular=False) -> Reason:
    """Return the reason that a result reports, given the loop's ``reason`` and what the caller's A, b and x say.

    Parameters
    ----------
    met : bool
        The tolerance is met, certainly.
    finite : bool
        All numbers of x and of its residual are finite.
    at_rounding : bool
        The residual is at the level of the rounding errors of A x.
    unsolved : bool
        The tolerance is met by the large rows of A alone.
    singular : bool
        A is singular to working precision.
    """
    if met and not unsolved:
        return Reason.CONVERGED
    if reason in ASKED:
        return reason
    if unsolved:
        return Reason.UNSOLVED_ROWS
    if not finite:                               # x has overflowed
        return Reason.NONFINITE
    if singular:
        return Reason.SINGULAR
    if at_rounding:
        return Reason.ATTAINABLE_ACCURACY
    return Reason.FALSE_CONVERGENCE if reason is Reason.CONVERGED else reason


def verdict(reason: Reason, quality: Quality, goal: Goal, dtype) -> Reason:
    """Return the reason that the result of a system A x = b reports.

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
    met, residual, eps = quality.confirms(goal.threshold), quality.residual, np.finfo(dtype).eps
    unsolved = met and min(quality.rows, quality.shift) > goal.of_rows and (
        quality.residual <= quality.floor                        # rounding of the large rows hides the small ones
        or quality.rows > UNSOLVED and quality.shift > MOVES)
    return decide(reason, met, math.isfinite(residual), residual <= ROUNDING * eps * quality.terms, unsolved,
                  quality.terms > SINGULAR / eps * (goal.norm_b + residual))
