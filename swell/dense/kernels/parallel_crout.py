"""Crout's method with elements in parallel, a column and a row or a front at a time, on the CPU; ``parallel_crout.cu``
is the GPU's version. The functions for fronts handle many matrices, which are n * n elements apart.

``lu``: matrices of n rows as a flat array; entry (i, j) is at ``i row + j column``. L and U overwrite it. ``first``:
the steps before it have been subtracted. ``x``: rows or columns of a tile; ``threads``: of a block on a GPU. A
front has the ``size`` rows and columns from ``first`` on. ``pivot``, ``tolerance``, ``pivots``: as in crout.py.
``tiles`` gives a number by its size only: size − 1 tiles.
"""
from __future__ import annotations

from numba import prange

from swell.core.compiled import njit, parallel
from swell.dense.kernels.crout import remainder
from swell.dense.kernels.pivoting import pivot_of_column


@parallel
def column_step(lu, row, column, j, first, x, threads, n, tiles):
    """Compute l[i, j] for i >= j (1.11), in place, ``x`` rows a tile. Arguments: top of file."""
    for tile in prange(tiles.size - 1):
        for i in range(j + tile * x, min(j + (tile + 1) * x, n)):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)


@parallel
def row_step(lu, row, column, j, first, left, x, threads, n, tiles):
    """Compute u[j, i] for ``left`` <= i < n (1.12), in place, ``x`` columns a tile. Arguments: top of file."""
    for tile in prange(tiles.size - 1):
        complete_row(lu, row, column, j, first, left + tile * x, min(left + (tile + 1) * x, n))


@njit(cache=True)
def complete_row(lu, row, column, j, first, left, end):
    """Compute u[j, i] for ``left`` <= i < ``end``, in place. If l[j, j] = 0 it does not divide; the decomposition fails
    later. Arguments: top of file."""
    diagonal = lu[j * (row + column)]
    for i in range(left, end):
        value = remainder(lu, row, column, j, i, first, j)
        lu[j * row + i * column] = value / diagonal if diagonal != 0 else value


@parallel
def front(lu, row, column, first, size, pivot, x, threads, shared, cluster, tolerance, n, pivots, blocks):
    """Complete columns ``first`` to ``first + size`` of L, and the front's diagonal block of U, with pivots, in all
    matrices, in place. ``blocks.size`` − 1: number of matrices, times the blocks of a ``cluster`` with ``shared`` bytes
    of shared memory each on a GPU. Arguments: top of file."""
    for k in prange(blocks.size - 1):
        complete_front(lu[k * n * n:(k + 1) * n * n], row, column, first, size, pivot, tolerance, n,
                       pivots[k * n:(k + 1) * n])


@njit(cache=True)
def complete_front(lu, row, column, first, size, pivot, tolerance, n, pivots):
    """Do the work of ``front`` in one matrix. Arguments: top of file."""
    for j in range(first, first + size):
        for i in range(j, n):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, first, j)
        pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots)
        complete_row(lu, row, column, j, first, j + 1, first + size)


@parallel
def beside(lu, row, column, first, size, left, end, x, threads, n, tiles):
    """Complete the front's rows of U, columns ``left`` to ``end``, in place, ``threads`` columns a tile. ``tiles``
    counts the tiles of all matrices, one matrix after the other. Arguments: top of file."""
    across = -(-(end - left) // threads)
    for tile in prange(tiles.size - 1):
        begin = left + tile % across * threads
        for i in range(first, first + size):
            complete_row(lu[tile // across * n * n:], row, column, i, first, begin, min(begin + threads, end))
