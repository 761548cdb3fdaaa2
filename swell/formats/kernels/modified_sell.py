"""Modified SELL products on the CPU: chunks of slices in parallel, 32 rows of a slice at a time, column by column.

The layout is described in ``swell/formats/modified_sell.py``. Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CHUNKS = 64             # more than cores, so that they end together; few enough that partial sums cost nothing
TILE = 32               # rows that stop together, as a warp's do


@njit(cache=True, inline="always")
def column_of(code, first):
    """The column behind a code that is not padding, in the slice that begins with row ``first``."""
    return np.uint64(first - code - 1 if code < 0 else code - 1)


@njit(cache=True)
def tile_products(diag, entries, col_idx, x, sums, begin, end, height, first, tile, rows):
    """sums = the products of ``rows`` rows from place ``tile`` on, in the slice of entries begin to end."""
    for t in range(rows):
        row = first + tile + t
        sums[t] = diag[row] * x[row] if row < x.size else sums.dtype.type(0)
    for start in range(begin + tile, end, height):
        going = False
        for t in range(rows):
            code = col_idx[np.uint64(start + t)]
            if code != 0:                        # padding ends a row, and its value is never used
                sums[t] += entries[np.uint64(start + t)] * x[column_of(code, first)]
                going = True
        if not going:
            return


@njit(parallel=True, cache=True)
def product(slice_ptr, diag, entries, col_idx, x, y, height, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y."""
    slices = slice_ptr.size - 1
    for chunk in prange(CHUNKS):
        sums = np.empty(TILE, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            first = s * height
            for tile in range(0, min(height, y.size - first), TILE):
                rows = min(TILE, height - tile, y.size - first - tile)
                tile_products(diag, entries, col_idx, x, sums, slice_ptr[s], slice_ptr[s + 1], height, first, tile, rows)
                for t in range(rows):
                    if beta == 0:
                        y[first + tile + t] = alpha * sums[t]
                    else:
                        y[first + tile + t] = alpha * sums[t] + beta * y[first + tile + t]


@njit(parallel=True, cache=True)
def product_dots(slice_ptr, diag, entries, col_idx, x, y, w, dots, height):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y)."""
    slices = slice_ptr.size - 1
    wy = np.zeros(CHUNKS, dots.dtype)
    yy = np.zeros(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(TILE, y.dtype)
        a, b = dots.dtype.type(0), 0.0
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            first = s * height
            for tile in range(0, min(height, y.size - first), TILE):
                rows = min(TILE, height - tile, y.size - first - tile)
                tile_products(diag, entries, col_idx, x, sums, slice_ptr[s], slice_ptr[s + 1], height, first, tile, rows)
                for t in range(rows):
                    y[first + tile + t] = sums[t]
                    a += np.conj(w[first + tile + t]) * sums[t]
                    b += (np.conj(sums[t]) * sums[t]).real
        wy[chunk], yy[chunk] = a, b
    dots[0] = wy.sum()
    dots[1] = yy.sum()
