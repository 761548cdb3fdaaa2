"""The verdict on a solve: the reason that its result reports, from the loop's reason and the quality of x."""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason
from swell.solving.measure import ROUNDING, Goal, Quality

SINGULAR = 0.1          # A is singular to working precision if ‖|A||x| + |b|‖ > SINGULAR/eps (‖b‖ + ‖r‖)
UNSOLVED = 0.2          # rows are unsolved if a group has ‖r‖₂ > UNSOLVED ‖t‖₂, and
MOVES = 0.01            # solving one of its rows would move x by more than MOVES ‖x‖∞
ASKED = Reason.INTERRUPTED, Reason.STOPPED, Reason.OVERTAKEN     # the user, the monitor or the watch ended the loop


def decide(reason: Reason, met: bool, finite: bool, at_rounding: bool, unsolved=False, singular=False) -> Reason:
    """Return the reason that a result reports, given the loop's ``reason`` and the residual of the caller's A, b and x.

    Parameters
    ----------
    met : bool
        The tolerance is certainly met.
    finite : bool
        All numbers of x and of its residual are finite.
    at_rounding : bool
        The residual is at the level of the rounding errors of A x.
    unsolved : bool
        Only the large rows of A meet the tolerance.
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
        quality.residual <= quality.floor                        # rounding errors of the large rows hide the small ones
        or quality.rows > UNSOLVED and quality.shift > MOVES)
    return decide(reason, met, math.isfinite(residual), residual <= ROUNDING * eps * quality.terms, unsolved,
                  quality.terms > SINGULAR / eps * (goal.norm_b + residual))
