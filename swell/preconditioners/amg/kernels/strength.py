"""Strength of connection on the CPU, threads sharing the rows; see strength.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel


@parallel
def strong_links(indptr, indices, data, least, most, max_row_sum, strong):
    """Write strong[k] = 1 if entry k is a strong link, else 0.

    It is one if −aᵢⱼ ≥ θᵢ maxₖ(−aᵢₖ) with j ≠ i, in a row with |Σⱼ aᵢⱼ| ≤ ``max_row_sum`` aᵢᵢ. θᵢ is twice the sum of
    the positive over the sum of the negative off-diagonal entries, but at least ``least`` and at most ``most``."""
    for i in prange(indptr.size - 1):
        diagonal = total = positive = largest = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value, own = data[np.uint64(k)], indices[np.uint64(k)] == i
            total += value
            positive += 0.0 if own else max(value, 0.0)
            diagonal = value if own else diagonal
            largest = -value if (not own) & (-value > largest) else largest
        negative = positive + diagonal - total
        ratio = 2 * positive / negative if negative > 0 else most
        theta = min(max(ratio, least), most)
        linked = (largest > 0) & (abs(total) <= max_row_sum * diagonal)
        for k in range(indptr[i], indptr[i + 1]):
            value, own = data[np.uint64(k)], indices[np.uint64(k)] == i
            strong[np.uint64(k)] = linked & (not own) & (value < 0) & (-value >= theta * largest)


@parallel
def positive_rows(indptr, indices, data, bound, marked):
    """Write marked[i] = 1 if row i has an entry aᵢⱼ > ``bound`` aᵢᵢ off its diagonal, else 0."""
    for i in prange(indptr.size - 1):
        diagonal = largest = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                diagonal = data[k]
            else:
                largest = max(largest, data[k])
        marked[i] = largest > bound * diagonal


@parallel
def with_neighbours(indptr, indices, marked, forced):
    """Write forced[i] = 1 if row i, or a column of one of its entries, is marked in ``marked``, else 0."""
    for i in prange(indptr.size - 1):
        found = marked[i]
        for k in range(indptr[i], indptr[i + 1]):
            found |= marked[indices[k]]
        forced[i] = found
