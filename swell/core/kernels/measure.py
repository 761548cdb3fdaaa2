"""The convergence measure of least-squares problems; ``measure.cuh`` is the GPU version."""
from __future__ import annotations

from swell.core.compiled import helper


@helper
def share(norm, allowed):
    """norm/allowed; if ``allowed`` is 0, a large number for norm > 0 and 0 for norm = 0."""
    return norm / allowed if allowed > 0 else 1e150 if norm > 0 else norm * 0


@helper
def measure2(residual, normal, allowed, factor):
    """Return min(‖r‖ / allowed, ‖Aᴴ r‖ / (factor ‖r‖))², which is at most 1 for a solved least squares problem.

    ``residual`` = ‖r‖, ``normal`` = ‖Aᴴ r‖."""
    least = min(share(residual, allowed), share(normal, factor * residual))
    return least * least
