"""Dense blocks in the pattern of a CSR matrix, found on the CPU; ``block_layout.cu`` is the same on a GPU.

The rows of a block row, whose columns ascend, are merged: the next block is the least that one of them has.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel


@njit(cache=True)
def next_block(indices, at, last, size, none):
    """The least block column of the rows at hand, whose next entries are at ``at``; ``none`` where all have ended."""
    least = none
    for r in range(at.size):
        if at[r] < last[r]:
            least = min(least, np.int64(indices[at[r]]) // size)
    return least


@parallel
def count_blocks(indptr, indices, size, block_rows, none, counts, entries):
    """How many blocks of ``size`` hold entries of a block row, and how many entries they hold, of as many block rows as
    there are counts, spread evenly over all ``block_rows``; ``none``: more than all block columns."""
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
    """The block columns, ascending in each block row, and where each entry lies in the blocks, row-major."""
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
