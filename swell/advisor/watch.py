"""A watch on an attempt: it extrapolates the residuals and says when another choice would be faster.

The watch takes the mean factor by which the residual fell in a step, over the later half of the iterations so far. At
this rate it predicts the iterations that are left. If they would take longer than the whole of the next choice, waiting
pays only while little has been spent. The ski-rental rule (Karlin, Manasse, Rudolph and Sleator 1988) bounds the cost
by about twice the cost of the better choice, whatever the residuals do later. All seconds are predictions. The watch
never reads a clock, so the same solve takes the same path.
"""
from __future__ import annotations

import math

FIRST = 8               # iterations before the first question
PROBE = 24              # iterations after which the extrapolation is kept, to be told
APART = 1.1             # growth of the iterations from one question to the next
PATIENCE = 0.2          # least share of the other choice's seconds that is spent before a change
DOUBT = 0.3             # the same share if the other choice takes as long as what is left


class Watch:
    """Watches one attempt.

    Parameters
    ----------
    iteration : float
        Predicted seconds of an iteration.
    other : callable
        ``other(iterations, seconds)``: predicted seconds of the next choice if this one takes ``iterations`` in all;
        exact if below ``seconds``.
    least : float
        A lower bound of ``other``. The watch does not ask ``other`` if only fewer seconds would matter.

    Attributes
    ----------
    left : float
        Iterations that were left at the last question, by extrapolation.
    probed : float
        Iterations in all, as extrapolated from the first `PROBE`; NaN if the attempt took fewer.
    overtaken : bool
        True once the other choice is predicted to be faster.
    """

    def __init__(self, iteration, other, least=0.0):
        self.iteration, self._other, self._least = iteration, other, least
        self.left, self.probed, self.overtaken = math.inf, math.nan, False
        self._norms, self._next = [], FIRST

    def __call__(self, norm, threshold) -> bool:
        """Add the next residual norm; return True if another choice is predicted to be faster: end the attempt.

        ``threshold``: the norm of convergence. Norms that are not finite return False."""
        if not math.isfinite(norm):
            return False
        self._norms.append(norm)
        k = len(self._norms) - 1
        if k < self._next or self.overtaken:
            return self.overtaken
        self._next = max(k + 1, math.ceil(APART * k))
        self.left = remaining(self._norms, threshold)
        if k >= PROBE and math.isnan(self.probed):
            self.probed = k + self.left
        spent, left = k * self.iteration, self.left * self.iteration
        # The attempt ends only for another choice that takes less than `known`. The nearer the two, the more must have
        # been spent. The more has been spent, the less the extrapolation is trusted: other < left (1 + spent / other).
        trusted = math.inf if math.isinf(left) else (left + math.sqrt(left**2 + 4 * left * spent)) / 2
        known = min(trusted, math.sqrt(left * spent / DOUBT), spent / PATIENCE)
        self.overtaken = known > self._least and self._other(k + self.left, known) < known
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
