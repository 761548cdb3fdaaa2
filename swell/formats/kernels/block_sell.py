"""Block SELL products on the CPU: slices in parallel, their sums in the L1 cache; a column of a block is one vector.

``swell/formats/block_sell.py`` describes the layout. ``block`` is a tuple with as many numbers as a block has rows, so
that the compiler knows the block size and unrolls the loops. If it is empty, the shape of ``values`` gives the size.
Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.vector import total

CHUNKS = 64             # more than cores, to balance the load; few enough that partial sums cost nothing


@njit(cache=True, inline="always", fastmath={"contract"})
def add_block(values, x, sums, e, t, j, size, width):
    """sums[t:t + size] += B x[j:j + width] for one block B; writes ``sums``, the row sums of one slice.

    B[r, c] is values[e, c, t + r]. ``width``: columns of B inside the matrix, usually ``size``."""
    for c in range(width):
        xc = x[j + c]
        for r in range(size):
            sums[t + r] += values[e, c, t + r] * xc


@njit(cache=True, inline="always", fastmath={"contract"})
def slice_products(ptr, columns, values, x, sums, height, block, s):
    """sums = A x for the rows of slice s.

    ``ptr``, ``columns``, ``values``, ``height``: A in block SELL (formats/block_sell.py). ``block``: a tuple whose
    length is the block size; empty: not fixed at compilation."""
    size = np.uint64(len(block)) if len(block) > 0 else np.uint64(values.shape[1])
    whole = np.int64(np.uint64(x.size) // size)
    sums[:] = 0
    for e in range(np.uint64(ptr[s]) // height, np.uint64(ptr[s + np.uint64(1)]) // height):
        for i in range(height):
            j = np.int64(columns[e * height + i])
            if j >= whole:                       # the last block column, which reaches past the end of x
                add_block(values, x, sums, e, i * size, np.uint64(j) * size, size, np.uint64(x.size) % size)
            elif j >= 0:
                add_block(values, x, sums, e, i * size, np.uint64(j) * size, size, size)


@njit(parallel=True, cache=True, fastmath={"contract"})
def product(ptr, columns, values, x, y, height, block, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    ``ptr``, ``columns``, ``values``, ``height``: A in block SELL, laid out as in formats/block_sell.py. ``block``: a
    tuple whose length is the block size, known at compilation; an empty one takes the size from ``values``."""
    slices, high, rows = ptr.size - 1, np.uint64(height), np.uint64(values.shape[2])
    for chunk in prange(CHUNKS):
        sums = np.empty(values.shape[2], y.dtype)
        for s in range(np.uint64(chunk * slices // CHUNKS), np.uint64((chunk + 1) * slices // CHUNKS)):
            slice_products(ptr, columns, values, x, sums, high, block, s)
            row = s * rows
            for t in range(min(rows, np.uint64(y.size) - row)):
                if beta == 0:
                    y[row + t] = alpha * sums[t]
                else:
                    y[row + t] = alpha * sums[t] + beta * y[row + t]


@njit(parallel=True, cache=True, fastmath={"contract"})
def product_dots(ptr, columns, values, x, y, w, dots, height, block):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y). Writes ``y`` and ``dots``.

    ``ptr``, ``columns``, ``values``, ``height``: A in block SELL (formats/block_sell.py). ``block``: a tuple whose
    length is the block size; empty: not fixed at compilation."""
    slices, high, rows = ptr.size - 1, np.uint64(height), np.uint64(values.shape[2])
    wy, yy = np.empty(CHUNKS, dots.dtype), np.empty(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(values.shape[2], y.dtype)
        a, b = dots.dtype.type(0), 0.0
        for s in range(np.uint64(chunk * slices // CHUNKS), np.uint64((chunk + 1) * slices // CHUNKS)):
            slice_products(ptr, columns, values, x, sums, high, block, s)
            row = s * rows
            for t in range(min(rows, np.uint64(y.size) - row)):
                y[row + t] = sums[t]
                a += np.conj(w[row + t]) * sums[t]
                b += (np.conj(sums[t]) * sums[t]).real
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)
