"""Entries of a CSR matrix to their places in parts, on the CPU; ``parts.cu`` is the same on a GPU."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def write_entries(indptr, indices, data, slot, start, local, chunk, apart, values, columns):
    """The values of the entries, without the diagonal where that is ``apart``; and their local columns, where ``local``
    gives one for each."""
    size = data.itemsize
    for row in range(indptr.size - 1):
        k = 0
        for e in range(indptr[row], indptr[row + 1]):
            if apart and indices[e] == row:
                continue
            column = start[slot[row] // 32] + k
            of_chunk, inside = column // chunk * chunk, column % chunk * 32 + slot[row] % 32
            values[of_chunk * (32 + 64 // size) + inside] = data[e]
            if local.size:
                columns[of_chunk * (16 * size + 32) + chunk * 16 * size + inside] = local[e]
            k += 1
