"""Staircase SELL on the CPU: its layout, and products over chunks of slices in parallel, entries read in storage order.

``swell/formats/staircase_sell.py`` describes the layout. Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.vector import total

CHUNKS = 64             # more than cores, to balance the load; few enough that partial sums cost nothing
HEIGHT = 32


@njit(cache=True, _nrt=False)
def entries_at(indptr, order, place):
    """Return (first entry, number of entries, row) of the row at ``place`` of the sorted order, all uint64.

    ``indptr``: CSR row pointers. ``order``: the row at each place; an empty one is the identity."""
    i = np.uint64(order[place]) if order.size else place
    if i + np.uint64(1) >= np.uint64(indptr.size):
        return np.uint64(0), np.uint64(0), i
    begin = np.uint64(indptr[i])
    return begin, np.uint64(indptr[i + np.uint64(1)]) - begin, i


@njit(parallel=True, cache=True)
def place_entries(indptr, indices, data, order, ptr, base_ptr, base, high_ptr, values, offsets, high):
    """Write a CSR matrix (first three arrays) into the arrays of staircase SELL: ``values``, ``offsets``, ``high``.

    ``order`` is the row at each place. The other arguments are arrays of formats/staircase_sell.py that are known
    already."""
    for s in prange(ptr.size - 1):
        wide = high_ptr.size > 0 and high_ptr[s] >= 0
        at, up = np.uint64(ptr[s]), np.uint64(high_ptr[s] if wide else 0)
        count, first = HEIGHT, np.int64(s) * HEIGHT
        for k in range(np.uint64(base_ptr[s + 1] - base_ptr[s])):
            least = base[np.uint64(base_ptr[s]) + k]
            while entries_at(indptr, order, np.uint64(first + count - 1))[1] <= k:
                count -= 1
            for lane in range(count):
                entry = entries_at(indptr, order, np.uint64(first + lane))[0] + k
                offset = indices[entry] - least
                values[at], offsets[at] = data[entry], offset & 0xFFFF
                if wide:
                    high[up] = offset >> 16
                    up += np.uint64(1)
                at += np.uint64(1)


@njit(cache=True, inline="always")
def slice_products(ptr, base_ptr, lengths, base, offsets, values, high_ptr, high, x, sums, s):
    """sums = A x for the rows of slice s. The arrays from ``ptr`` to ``high`` hold A in staircase SELL
    (formats/staircase_sell.py)."""
    first = np.uint64(s) * np.uint64(HEIGHT)
    sums[:] = 0
    at, e, count = np.uint64(ptr[s]), np.uint64(base_ptr[s]), np.uint64(HEIGHT)
    wide = high_ptr.size > 0 and high_ptr[s] >= 0
    up = np.uint64(high_ptr[s] if wide else 0)                   # index of the upper half of the entry at ``at``
    for k in range(np.uint64(lengths[first])):
        while lengths[first + count - np.uint64(1)] <= k:
            count -= np.uint64(1)
        least = np.uint64(base[e + k])
        if wide:
            for i in range(count):
                column = np.uint64(offsets[at + i]) + (np.uint64(high[up + i]) << np.uint64(16))
                sums[i] += values[at + i] * x[column]
            up += count
        else:
            for i in range(count):
                sums[i] += values[at + i] * x[least + np.uint64(offsets[at + i])]
        at += count


@njit(cache=True)
def row_at(rows, place, window):
    """Return the row at a place of the sorted order; ``rows`` holds row numbers inside windows of ``window`` rows.

    An empty ``rows`` is the identity. ``window`` is a power of two."""
    return place if rows.size == 0 else (place & ~np.uint64(window - 1)) + np.uint64(rows[place])


@njit(parallel=True, cache=True)
def product(ptr, base_ptr, lengths, base, offsets, values, rows, high_ptr, high, x, y, window, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    The arrays from ``ptr`` to ``high`` are A, laid out as in formats/staircase_sell.py. ``window``: rows sorted
    together."""
    slices = ptr.size - 1
    for chunk in prange(CHUNKS):
        sums = np.empty(HEIGHT, y.dtype)
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            slice_products(ptr, base_ptr, lengths, base, offsets, values, high_ptr, high, x, sums, s)
            for i in range(HEIGHT):
                row = row_at(rows, np.uint64(s * HEIGHT + i), window)
                if row < np.uint64(y.size):
                    if beta == 0:
                        y[row] = alpha * sums[i]
                    else:
                        y[row] = alpha * sums[i] + beta * y[row]


@njit(parallel=True, cache=True)
def product_dots(ptr, base_ptr, lengths, base, offsets, values, rows, high_ptr, high, x, y, w, dots, window):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y). Writes ``y`` and ``dots``.

    The arrays from ``ptr`` to ``high`` hold A in staircase SELL (formats/staircase_sell.py). ``window``: rows sorted
    together."""
    slices = ptr.size - 1
    wy, yy = np.empty(CHUNKS, dots.dtype), np.empty(CHUNKS)
    for chunk in prange(CHUNKS):
        sums = np.empty(HEIGHT, y.dtype)
        a, b = dots.dtype.type(0), 0.0
        for s in range(chunk * slices // CHUNKS, (chunk + 1) * slices // CHUNKS):
            slice_products(ptr, base_ptr, lengths, base, offsets, values, high_ptr, high, x, sums, s)
            for i in range(HEIGHT):
                row = row_at(rows, np.uint64(s * HEIGHT + i), window)
                if row < np.uint64(y.size):
                    y[row] = sums[i]
                    a += np.conj(w[row]) * sums[i]
                    b += (np.conj(sums[i]) * sums[i]).real
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)
