"""Crout's method with elements in parallel, a column and a row or a front at a time, on the CPU; ``parallel_crout.cu``
is the same on a GPU."""
from __future__ import annotations

from numba import njit, prange

from swell.dense.kernels.pivoting import pick_pivot, swap_rows


@njit(parallel=True, cache=True)
def column_step(lu, row, column, j, first, x, threads, n, tiles):
    """l[i, j] for i >= j (1.11), where steps before ``first`` have been subtracted; ``x`` rows a tile, ``tiles`` has
    one entry more than there are."""
    for tile in prange(tiles.size - 1):
        for i in range(j + tile * x, min(j + (tile + 1) * x, n)):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[i * row + k * column] * lu[k * row + j * column]
            lu[i * row + j * column] -= total


@njit(parallel=True, cache=True)
def row_step(lu, row, column, j, first, left, x, threads, n, tiles):
    """u[j, i] for ``left`` <= i < n (1.12), tiles of ``x`` columns; where l[j, j] = 0 there is no division, and no
    success."""
    diagonal = lu[j * (row + column)]
    for tile in prange(tiles.size - 1):
        for i in range(left + tile * x, min(left + (tile + 1) * x, n)):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[j * row + k * column] * lu[k * row + i * column]
            value = lu[j * row + i * column] - total
            lu[j * row + i * column] = value / diagonal if diagonal != 0 else value


@njit(cache=True)
def front(lu, row, column, first, size, pivot, x, tolerance, n, pivots):
    """Columns ``first`` to ``first + size`` of L, and U between them, with pivots; steps before ``first`` have been
    subtracted."""
    for j in range(first, first + size):
        for i in range(j, n):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[i * row + k * column] * lu[k * row + j * column]
            lu[i * row + j * column] -= total
        if pivot:
            pick_pivot(lu, row, column, j, tolerance, n, pivots)
            swap_rows(lu, row, column, j, n, pivots)
        diagonal = lu[j * (row + column)]
        for i in range(j + 1, first + size):
            total = lu.dtype.type(0)
            for k in range(first, j):
                total += lu[j * row + k * column] * lu[k * row + i * column]
            value = lu[j * row + i * column] - total
            lu[j * row + i * column] = value / diagonal if diagonal != 0 else value


@njit(parallel=True, cache=True)
def beside(lu, row, column, first, size, left, x, threads, n, tiles):
    """The front's rows of U, columns ``left`` to n."""
    for tile in prange(tiles.size - 1):
        for i in range(first, first + size):
            diagonal = lu[i * (row + column)]
            for j in range(left + tile * x, min(left + (tile + 1) * x, n)):
                total = lu.dtype.type(0)
                for k in range(first, i):
                    total += lu[i * row + k * column] * lu[k * row + j * column]
                value = lu[i * row + j * column] - total
                lu[i * row + j * column] = value / diagonal if diagonal != 0 else value
