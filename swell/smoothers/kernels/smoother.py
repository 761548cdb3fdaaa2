"""What every smoother shares, on the CPU; ``smoother.cu`` is the same on a GPU."""
from __future__ import annotations

from numba import njit, prange


@njit(parallel=True, cache=True)
def combine(z, out, alpha, beta):
    """out = alpha z + beta out; beta = 0 never reads out."""
    if beta == 0:
        for i in prange(out.size):
            out[i] = alpha * z[i]
    else:
        for i in prange(out.size):
            out[i] = alpha * z[i] + beta * out[i]
