"""Sweeps that update each row by itself, on the CPU, in modified SELL; ``pointwise.cu`` has them for a GPU.

``slice_ptr``, ``diag``, ``entries``, ``col_idx``: the matrix in slices of ``height`` rows (formats/modified_sell.py).
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def _residual(slice_ptr, diag, entries, col_idx, b, x, zero, height, s, i):
    """Return b − A x in row i, which is in slice s; with ``zero`` x counts as 0, not read. Arguments: top of file."""
    total = b[i]
    if zero:
        return total
    first = s * height
    total -= diag[i] * x[i]
    for at in range(slice_ptr[s] + i - first, slice_ptr[s + 1], height):
        c = col_idx[at]
        if c == 0:
            break
        total -= entries[at] * x[first - c - 1 if c < 0 else c - 1]
    return total


@parallel
def jacobi(slice_ptr, diag, entries, col_idx, b, x, out, omega, zero, height):
    """out = x + ω D⁻¹ (b − A x), ω = ``omega``; with ``zero`` x counts as 0, not read. Arguments: top of file."""
    for s in prange(slice_ptr.size - 1):
        for i in range(s * height, min((s + 1) * height, diag.size)):
            step = omega * _residual(slice_ptr, diag, entries, col_idx, b, x, zero, height, np.int64(s), i) / diag[i]
            out[i] = step if zero else x[i] + step


@parallel
def chebyshev(slice_ptr, diag, entries, col_idx, b, x, out, d, coefficients, step, zero, height):
    """d = c₀ d + c₁ D⁻¹ (b − A x); out = x + d. Writes d and ``out``.

    ``coefficients``: c₀ and c₁ of each step, in turn. ``step``: number of the step; step 0 does not read d. With
    ``zero`` x counts as 0 and is not read. Arguments: top of file.
    """
    for s in prange(slice_ptr.size - 1):
        for i in range(s * height, min((s + 1) * height, diag.size)):
            r = _residual(slice_ptr, diag, entries, col_idx, b, x, zero, height, np.int64(s), i)
            move = coefficients[2 * step + 1] * (r / diag[i])
            if step:
                move += coefficients[2 * step] * d[i]
            d[i] = move
            out[i] = move if zero else x[i] + move
