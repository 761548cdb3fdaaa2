"""Sort the rows of a triangle for its solves, and store them in slices of 32 rows; for sweeps on the CPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.preconditioners.kernels.triangular import in_triangle

SLICE = 32


def sort_keys(order, depth, bounds, indptr, window, keys):
    """keys = sort keys of the places of ``order``: by descending row length inside windows. The windows divide the rows
    of a level; with an empty ``depth`` they divide all rows."""
    place, first = np.arange(order.size), bounds[depth[order] - 1] if depth.size else 0
    lengths = np.diff(indptr)[order]
    keys[:] = (first + (place - first) // window * window) * (order.size + 1) + order.size - lengths


def take_order(order, sorted, sequence, place):
    """sequence = order[sorted]; place = the place of each row in ``sequence``."""
    sequence[:] = order[sorted]
    place[sequence] = np.arange(order.size)


@parallel
def measure_slices(indptr, indices, sequence, lower, sizes):
    """sizes = the places of each slice: 32 times the strictly triangular entries of its longest row."""
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
    """Fill the slices with the entries of the strict triangle, columns multiplied by ``scale`` if it is not empty;
    column −1 marks padding."""
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
