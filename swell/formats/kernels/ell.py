"""ELL products on the CPU: 64 rows at a time, column by column, their sums in the L1 cache.

``swell/formats/ell.py`` describes the layout. Padding takes no branch, since no processor predicts where a row ends.
Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.vector import total

TILE = 64               # rows of a tile, which stops after its longest row
CHUNKS = 64             # more than cores, to balance the load; few enough that partial sums cost nothing


@njit(cache=True)
def tile_products(columns, values, x, sums, row, rows, width):
    """sums[:rows] = A x for ``rows`` rows from ``row`` on.

    ``columns``, ``values``: A in ELL, shape (width, pitch); [k, i] is entry k of row i. Column −1 is padding."""
    zero = sums.dtype.type(0)
    for t in range(rows):
        sums[t] = zero
    for k in range(np.uint64(width)):
        ended = np.int64(-1)
        for t in range(rows):
            column = np.int64(columns[k, row + t])
            ended &= column
            term = values[k, row + t] * x[np.uint64(column & ~(column >> np.int64(63)))]   # column 0 for padding
            sums[t] += term if column >= 0 else zero             # padding adds nothing, even if its value is NaN
        if ended == -1:                          # all rows have ended
            break


@njit(parallel=True, cache=True)
def product(columns, values, x, y, width, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    ``columns``, ``values``: A in ELL, shape (width, pitch); [k, i] is entry k of row i. Column −1 is padding."""
    tiles = -(-y.size // TILE)
    for chunk in prange(CHUNKS):
        sums = np.empty(TILE, y.dtype)
        for tile in range(chunk * tiles // CHUNKS, (chunk + 1) * tiles // CHUNKS):
            row, rows = np.uint64(tile * TILE), np.uint64(min(TILE, y.size - tile * TILE))
            tile_products(columns, values, x, sums, row, rows, width)
            for t in range(rows):
                if beta == 0:
                    y[row + t] = alpha * sums[t]
                else:
                    y[row + t] = alpha * sums[t] + beta * y[row + t]


@njit(parallel=True, cache=True)
def product_dots(columns, values, x, y, w, dots, width):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y). Writes ``y`` and ``dots``.

    ``columns``, ``values``: A in ELL, shape (width, pitch); [k, i] is entry k of row i. Column −1 is padding."""
    tiles = -(-y.size // TILE)
    wy, yy = np.empty(CHUNKS, dots.dtype), np.empty(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(TILE, y.dtype)
        a, b = dots.dtype.type(0), 0.0
        for tile in range(chunk * tiles // CHUNKS, (chunk + 1) * tiles // CHUNKS):
            row, rows = np.uint64(tile * TILE), np.uint64(min(TILE, y.size - tile * TILE))
            tile_products(columns, values, x, sums, row, rows, width)
            for t in range(rows):
                y[row + t] = sums[t]
                a += np.conj(w[row + t]) * sums[t]
                b += (np.conj(sums[t]) * sums[t]).real
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)
