"""Implicit time schemes for ∂p/∂t: Euler (first order) and BDF2 (second order)."""
from __future__ import annotations

import math

from swell.core.errors import InputError
from swell.core.settings import real

SCHEMES = ("euler", "bdf2")
SLIVER = 1e-4           # of a step: in a shorter one the fluxes' errors, divided by it, spoil the pressure
MAX_STEPS = 2.0**53     # a double counts no further


def check_step(dt, scheme):
    """Raise InputError for a time step that is not positive or an unknown scheme."""
    if not real(dt) or not 0 < dt < float("inf"):
        raise InputError(f"dt={dt!r}: expected a positive time step")
    if scheme not in SCHEMES:
        raise InputError(f"time scheme {scheme!r}: expected one of {', '.join(SCHEMES)}")


def count_steps(end, dt) -> int:
    """Return the number of steps ``dt`` to the time ``end``. The last step may be shorter, or longer by `SLIVER` dt,
    which covers the rounding of both numbers."""
    if not end / dt < MAX_STEPS:
        raise InputError(f"{end:g} is {end / dt:.2g} steps of {dt:g}: expected fewer than {MAX_STEPS:.0e}")
    return max(1, math.ceil(end / dt - SLIVER))


def time_terms(volumes, dt, p, before=None, scheme="euler"):
    """Discretise V ∂p/∂t; return its (diagonal, right-hand side), both of shape (n,).

    Parameters
    ----------
    volumes : array, shape (n,)
    dt : float
    p : array
        p at the last time.
    before : array, optional
        p one step earlier. BDF2's first step has none and uses Euler; the order stays two.
    """
    rate = volumes / dt
    if scheme == "euler" or before is None:
        return rate, rate * p                                    # (p⁺ − p)/Δt
    return 1.5 * rate, rate * (2 * p - 0.5 * before)             # (3 p⁺ − 4 p + p⁻)/(2 Δt)
