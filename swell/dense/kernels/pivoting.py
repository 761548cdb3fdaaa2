"""The choice of a pivot and the swap of two rows, on the CPU; ``pivoting.cu`` is the GPU's version.

``lu``: matrices of n rows as a flat array; entry (i, j) is at ``i row + j column``.
"""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


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


@njit(cache=True)
def pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots):
    """If ``pivot``, choose the pivot of column j and swap rows of lu, in place. Returns the diagonal element.
    ``tolerance``, ``pivots``: as in ``pick_pivot``. Arguments: top of file."""
    if pivot:
        pick_pivot(lu, row, column, j, tolerance, n, pivots)
        swap_rows(lu, row, column, j, n, pivots)
    return lu[j * (row + column)]


@njit(cache=True)
def reorder(pivots, order):
    """Do the swaps of rows ``pivots`` (as in ``pick_pivot``) of each matrix in its row of ``order``, in place; both
    have shape (matrices, n)."""
    for m in range(order.shape[0]):
        for j in range(order.shape[1]):
            p = pivots[m, j]
            if p > j:
                order[m, j], order[m, p] = order[m, p], order[m, j]
