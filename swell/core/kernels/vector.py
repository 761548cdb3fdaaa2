"""Vector operations shared by all methods, on the CPU; ``vector.cu`` is the same on a GPU."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

GPU_ONLY = ("collect_dots",)                # completes what a product on a GPU leaves in parts
FAST = {"reassoc", "contract", "nsz"}       # sums may be reordered to vectorise; NaN and Inf keep their meaning


@njit(parallel=True, cache=True, fastmath=FAST)
def dots(x, y, out):
    """out[0] = (x, y), out[1] = (y, y), accumulated in double."""
    xy = out.dtype.type(0)
    yy = 0.0
    for i in prange(x.size):
        xy += np.conj(x[i]) * y[i]
        yy += (np.conj(y[i]) * y[i]).real
    out[0] = xy
    out[1] = yy


@njit(parallel=True, cache=True, fastmath=FAST)
def weighted_norm2(r, w, out):
    """out[0] = Σ w |r|²: the squared norm of the original residual when r belongs to a scaled system."""
    norm2 = 0.0
    for i in prange(r.size):
        norm2 += w[i] * (np.conj(r[i]) * r[i]).real
    out[0] = norm2


@njit(cache=True)
def largest(x, out):
    """out[0] = the largest modulus; NaN if there is one."""
    most = 0.0
    for i in range(x.size):
        size = abs(x[i])
        if size > most or np.isnan(size):
            most = size
    out[0] = most


@njit(parallel=True, cache=True)
def multiply_add(d, x, out, alpha, beta):
    """out = alpha d x + beta out, element by element; beta = 0 never reads out."""
    if beta == 0:
        for i in prange(x.size):
            out[i] = alpha * d[i] * x[i]
    else:
        for i in prange(x.size):
            out[i] = alpha * d[i] * x[i] + beta * out[i]


@njit(parallel=True, cache=True, fastmath=FAST)
def multiply_dots(d, x, out, w, sums):
    """out = d x with sums[0] = (w, out) and sums[1] = (out, out)."""
    wy = sums.dtype.type(0)
    yy = 0.0
    for i in prange(x.size):
        y = d[i] * x[i]
        out[i] = y
        wy += np.conj(w[i]) * y
        yy += (np.conj(y) * y).real
    sums[0] = wy
    sums[1] = yy


@njit(parallel=True, cache=True)
def random(seed, out):
    """out = reproducible numbers in [−1, 1): the mix of splitmix64 applied to the index, the same on every device."""
    for i in prange(out.size):
        z = np.uint64(i) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        out[i] = np.float64(np.int64(z >> np.uint64(11))) * 2.0**-52 - 1.0
