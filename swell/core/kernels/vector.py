"""Vector operations shared by all methods, on a CPU; ``vector.cu`` is the GPU version.

A sum consists of CHUNKS partial sums over ``chunk_rows``. Threads compute them, and ``total`` adds them in order. The
sum therefore has the same bits for any number of threads. Numba's own reduction over a parallel loop would not: it has
one partial sum for each thread.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel

CHUNKS = 64             # partial sums of a sum
GPU_ONLY = ("collect_dots", "maximum")      # collect_dots adds the partial sums that a product on a GPU leaves
FAST = {"reassoc", "contract", "nsz"}       # sums may be reordered to vectorise; NaN and Inf keep their meaning


@parallel
def assign(alpha, out):
    """out = alpha."""
    for i in prange(out.size):
        out[i] = alpha


@parallel
def scale(alpha, x):
    """x = alpha x."""
    for i in prange(x.size):
        x[i] = alpha * x[i]


@parallel
def axpy(alpha, x, y):
    """y = alpha x + y."""
    for i in prange(x.size):
        y[i] += alpha * x[i]


@parallel
def axpby(alpha, x, beta, y):
    """y = alpha x + beta y; beta = 0 never reads y."""
    if beta == 0:
        for i in prange(x.size):
            y[i] = alpha * x[i]
    else:
        for i in prange(x.size):
            y[i] = alpha * x[i] + beta * y[i]


@parallel
def multiply(x, y):
    """y = x y, elementwise."""
    for i in prange(x.size):
        y[i] *= x[i]


@helper
def chunk_rows(n, chunk):
    """Return the range of rows of chunk number ``chunk``, when n rows are cut into CHUNKS chunks.

    With unsigned indices Numba does not test for negative ones, and can vectorise loops. ``chunk`` is made signed: the
    index of a parallel loop is sometimes unsigned, and its products with signed integers would be floating-point
    numbers."""
    chunk = np.int64(chunk)
    return range(np.uint64(chunk * n // CHUNKS), np.uint64((chunk + 1) * n // CHUNKS))


@helper
def total(parts):
    """The sum of the parts, added in order."""
    added = parts.dtype.type(0)
    for k in range(parts.size):
        added += parts[k]
    return added


@helper
def square(value):
    """|value|², in double precision."""
    return np.float64(value.real) * value.real + np.float64(value.imag) * value.imag


@parallel(fastmath=FAST)
def dot(x, y, out):
    """out[0] = (x, y), with x conjugated, accumulated in double."""
    zero = out.dtype.type(0)
    parts = np.empty(CHUNKS, out.dtype)
    for c in prange(CHUNKS):
        xy = zero
        for i in chunk_rows(x.size, c):
            xy += np.conj(x[i] + zero) * y[i]
        parts[c] = xy
    out[0] = total(parts)


@parallel(fastmath=FAST)
def norm(x, out):
    """out[0] = ‖x‖₂, accumulated in double."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        xx = 0.0
        for i in chunk_rows(x.size, c):
            xx += square(x[i])
        parts[c] = xx
    out[0] = np.sqrt(total(parts))


@parallel(fastmath=FAST)
def axpy_dots(alpha, x, y, w, sums):
    """y = alpha x + y, sums[0] = (w, y) and sums[1] = (y, y)."""
    zero = sums.dtype.type(0)
    parts = np.empty((2, CHUNKS), sums.dtype)
    for c in prange(CHUNKS):
        wy, yy = zero, 0.0
        for i in chunk_rows(x.size, c):
            value = alpha * x[i] + y[i]
            y[i] = value
            wy += np.conj(w[i] + zero) * value
            yy += square(value)
        parts[0, c], parts[1, c] = wy, yy
    sums[0], sums[1] = total(parts[0]), total(parts[1])


@parallel(fastmath=FAST)
def dots(x, y, out):
    """out[0] = (x, y), with x conjugated, and out[1] = (y, y), accumulated in double."""
    parts = np.empty((2, CHUNKS), out.dtype)
    for c in prange(CHUNKS):
        xy, yy = out.dtype.type(0), 0.0
        for i in chunk_rows(x.size, c):
            xy += np.conj(x[i]) * y[i]
            yy += (np.conj(y[i]) * y[i]).real
        parts[0, c], parts[1, c] = xy, yy
    out[0], out[1] = total(parts[0]), total(parts[1])


@parallel(fastmath=FAST)
def weighted_norm2(r, w, out):
    """out[0] = Σ w |r|²: the squared norm of the original residual, for the residual r of a scaled system."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        norm2 = 0.0
        for i in chunk_rows(r.size, c):
            norm2 += w[i] * (np.conj(r[i]) * r[i]).real
        parts[c] = norm2
    out[0] = total(parts)


@njit(cache=True)
def norm_inf(x, out):
    """out[0] = ‖x‖∞; NaN if x contains NaN."""
    most = 0.0
    for i in range(x.size):
        size = abs(x[i])
        if size > most or np.isnan(size):
            most = size
    out[0] = most


def norms(x, out):
    """out[0] = (x, x) and out[1] = ‖x‖∞; NaN if x contains NaN."""
    dots(x, x, out)
    norm_inf(x, out[1:])


@parallel
def multiply_add(d, x, out, alpha, beta):
    """out = alpha d x + beta out, elementwise; beta = 0 never reads out."""
    if beta == 0:
        for i in prange(x.size):
            out[i] = alpha * d[i] * x[i]
    else:
        for i in prange(x.size):
            out[i] = alpha * d[i] * x[i] + beta * out[i]


@parallel(fastmath=FAST)
def multiply_dots(d, x, out, w, sums):
    """out = d x elementwise, sums[0] = (w, out) and sums[1] = (out, out)."""
    parts = np.empty((2, CHUNKS), sums.dtype)
    for c in prange(CHUNKS):
        wy, yy = sums.dtype.type(0), 0.0
        for i in chunk_rows(x.size, c):
            y = d[i] * x[i]
            out[i] = y
            wy += np.conj(w[i]) * y
            yy += (np.conj(y) * y).real
        parts[0, c], parts[1, c] = wy, yy
    sums[0], sums[1] = total(parts[0]), total(parts[1])


@njit(cache=True)
def random(seed, first, out):
    """out = reproducible numbers in [−1, 1), equal on every device: splitmix64's mixing function of the index.

    ``first`` is the index of out[0] in the sequence that ``seed`` starts."""
    for i in range(out.size):
        z = np.uint64(first + i) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        out[i] = np.float64(np.int64(z >> np.uint64(11))) * 2.0**-52 - 1.0
