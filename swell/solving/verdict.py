"""The last word on a solve: what the true residual ‖b − A x‖₂, with the original matrix, makes of the loop's reason."""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason

SINGULAR = 0.1          # ‖|A||x|‖ over ‖b‖ + ‖r‖ from which A is singular to working precision, in units of 1/eps
ROUNDING = 8            # residual over ‖|A||x|‖ + ‖b‖ up to which it is rounding, in units of eps


def last_word(reason: Reason, residual: float, threshold: float, norm_b: float, A, x) -> Reason:
    """The reason that the user is told.

    Parameters
    ----------
    reason : Reason
        The loop's.
    residual, threshold, norm_b : float
        ‖b − A x‖₂, what it should be, and ‖b‖₂.
    A, x : the original matrix and the solution in its space
    """
    if residual <= threshold:
        return Reason.CONVERGED
    if reason in (Reason.INTERRUPTED, Reason.STOPPED, Reason.OVERTAKEN):
        return reason
    if not math.isfinite(residual):              # x has overflowed; nothing can be compared with that
        return Reason.NONFINITE
    size, eps = size_of_terms(A, x), np.finfo(A.dtype).eps
    if size > SINGULAR / eps * (norm_b + residual):
        return Reason.SINGULAR
    if residual <= ROUNDING * eps * (size + norm_b):
        return Reason.ATTAINABLE_ACCURACY
    return Reason.FALSE_CONVERGENCE if reason is Reason.CONVERGED else reason


def size_of_terms(A, x) -> float:
    """‖|A| |x|‖₂, which two facts rest on, whatever the scaling of the rows. Rounding x alone changes A x by about eps
    of it. And b − r = A x of a far smaller norm can only come from cancellation as in a singular matrix.
    """
    if not A.has_entries:
        return float("nan")                      # which no comparison holds for
    absolute = A.absolute()
    terms = A.space.empty(x.size, absolute.dtype)
    absolute.apply(abs(x), terms)
    return A.space.norms(terms)[0]
