"""How far least squares are from solved; ``measure.cuh`` is the same on a GPU."""
from __future__ import annotations

from swell.core.compiled import helper


@helper
def share(norm, allowed):
    """norm/allowed; a large number where nothing is allowed, and 0 for 0."""
    return norm / allowed if allowed > 0 else 1e150 if norm > 0 else norm * 0


@helper
def measure2(residual, normal, allowed, factor):
    """The square of the smaller of ‖r‖ over ``allowed`` and ‖Aᴴ r‖ over ``factor`` ‖r‖: at 1 the system is solved."""
    least = min(share(residual, allowed), share(normal, factor * residual))
    return least * least
