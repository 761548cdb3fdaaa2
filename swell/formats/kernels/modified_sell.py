"""Modified SELL products on the CPU: chunks of slices in parallel, 64 rows of a slice at a time, column by column.

The layout is described in ``swell/formats/modified_sell.py``. Sums stay in the first cache, and entries are read in the
order in which they lie: across the columns of a high slice, sums in registers would jump by pages. Unsigned indices spare
Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CHUNKS = 64             # more than cores, so that they end together; few enough that partial sums cost nothing
TILE = 64               # rows that stop together


@njit(cache=True, inline="always")
def tile_products(diag, entries, col_idx, x, sums, begin, end, height, first, i, rows):
    """sums = the products of ``rows`` rows from ``first + i`` on, in the slice of entries begin to end."""
    row = np.uint64(first + i)
    for t in range(rows):
        sums[t] = diag[row + t] * x[row + t] if row + t < np.uint64(x.size) else 0
    for start in range(begin + i, end, height):
        k, going = np.uint64(start), col_idx.dtype.type(0)
        for t in range(rows):
            code = col_idx[k + t]
            going |= code
            if code != 0:                        # padding: its value is never used
                sums[t] += entries[k + t] * x[np.uint64(first - code - 1 if code < 0 else code - 1)]
        if going == 0:                           # all rows have ended
            break


@njit(parallel=True, cache=True)
def product(slice_ptr, diag, entries, col_idx, x, y, height, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y."""
    slices = slice_ptr.size - 1
    for chunk in prange(CHUNKS):
        sums = np.empty(TILE, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            begin, end, first = slice_ptr[s], slice_ptr[s + 1], s * height
            for i in range(0, min(height, y.size - first), TILE):
                rows, row = np.uint64(min(TILE, height - i, y.size - first - i)), np.uint64(first + i)
                tile_products(diag, entries, col_idx, x, sums, begin, end, height, first, i, rows)
                for t in range(rows):
                    if beta == 0:
                        y[row + t] = alpha * sums[t]
                    else:
                        y[row + t] = alpha * sums[t] + beta * y[row + t]


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
            begin, end, first = slice_ptr[s], slice_ptr[s + 1], s * height
            for i in range(0, min(height, y.size - first), TILE):
                rows, row = np.uint64(min(TILE, height - i, y.size - first - i)), np.uint64(first + i)
                tile_products(diag, entries, col_idx, x, sums, begin, end, height, first, i, rows)
                for t in range(rows):
                    y[row + t] = sums[t]
                    a += np.conj(w[row + t]) * sums[t]
                    b += (np.conj(sums[t]) * sums[t]).real
        wy[chunk], yy[chunk] = a, b
    dots[0] = wy.sum()
    dots[1] = yy.sum()
