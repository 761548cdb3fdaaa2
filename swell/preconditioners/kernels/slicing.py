"""Sort the rows of a triangle for its solves, and store them in slices of 32 rows; for sweeps on the CPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.preconditioners.kernels.triangular import in_triangle

SLICE = 32


def sort_keys(order, depth, bounds, indptr, window, keys):
    """Write a sort key for each place of ``order``: sorted keys put rows by descending length inside windows.

    The windows, of ``window`` rows, divide the rows of a level. depth[row] is the level of a row, from 1, and
    bounds[level − 1] the first place of the level; with an empty ``depth`` all rows are one level."""
    place, first = np.arange(order.size), bounds[depth[order] - 1] if depth.size else 0
    lengths = np.diff(indptr)[order]
    keys[:] = (first + (place - first) // window * window) * (order.size + 1) + order.size - lengths


def take_order(order, sorted, sequence, place):
    """Write sequence = order[sorted] and place[row] = the place of each row in ``sequence``."""
    sequence[:] = order[sorted]
    place[sequence] = np.arange(order.size)


@parallel
def measure_slices(indptr, indices, sequence, lower, sizes):
    """Write sizes[s] = the places that slice s needs: 32 times the strictly triangular entries of its longest row.
    Slice s has the rows sequence[32 s:32 s + 32] of the CSR matrix; ``lower`` says which triangle."""
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
    """Write ``columns`` and ``values`` of the slices, and ``inverse``, from the strict triangle of a CSR matrix.

    Entry k of the i-th row of slice s is at ptr[s] + 32 k + i. Column j gets the number place_of[j], and its values are
    multiplied by scale[j] if ``scale`` is not empty. Column −1 marks padding. inverse[p] is the scale of the row
    sequence[p], or 1."""
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
