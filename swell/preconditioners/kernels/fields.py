"""A vector ordered by fields, and back, on a CPU; ``fields.cu`` is the GPU version. See preconditioners/fields.py."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import parallel


@parallel
def split(x, rows, out):
    """out[k] = x[rows[k]]; zero where rows[k] is negative, between two fields."""
    for k in prange(out.size):
        out[k] = x[rows[k]] if rows[k] >= 0 else 0


@parallel
def join(y, places, out, alpha, beta):
    """out[i] = alpha y[places[i]] + beta out[i]; beta = 0 never reads out."""
    for i in prange(out.size):
        value = alpha * y[places[i]]
        out[i] = value if beta == 0 else value + beta * out[i]
