"""The final reason of a solve, from the loop's reason and the true residual ‖b − A x‖₂ of the original matrix."""
from __future__ import annotations

import math

import numpy as np

from swell.core.stopping import Reason

SINGULAR = 0.1          # A is singular to working precision if ‖|A||x|‖ > SINGULAR/eps (‖b‖ + ‖r‖)
ROUNDING = 8            # a residual r is only rounding if ‖r‖ ≤ ROUNDING eps (‖|A||x|‖ + ‖b‖)


def last_word(reason: Reason, residual: float, threshold: float, norm_b: float, A, x) -> Reason:
    """Return the reason that the result reports: the loop's, unless the true residual says otherwise.

    Parameters
    ----------
    reason : Reason
        The loop's reason.
    residual, threshold, norm_b : float
        ‖b − A x‖₂, the norm at which the solve has converged, and ‖b‖₂.
    A, x : the original matrix and the solution in its space
    """
    if residual <= threshold:
        return Reason.CONVERGED
    if reason in (Reason.INTERRUPTED, Reason.STOPPED, Reason.OVERTAKEN):
        return reason
    if not math.isfinite(residual):              # x has overflowed: the comparisons below would mean nothing
        return Reason.NONFINITE
    size, eps = size_of_terms(A, x), np.finfo(A.dtype).eps
    if size > SINGULAR / eps * (norm_b + residual):
        return Reason.SINGULAR
    if residual <= ROUNDING * eps * (size + norm_b):
        return Reason.ATTAINABLE_ACCURACY
    return Reason.FALSE_CONVERGENCE if reason is Reason.CONVERGED else reason


def size_of_terms(A, x) -> float:
    """‖|A| |x|‖₂, the size of the terms in A x; NaN for a matrix-free A.

    `last_word` uses it in two ways, independent of the scaling of rows. Rounding x alone changes A x by about eps times
    this size. If b − r = A x is far smaller than this size, its terms cancel, as for a singular matrix.
    """
    if not A.has_entries:
        return float("nan")                      # every comparison with NaN is false
    absolute = A.absolute()
    terms = A.space.empty(x.size, absolute.dtype)
    absolute.apply(abs(x), terms)
    return A.space.norms(terms)[0]
