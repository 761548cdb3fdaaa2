"""Rows of a triangle sorted for its solves, and stored in slices of 32 rows; for sweeps on the CPU, as on a GPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.preconditioners.kernels.triangular import in_triangle

SLICE = 32


def sort_keys(order, depth, bounds, indptr, window, keys):
    """What sorts the places of ``order`` by descending length of their rows, in windows of the places from the first on
    with which each may change: those of its level, or all where there is no ``depth``."""
    place, first = np.arange(order.size), bounds[depth[order] - 1] if depth.size else 0
    lengths = np.diff(indptr)[order]
    keys[:] = (first + (place - first) // window * window) * (order.size + 1) + order.size - lengths


def take_order(order, sorted, sequence, place):
    """sequence = order[sorted], and where each row is in it."""
    sequence[:] = order[sorted]
    place[sequence] = np.arange(order.size)


@parallel
def measure_slices(indptr, indices, sequence, lower, sizes):
    """The places of each slice: as many for each of its rows as the longest has entries in the strict triangle."""
    for s in prange(sizes.size):
        longest = 0
        for p in range(s * SLICE, min(sequence.size, (s + 1) * SLICE)):
            row, length = np.int64(sequence[p]), 0
            for k in range(indptr[row], indptr[row + 1]):
                length += in_triangle(row, np.int64(indices[k]), lower)
            longest = max(longest, length)
        sizes[s] = SLICE * longest


@parallel
def fill_slices(indptr, indices, data, scale, sequence, place_of, lower, ptr, columns, values, inverse):
    """The entries of the strict triangle in slices, scaled by columns with ``scale`` where it is given; column −1 is
    padding."""
    for s in prange(ptr.size - 1):
        columns[ptr[s]:ptr[s + 1]] = -1
        values[ptr[s]:ptr[s + 1]] = 0
        for p in range(s * SLICE, min(sequence.size, (s + 1) * SLICE)):
            row, at = np.int64(sequence[p]), np.int64(ptr[s]) + p % SLICE
            for k in range(indptr[row], indptr[row + 1]):
                j = np.int64(indices[k])
                if in_triangle(row, j, lower):
                    columns[at] = place_of[j]
                    values[at] = data[k] * scale[j] if scale.size else data[k]
                    at += SLICE
            inverse[p] = scale[row] if scale.size else 1
