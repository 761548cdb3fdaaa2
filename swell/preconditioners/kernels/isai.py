"""Sparse approximate inverses of triangular matrices on the CPU, threads sharing the rows; see isai.py one folder up.
Single entries are blocks of 1. Blocks are row-major; ``blocks``, ``inverse`` and ``values`` are flat arrays."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import CONTRACT, helper, parallel


@helper
def in_triangle(i, j, lower):
    """True if entry (i, j) is strictly inside the triangle: below the diagonal if ``lower``, else above it."""
    return j < i if lower else j > i


@helper
def find(columns, begin, end, column):
    """Return the place of ``column`` in the sorted columns[begin:end], or ``end``."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < end and columns[low] == column else end


@parallel(fastmath=CONTRACT)
def approximate(indptr, indices, blocks, inverse, first, last, columns, values, block, lower):
    """Write ``values`` = W with (W T)ᵢⱼ = δᵢⱼ on the pattern of W; row i of W has the places first[i] to last[i] − 1 of
    ``columns``.

    ``indptr``, ``indices`` and ``blocks`` are T, in blocks of ``block`` rows; ``lower`` says which triangle of T is
    used. ``inverse``: the inverse diagonal blocks of T; empty for a unit triangle. From the diagonal outwards, each
    known entry of row i, at column r, times row r of T is subtracted from the unknown entries."""
    area = block * block
    for i in prange(first.size):
        begin, end = first[i], last[i]
        values[begin * area:end * area] = 0
        diagonal = (end - 1 if lower else begin) * area
        for c in range(block):
            values[diagonal + c * (block + 1)] = 1
        row = np.empty(block, values.dtype)
        for step in range(end - begin):
            k = end - 1 - step if lower else begin + step
            r, own = columns[k], k * area
            if inverse.size:
                for a in range(own, own + area, block):
                    for c in range(block):
                        row[c] = 0
                        for t in range(block):
                            row[c] += values[a + t] * inverse[r * area + t * block + c]
                    values[a:a + block] = row
            for at in range(indptr[r], indptr[r + 1]):
                if not in_triangle(r, indices[at], lower):
                    continue
                p = find(columns, begin, end, indices[at])
                if p == end:
                    continue
                for a in range(block):
                    for t in range(block):
                        w = values[own + a * block + t]
                        for c in range(block):
                            values[p * area + a * block + c] -= w * blocks[at * area + t * block + c]
