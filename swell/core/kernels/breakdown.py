"""When a division by an inner product is a division by rounding; ``breakdown.cuh`` is the same on a GPU."""
from __future__ import annotations

import math

import numpy as np
from numba import njit

from swell.core.compiled import helper

EPS = 2.0**-52          # the double's rounding unit: an inner product below it is noise


@njit(cache=True)
def quotient(a, b):
    """a/b, or 0 where b = 0."""
    return a / b if b != 0 else a * 0


@helper
def vanishes(product, a2, b2):
    """True if an inner product of vectors with squared norms a2 and b2 is no more than rounding."""
    return abs(product) <= EPS * math.sqrt(a2) * math.sqrt(b2)


@helper
def magnitude(a2):
    """The power of two next to √a2: dividing by it rounds nothing; 1 where a2 is 0 or no number."""
    if not (a2 > 0 and a2 < np.inf):
        return 1.0
    return math.ldexp(1.0, math.frexp(a2)[1] // 2)
