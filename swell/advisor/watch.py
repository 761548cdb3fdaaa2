"""A watch on an attempt: it extrapolates the residuals and says when another choice would be faster.

The watch takes the mean factor by which an iteration reduced the residual, over the later half of the iterations so
far. At this rate it predicts the iterations that are left. If these take longer than the whole of the next choice, the
attempt goes on only until it has spent a share of the next choice's seconds. This ski-rental rule (Karlin, Manasse,
Rudolph and Sleator 1988) bounds the cost by about twice the cost of the better choice, whatever the residuals do later.
All seconds are predictions. The watch never reads a clock, so the same solve takes the same path.
"""
from __future__ import annotations

import math

FIRST_QUESTION = 8      # iterations before the watch extrapolates for the first time
NEXT_QUESTION = 1.1     # factor on the iterations, from one extrapolation to the next
PROBE = 24              # iterations after which an extrapolation is kept for the result
SPENT = 0.2             # an attempt spends at least this share of the other choice's seconds
SPENT_IF_EQUAL = 0.3    # this share, if the other choice takes as long as the rest of the attempt


class Watch:
    """Watches one attempt.

    Parameters
    ----------
    iteration : float
        Predicted seconds of an iteration.
    other : callable
        ``other(iterations, limit)``: predicted seconds of the next choice if this one takes ``iterations`` in all. A
        return value of ``limit`` or more need not be exact.
    least : float
        A lower bound of ``other``, which may take long. The watch calls it only if it could be low enough to matter.

    Attributes
    ----------
    iterations_left : float
        Iterations that are left, by the last extrapolation.
    probed : float
        Iterations in all, extrapolated after the first `PROBE`; NaN if the attempt took fewer.
    overtaken : bool
        True once the other choice is predicted to be faster.
    """

    def __init__(self, iteration, other, least=0.0):
        self.iteration, self._other, self._least = iteration, other, least
        self.iterations_left, self.probed, self.overtaken = math.inf, math.nan, False
        self._norms, self._next = [], FIRST_QUESTION

    def __call__(self, norm, threshold) -> bool:
        """Add the next residual norm; return True if another choice is predicted to be faster: end the attempt.

        ``threshold``: the norm of convergence. A norm that is not finite returns False."""
        if not math.isfinite(norm):
            return False
        self._norms.append(norm)
        k = len(self._norms) - 1
        if k < self._next or self.overtaken:
            return self.overtaken
        self._next = max(k + 1, math.ceil(NEXT_QUESTION * k))
        self.iterations_left = remaining(self._norms, threshold)
        if k >= PROBE and math.isnan(self.probed):
            self.probed = k + self.iterations_left
        spent, left = k * self.iteration, self.iterations_left * self.iteration
        # Another choice that takes `other` seconds overtakes this attempt if
        #   other < left (1 + spent/other)              it is faster than the rest, which a long attempt underestimates;
        #   spent > SPENT_IF_EQUAL other (other/left)   the closer `other` is to `left`, the more has been spent;
        #   spent > SPENT other                         a share of `other` has been spent in any case.
        # Solved for `other`, each line is an upper bound of it.
        faster = math.inf if math.isinf(left) else (left + math.sqrt(left**2 + 4 * left * spent)) / 2
        limit = min(faster, math.sqrt(left * spent / SPENT_IF_EQUAL), spent / SPENT)
        self.overtaken = limit > self._least and self._other(k + self.iterations_left, limit) < limit
        return self.overtaken


def remaining(norms, threshold) -> float:
    """Return the number of iterations until the residual meets the threshold, a norm; inf if it does not fall.

    It extrapolates the rate of the later half of ``norms``."""
    half = len(norms) // 2
    before, now = min(norms[:half + 1]), min(norms)
    if now <= threshold:
        return 0.0
    if not now < before or threshold <= 0:
        return math.inf
    return (len(norms) - 1 - half) * math.log(now / threshold) / math.log(before / now)
