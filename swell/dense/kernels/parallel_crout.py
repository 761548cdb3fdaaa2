"""A column and a row of Crout's method, their elements in parallel, on the CPU; ``parallel_crout.cu`` is the same on a GPU."""
from __future__ import annotations

from numba import njit, prange


@njit(parallel=True, cache=True)
def column_step(lu, row, column, j, first, x, threads, n, tiles):
    """l[i, j] for i >= j (1.11), where steps before ``first`` have been subtracted; ``x`` rows a tile, ``tiles`` has one
    entry more than there are."""
    for tile in prange(tiles.size - 1):
        for i in range(j + tile * x, min(j + (tile + 1) * x, n)):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[i * row + k * column] * lu[k * row + j * column]
            lu[i * row + j * column] -= total


@njit(parallel=True, cache=True)
def row_step(lu, row, column, j, first, left, x, threads, n, tiles):
    """u[j, i] for ``left`` <= i < n (1.12), tiles of ``x`` columns; where l[j, j] = 0 there is no division, and no success."""
    diagonal = lu[j * (row + column)]
    for tile in prange(tiles.size - 1):
        for i in range(left + tile * x, min(left + (tile + 1) * x, n)):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[j * row + k * column] * lu[k * row + i * column]
            value = lu[j * row + i * column] - total
            lu[j * row + i * column] = value / diagonal if diagonal != 0 else value
