"""Crout's method and Gaussian elimination on a CPU, one element after the other. They are for one thread alone."""
from __future__ import annotations

from numba import njit

from swell.dense.kernels.pivoting import pick_pivot, swap_rows


@njit(cache=True)
def crout(lu, row, column, pivot, tolerance, n, pivots):
    """Column j of L (1.11), its pivot (1.13), row j of U (1.12)."""
    for j in range(n):
        for i in range(j, n):
            total = lu.dtype.type(0)
            for k in range(j):
                total += lu[i * row + k * column] * lu[k * row + j * column]
            lu[i * row + j * column] -= total
        if pivot:
            pick_pivot(lu, row, column, j, tolerance, n, pivots)
            swap_rows(lu, row, column, j, n, pivots)
        diagonal = lu[j * (row + column)]
        if diagonal == 0:
            return
        for i in range(j + 1, n):
            total = lu.dtype.type(0)
            for k in range(j):
                total += lu[j * row + k * column] * lu[k * row + i * column]
            at = j * row + i * column
            lu[at] = (lu[at] - total) / diagonal


@njit(cache=True)
def eliminate(lu, row, column, pivot, tolerance, n, pivots):
    """Rows below j lose their multiple of row j; the multipliers are L, with the unit diagonal."""
    for j in range(n):
        if pivot:
            pick_pivot(lu, row, column, j, tolerance, n, pivots)
            swap_rows(lu, row, column, j, n, pivots)
        diagonal = lu[j * (row + column)]
        if diagonal == 0:
            return
        for i in range(j + 1, n):
            factor = lu[i * row + j * column] / diagonal
            lu[i * row + j * column] = factor
            for k in range(j + 1, n):
                lu[i * row + k * column] -= factor * lu[j * row + k * column]
