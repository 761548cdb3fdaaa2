"""SELL products on the CPU: chunks of slices in parallel, the rows of a slice side by side.

The layout is described in ``swell/formats/sell.py``.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CHUNKS = 64             # more than cores, so that they end together; few enough that partial sums cost nothing


@njit(cache=True)
def slice_product(ptr, base, offsets, values, high_ptr, high, x, sums, s, height):
    """sums = the products of slice s with x, one for each of its rows."""
    for i in range(height):
        sums[i] = 0
    first = np.uint64(ptr[s])
    wide = high_ptr.size > 0 and high_ptr[s] >= 0
    for e in range(ptr[s] // height, ptr[s + 1] // height):
        at = np.uint64(e) * np.uint64(height)
        column = np.uint64(base[e])
        if wide:
            up = np.uint64(high_ptr[s]) + at - first
            for i in range(np.uint64(height)):
                if offsets[at + i] != 0xFFFF or high[up + i] != 0xFFFF:
                    sums[i] += values[at + i] * x[np.uint64(offsets[at + i]) + (np.uint64(high[up + i]) << np.uint64(16))]
        else:
            for i in range(np.uint64(height)):
                if offsets[at + i] != 0xFFFF:
                    sums[i] += values[at + i] * x[column + np.uint64(offsets[at + i])]


@njit(cache=True)
def row_at(rows, place, window):
    """The row at a place of the sorted order."""
    return place if rows.size == 0 else (place // window) * window + np.int64(rows[place])


@njit(parallel=True, cache=True)
def product(ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y."""
    slices = ptr.size - 1
    for chunk in prange(CHUNKS):
        sums = np.empty(height, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            slice_product(ptr, base, offsets, values, high_ptr, high, x, sums, s, height)
            for i in range(height):
                row = row_at(rows, s * height + i, window)
                if row < y.size:
                    if beta == 0:
                        y[row] = alpha * sums[i]
                    else:
                        y[row] = alpha * sums[i] + beta * y[row]


@njit(parallel=True, cache=True)
def product_dots(ptr, base, offsets, values, rows, high_ptr, high, x, y, w, dots, height, window):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y)."""
    slices = ptr.size - 1
    wy = np.zeros(CHUNKS, dots.dtype)
    yy = np.zeros(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(height, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            slice_product(ptr, base, offsets, values, high_ptr, high, x, sums, s, height)
            for i in range(height):
                row = row_at(rows, s * height + i, window)
                if row < y.size:
                    y[row] = sums[i]
                    wy[chunk] += np.conj(w[row]) * sums[i]
                    yy[chunk] += (np.conj(sums[i]) * sums[i]).real
    dots[0] = wy.sum()
    dots[1] = yy.sum()
