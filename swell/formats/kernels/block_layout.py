"""Dense blocks in the pattern of a CSR matrix, found on the CPU; ``block_layout.cu`` is for GPUs.

The rows of a block row, whose columns ascend, are merged: the next block is the smallest block column left in any row.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def next_block(indices, at, last, size, none):
    """Return the smallest block column of the entries ``at[r]`` of the rows r of a block row; ``none`` if all ended.

    ``indices``: CSR columns. Row r has ended when at[r] = last[r]. ``size``: block size."""
    least = none
    for r in range(at.size):
        if at[r] < last[r]:
            least = min(least, np.int64(indices[at[r]]) // size)
    return least


@parallel
def count_blocks(indptr, indices, size, block_rows, none, counts, entries):
    """Write, for each visited block row, the number of nonempty blocks (``counts``) and of entries (``entries``).

    ``indptr``, ``indices``: CSR pattern. ``size``: block size. ``counts.size`` block rows are visited, spread evenly
    over all ``block_rows``. ``none`` is a number greater than every block column."""
    n = indptr.size - 1
    for p in prange(counts.size):
        first = np.int64(p) * block_rows // counts.size * size
        at, last = indptr[first:min(first + size, n)].copy(), indptr[first + 1:min(first + size, n) + 1]
        column, count = next_block(indices, at, last, size, none), 0
        while column < none:
            count += 1
            for r in range(at.size):
                while at[r] < last[r] and indices[at[r]] < (column + 1) * size:
                    at[r] += 1
            column = next_block(indices, at, last, size, none)
        counts[p] = count
        entries[p] = last[-1] - indptr[first] if at.size else 0


@parallel
def place_blocks(indptr, indices, size, none, ptr, columns, positions):
    """Write ``columns``, the block columns, ascending in each block row, and ``positions`` of the entries.

    ``indptr``, ``indices``: CSR pattern. ``size``: block size. ``none``: a number greater than every block column.
    ``ptr``: block row pointers. ``positions``: index of each entry in row-major blocks that lie one after the other."""
    n = indptr.size - 1
    for p in prange(ptr.size - 1):
        first, block = np.int64(p) * size, np.int64(ptr[p])
        at, last = indptr[first:min(first + size, n)].copy(), indptr[first + 1:min(first + size, n) + 1]
        column = next_block(indices, at, last, size, none)
        while column < none:
            columns[block] = column
            for r in range(at.size):
                while at[r] < last[r] and indices[at[r]] < (column + 1) * size:
                    positions[at[r]] = (block * size + r) * size + indices[at[r]] - column * size
                    at[r] += 1
            block += 1
            column = next_block(indices, at, last, size, none)
