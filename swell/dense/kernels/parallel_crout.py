"""Crout's method with elements in parallel, a column and a row or a front at a time, on the CPU; ``parallel_crout.cu``
is the GPU's version. The functions for fronts handle many matrices, which are n * n elements apart."""
from __future__ import annotations

from numba import njit, prange

from swell.core.compiled import parallel
from swell.dense.kernels.crout import remainder
from swell.dense.kernels.pivoting import pivot_of_column


@parallel
def column_step(lu, row, column, j, first, x, threads, n, tiles):
    """Compute l[i, j] for i >= j (1.11), ``x`` rows a tile. Steps before ``first`` have been subtracted. ``tiles`` has
    one entry more than there are tiles."""
    for tile in prange(tiles.size - 1):
        for i in range(j + tile * x, min(j + (tile + 1) * x, n)):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)


@parallel
def row_step(lu, row, column, j, first, left, x, threads, n, tiles):
    """Compute u[j, i] for ``left`` <= i < n (1.12), ``x`` columns a tile."""
    for tile in prange(tiles.size - 1):
        complete_row(lu, row, column, j, first, left + tile * x, min(left + (tile + 1) * x, n))


@njit(cache=True)
def complete_row(lu, row, column, j, first, left, end):
    """Compute u[j, i] for ``left`` <= i < ``end``. If l[j, j] = 0 it does not divide; the decomposition fails later."""
    diagonal = lu[j * (row + column)]
    for i in range(left, end):
        value = remainder(lu, row, column, j, i, first, j)
        lu[j * row + i * column] = value / diagonal if diagonal != 0 else value


@parallel
def front(lu, row, column, first, size, pivot, x, threads, tolerance, n, pivots, matrices):
    """Complete columns ``first`` to ``first + size`` of L, and the front's diagonal block of U, with pivots, for
    ``matrices.size`` − 1 matrices. Steps before ``first`` have been subtracted."""
    for k in prange(matrices.size - 1):
        complete_front(lu[k * n * n:(k + 1) * n * n], row, column, first, size, pivot, tolerance, n,
                       pivots[k * n:(k + 1) * n])


@njit(cache=True)
def complete_front(lu, row, column, first, size, pivot, tolerance, n, pivots):
    """Complete the front of one matrix."""
    for j in range(first, first + size):
        for i in range(j, n):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)
        pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots)
        complete_row(lu, row, column, j, first, j + 1, first + size)


@parallel
def beside(lu, row, column, first, size, left, end, x, threads, n, tiles):
    """Complete the front's rows of U, columns ``left`` to ``end``. ``tiles`` counts the tiles of all matrices, one
    matrix after the other."""
    across = -(-(end - left) // x)
    for tile in prange(tiles.size - 1):
        begin = left + tile % across * x
        for i in range(first, first + size):
            complete_row(lu[tile // across * n * n:], row, column, i, first, begin, min(begin + x, end))
