"""The two projections of deflation on the CPU; ``deflation.cu`` is the GPU's version.

The rows of V, U and W are vectors in single precision. All other arrays, and all arithmetic, have the system's
precision.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.vector import FAST

TILE = 2048             # rows in a tile: tiles of a vector and four rows fit in the cache of a core
# A tile is a view with indices from 0. Numba tests other indices for their sign, which prevents vectorised loops.


@njit(cache=True, inline="always")
def four_rows(V, i, end, lo, hi):
    """Return four views: columns ``lo`` to ``hi`` of rows i to i + 3 of V. Row end − 1 replaces those from ``end``
    on."""
    last = end - 1
    return V[i, lo:hi], V[min(i + 1, last), lo:hi], V[min(i + 2, last), lo:hi], V[min(i + 3, last), lo:hi]


@njit(cache=True, inline="always")
def four_weights(c, i, end):
    """Return the entries c_i to c_{i+3} of the vector c; zeros replace the entries from ``end`` on."""
    none = c.dtype.type(0)
    return (c[i], c[i + 1] if i + 1 < end else none, c[i + 2] if i + 2 < end else none,
            c[i + 3] if i + 3 < end else none)


@njit(cache=True, inline="always")
def add_tile(V, y, lo, hi, out, conjugate):
    """Add to ``out``, in place, Σ y_j V_j in the entries ``lo`` to ``hi`` − 1 of the rows V_j; with ``conjugate``, Σ
    conj(y_j V_j). ``out`` has these hi − lo entries only."""
    if conjugate:                                # conj(conj(out) + Σ y_j V_j)
        for k in range(hi - lo):
            out[k] = np.conj(out[k])
    for j in range(0, y.size, 4):
        v0, v1, v2, v3 = four_rows(V, j, y.size, lo, hi)
        y0, y1, y2, y3 = four_weights(y, j, y.size)
        for k in range(hi - lo):
            out[k] += y0 * v0[k] + y1 * v1[k] + y2 * v2[k] + y3 * v3[k]
    if conjugate:
        for k in range(hi - lo):
            out[k] = np.conj(out[k])


@parallel(fastmath=FAST)
def dots(V, x, sums, conjugate):
    """Write sums[j] = the product of row j of V with x, Σ V_jk x_k; with ``conjugate``, Σ conj(V_jk) x_k."""
    n = x.size
    tiles = (n + TILE - 1) // TILE
    parts = min(tiles, 64)
    partial = np.zeros((parts, sums.size), sums.dtype)
    for part in prange(parts):
        mine = partial[part]
        for tile in range(part * tiles // parts, (part + 1) * tiles // parts):
            lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
            z = np.conj(x[lo:hi]) if conjugate else x[lo:hi]
            for j in range(0, sums.size, 4):
                v0, v1, v2, v3 = four_rows(V, j, sums.size, lo, hi)
                a0 = a1 = a2 = a3 = sums.dtype.type(0)
                for k in range(hi - lo):
                    zk = z[k]
                    a0 += v0[k] * zk
                    a1 += v1[k] * zk
                    a2 += v2[k] * zk
                    a3 += v3[k] * zk
                for k, a in enumerate((a0, a1, a2, a3)):
                    if j + k < sums.size:
                        mine[j + k] += a
    sums[:] = 0
    for part in range(parts):
        for j in range(sums.size):
            sums[j] += np.conj(partial[part, j]) if conjugate else partial[part, j]


@njit(cache=True)
def coefficients(inverse, sums, y, again):
    """Write y = E⁻¹ s; if ``again``, y = y − E⁻¹ s with the y on entry. ``inverse`` is E⁻¹, k × k; ``sums`` is s."""
    for i in range(y.size):
        total = y[i] if again else y.dtype.type(0)
        sign = -1 if again else 1
        for j in range(y.size):
            total += sign * inverse[i, j] * sums[j]
        y[i] = total


@parallel(fastmath=FAST)
def subtract(W, y, x, out, conjugate):
    """Write out = x − Σ y_j W_j, with the rows W_j of W; with ``conjugate``, the conjugates of W_j."""
    n = x.size
    minus = -np.conj(y) if conjugate else -y
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        out[lo:hi] = x[lo:hi]
        add_tile(W, minus, lo, hi, out[lo:hi], conjugate)


@parallel(fastmath=FAST)
def correct(U, y, z, out, alpha, beta, conjugate):
    """Write out = α (z + Σ y_j U_j) + β out, with the rows U_j of U; with ``conjugate``, the conjugates of U_j.
    Overwrites z. β = 0 never reads out."""
    n = z.size
    weights = np.conj(y) if conjugate else y
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        mine, there = z[lo:hi], out[lo:hi]
        add_tile(U, weights, lo, hi, mine, conjugate)
        for k in range(hi - lo):
            there[k] = alpha * mine[k] if beta == 0 else alpha * mine[k] + beta * there[k]


@parallel
def polynomial(P0, P1, P2, t, W):
    """Write W = P₀ + t P₁ + t² P₂, arrays of one shape; t is a number."""
    for j in prange(W.shape[0]):
        p0, p1, p2, w = P0[j], P1[j], P2[j], W[j]
        for k in range(w.size):
            w[k] = p0[k] + t * (p1[k] + t * p2[k])
