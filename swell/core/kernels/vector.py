"""Vector operations shared by all methods, on the CPU; ``vector.cu`` is the same on a GPU."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CHUNKS = 64             # parts of a sum: the same whatever the number of threads, and so is their total
GPU_ONLY = ("collect_dots",)                # completes what a product on a GPU leaves in parts
FAST = {"reassoc", "contract", "nsz"}       # sums may be reordered to vectorise; NaN and Inf keep their meaning


@njit(parallel=True, cache=True)
def assign(alpha, out):
    """out = alpha."""
    for i in prange(out.size):
        out[i] = alpha


@njit(parallel=True, cache=True)
def scale(alpha, x):
    """x = alpha x."""
    for i in prange(x.size):
        x[i] = alpha * x[i]


@njit(parallel=True, cache=True)
def axpy(alpha, x, y):
    """y = alpha x + y."""
    for i in prange(x.size):
        y[i] += alpha * x[i]


@njit(parallel=True, cache=True)
def axpby(alpha, x, beta, y):
    """y = alpha x + beta y; beta = 0 never reads y."""
    if beta == 0:
        for i in prange(x.size):
            y[i] = alpha * x[i]
    else:
        for i in prange(x.size):
            y[i] = alpha * x[i] + beta * y[i]


@njit(parallel=True, cache=True)
def multiply(x, y):
    """y = x y, element by element."""
    for i in prange(x.size):
        y[i] *= x[i]


@njit(cache=True)
def part(x, c):
    """Chunk c of a vector: the loops over it know where it begins and become vector instructions."""
    return x[c * x.size // CHUNKS:(c + 1) * x.size // CHUNKS]


@njit(cache=True)
def total(parts):
    """The sum of the parts in their order: within a parallel function ``sum`` would be shared among the threads."""
    return parts.sum()


@njit(cache=True, fastmath=FAST)
def part_dot(x, y, zero):
    """(x, y), the products in the type of ``zero``."""
    xy = zero
    for i in range(x.size):
        xy += np.conj(x[i] + zero) * y[i]
    return xy


@njit(cache=True, fastmath=FAST)
def part_norm2(x):
    """(x, x)."""
    xx = 0.0
    for i in range(x.size):
        xx += np.float64(x[i].real) * x[i].real + np.float64(x[i].imag) * x[i].imag
    return xx


@njit(parallel=True, cache=True)
def dot(x, y, out):
    """out[0] = (x, y), accumulated in double."""
    parts = np.empty(CHUNKS, out.dtype)
    for c in prange(CHUNKS):
        parts[c] = part_dot(part(x, c), part(y, c), out.dtype.type(0))
    out[0] = total(parts)


@njit(parallel=True, cache=True)
def norm(x, out):
    """out[0] = ‖x‖₂, accumulated in double."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        parts[c] = part_norm2(part(x, c))
    out[0] = np.sqrt(total(parts))


@njit(cache=True, fastmath=FAST)
def part_axpy_dots(alpha, x, y, w, zero):
    """y = alpha x + y; returns (w, y) and (y, y)."""
    wy, yy = zero, 0.0
    for i in range(x.size):
        value = alpha * x[i] + y[i]
        y[i] = value
        wy += np.conj(w[i] + zero) * value
        yy += np.float64(value.real) * value.real + np.float64(value.imag) * value.imag
    return wy, yy


@njit(parallel=True, cache=True)
def axpy_dots(alpha, x, y, w, sums):
    """y = alpha x + y with sums[0] = (w, y) and sums[1] = (y, y)."""
    wy = np.empty(CHUNKS, sums.dtype)
    yy = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        wy[c], yy[c] = part_axpy_dots(alpha, part(x, c), part(y, c), part(w, c), sums.dtype.type(0))
    sums[0] = total(wy)
    sums[1] = total(yy)


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
def random(seed, first, out):
    """out = reproducible numbers in [−1, 1): the mix of splitmix64 applied to the index, the same on every device."""
    for i in prange(out.size):
        z = np.uint64(first + i) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        out[i] = np.float64(np.int64(z >> np.uint64(11))) * 2.0**-52 - 1.0
