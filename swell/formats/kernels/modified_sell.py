"""Modified SELL products on the CPU: slices in parallel, column by column, the sums of a slice in the L1 cache.

``swell/formats/modified_sell.py`` describes the layout. Entries are read in storage order: eight rows at a time, with
sums in registers, would jump by memory pages in a high slice. Columns are decoded without a branch, since no processor
predicts where a row ends. The functions are not ``inline="always"``: inlined into the parallel loop they take twice the
time. Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.vector import total

CHUNKS = 64             # more than cores, to balance the load; few enough that partial sums cost nothing


@njit(cache=True)
def column_of(code, first):
    """Return the column that ``code``, an element of ``col_idx``, stands for, or 0 for padding.

    ``first``: first row of the slice."""
    inside = code >> np.int64(63)                # all bits set, or none
    return np.uint64((code ^ inside) + (inside & (first + 1)) - (code != 0))


@njit(cache=True)
def slice_products(diag, entries, col_idx, x, sums, begin, end, height, first, rows):
    """sums[:rows] = A x for ``rows`` rows from ``first`` on, the rows of one slice of ``height`` rows.

    ``diag``: A's diagonal. The slice's other entries are begin to end − 1 of ``entries`` and ``col_idx``, laid out as
    in formats/modified_sell.py."""
    row, zero = np.uint64(first), sums.dtype.type(0)
    for t in range(rows):
        sums[t] = diag[row + t] * x[row + t] if row + t < np.uint64(x.size) else zero
    for start in range(begin, end, height):
        k = np.uint64(start)
        for t in range(rows):
            code = np.int64(col_idx[k + t])
            term = entries[k + t] * x[column_of(code, first)]
            sums[t] += term if code != 0 else zero               # padding adds nothing, even if its value is NaN


@njit(parallel=True, cache=True)
def product(slice_ptr, diag, entries, col_idx, x, y, height, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    ``slice_ptr``, ``diag``, ``entries``, ``col_idx``, ``height``: A in modified SELL (formats/modified_sell.py)."""
    slices = slice_ptr.size - 1
    for chunk in prange(CHUNKS):
        sums = np.empty(height, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            first = s * height
            rows, row = np.uint64(min(height, y.size - first)), np.uint64(first)
            slice_products(diag, entries, col_idx, x, sums, slice_ptr[s], slice_ptr[s + 1], height, first, rows)
            for t in range(rows):
                if beta == 0:
                    y[row + t] = alpha * sums[t]
                else:
                    y[row + t] = alpha * sums[t] + beta * y[row + t]


@njit(parallel=True, cache=True)
def product_dots(slice_ptr, diag, entries, col_idx, x, y, w, dots, height):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y). Writes ``y`` and ``dots``.

    ``slice_ptr``, ``diag``, ``entries``, ``col_idx``, ``height``: A in modified SELL (formats/modified_sell.py)."""
    slices = slice_ptr.size - 1
    wy, yy = np.empty(CHUNKS, dots.dtype), np.empty(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(height, y.dtype)
        a, b = dots.dtype.type(0), 0.0
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            first = s * height
            rows, row = np.uint64(min(height, y.size - first)), np.uint64(first)
            slice_products(diag, entries, col_idx, x, sums, slice_ptr[s], slice_ptr[s + 1], height, first, rows)
            for t in range(rows):
                y[row + t] = sums[t]
                a += np.conj(w[row + t]) * sums[t]
                b += (np.conj(sums[t]) * sums[t]).real
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)
