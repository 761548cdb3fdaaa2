"""Tests for breakdown, for kernels in Numba: is an inner product only rounding error? ``breakdown.hpp`` is the text for
both devices."""
from __future__ import annotations

import math

from swell.core.compiled import helper, njit

EPS = 2.0**-52          # machine epsilon of double: an inner product below it, relative to the norms, is noise


@njit(cache=True, fastmath=False)
def quotient(a, b):
    """a/b, or 0 where b = 0."""
    return a / b if b != 0 else a * 0


@helper
def vanishes(product, a2, b2):
    """True if ``product``, an inner product of vectors with squared norms a2 and b2, is only rounding error."""
    return abs(product) <= EPS * math.sqrt(a2) * math.sqrt(b2)
