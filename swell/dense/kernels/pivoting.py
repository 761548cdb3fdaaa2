"""The choice of a pivot and the swaps of rows, on the CPU; ``pivoting.cu`` is the GPU's version.

``lu``: matrices of n rows as a flat array; entry (i, j) is at ``i row + j column``.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel


@njit(cache=True)
def pick_pivot(lu, row, column, j, tolerance, n, pivots):
    """Set ``pivots[j]`` to the first row with the largest |lu[i, j]|, i >= j (1.13); to −1 if |lu[j, j]| is above
    ``tolerance``. A NaN counts as infinity. Arguments: top of file."""
    largest, chosen = -1.0, -1
    if not (abs(lu[j * (row + column)]) > tolerance):
        for i in range(j, n):
            size = abs(lu[i * row + j * column])
            if not size >= 0:
                size = np.inf
            if size > largest:
                largest, chosen = size, i
    pivots[j] = chosen


@njit(cache=True)
def swap_rows(lu, row, column, j, n, pivots):
    """Swap row j of lu with its pivot's row ``pivots[j]``, in place; −1: no swap. Arguments: top of file."""
    p = pivots[j]
    if p <= j:
        return
    for k in range(n):
        a, b = j * row + k * column, p * row + k * column
        lu[a], lu[b] = lu[b], lu[a]


@parallel
def swap_all(lu, row, column, first, size, left, right, x, threads, n, pivots, tiles):
    """Do the swaps of rows ``first`` to ``first + size`` with their pivots' rows, in all columns but those from
    ``left`` to ``right``, in all matrices, in place. ``tiles.size`` − 1: number of tiles of 32 columns, of all
    matrices. ``x``, ``threads``: on a GPU only. Arguments: top of file."""
    across = -(-n // 32)
    for tile in prange(tiles.size - 1):
        m, begin = tile // across, tile % across * 32
        swap_columns(lu[m * n * n:], row, column, first, size, begin, min(begin + 32, left), pivots[m * n:])
        swap_columns(lu[m * n * n:], row, column, first, size, max(begin, right), min(begin + 32, n), pivots[m * n:])


@njit(cache=True)
def swap_columns(lu, row, column, first, size, begin, end, pivots):
    """Do the swaps of rows ``first`` to ``first + size`` in columns ``begin`` to ``end``, in place. Arguments: top of
    file."""
    for j in range(first, first + size):
        p = pivots[j]
        if p > j:
            for k in range(begin, end):
                a, b = j * row + k * column, p * row + k * column
                lu[a], lu[b] = lu[b], lu[a]


@njit(cache=True)
def pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots, left, right):
    """If ``pivot``, choose the pivot of column j and swap rows of lu in columns ``left`` to ``right``, in place.
    Returns the diagonal element. ``tolerance``, ``pivots``: as in ``pick_pivot``. Arguments: top of file."""
    if pivot:
        pick_pivot(lu, row, column, j, tolerance, n, pivots)
        swap_columns(lu, row, column, j, 1, left, right, pivots)
    return lu[j * (row + column)]
