"""Crout's method with elements in parallel, a column and a row or a front at a time, on the CPU; ``parallel_crout.cu``
is the same on a GPU. Fronts are those of many matrices, which lie n * n elements apart."""
from __future__ import annotations

from numba import njit, prange

from swell.core.compiled import parallel
from swell.dense.kernels.crout import remainder
from swell.dense.kernels.pivoting import pivot_of_column


@parallel
def column_step(lu, row, column, j, first, x, threads, n, tiles):
    """l[i, j] for i >= j (1.11), where steps before ``first`` have been subtracted; ``x`` rows a tile, ``tiles`` has
    one entry more than there are."""
    for tile in prange(tiles.size - 1):
        for i in range(j + tile * x, min(j + (tile + 1) * x, n)):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)


@parallel
def row_step(lu, row, column, j, first, left, x, threads, n, tiles):
    """u[j, i] for ``left`` <= i < n (1.12), tiles of ``x`` columns."""
    for tile in prange(tiles.size - 1):
        complete_row(lu, row, column, j, first, left + tile * x, min(left + (tile + 1) * x, n))


@njit(cache=True)
def complete_row(lu, row, column, j, first, left, end):
    """u[j, i] for ``left`` <= i < end; where l[j, j] = 0 there is no division, and no success."""
    diagonal = lu[j * (row + column)]
    for i in range(left, end):
        value = remainder(lu, row, column, j, i, first, j)
        lu[j * row + i * column] = value / diagonal if diagonal != 0 else value


@parallel
def front(lu, row, column, first, size, pivot, x, threads, tolerance, n, pivots, matrices):
    """Columns ``first`` to ``first + size`` of L, and U between them, with pivots, of as many matrices as
    ``matrices.size`` says, less one; steps before ``first`` have been subtracted."""
    for k in prange(matrices.size - 1):
        complete_front(lu[k * n * n:(k + 1) * n * n], row, column, first, size, pivot, tolerance, n,
                       pivots[k * n:(k + 1) * n])


@njit(cache=True)
def complete_front(lu, row, column, first, size, pivot, tolerance, n, pivots):
    """The same for one matrix."""
    for j in range(first, first + size):
        for i in range(j, n):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)
        pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots)
        complete_row(lu, row, column, j, first, j + 1, first + size)


@parallel
def beside(lu, row, column, first, size, left, end, x, threads, n, tiles):
    """The front's rows of U, columns ``left`` to ``end``; ``tiles`` of all matrices, one matrix after the other."""
    across = -(-(end - left) // x)
    for tile in prange(tiles.size - 1):
        begin = left + tile % across * x
        for i in range(first, first + size):
            complete_row(lu[tile // across * n * n:], row, column, i, first, begin, min(begin + x, end))
