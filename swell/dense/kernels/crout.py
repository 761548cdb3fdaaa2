"""Crout's method and Gaussian elimination on a CPU: sequential in a matrix, many matrices in parallel.

``lu``: matrices of n rows as a flat array; entry (i, j) is at ``i row + j column``; matrix k begins at k n². L and U
overwrite it. ``pivot``: True if rows are swapped; ``tolerance``: choose a pivot where the diagonal element is at most
this; pivots[j]: the row that row j was swapped with, −1 if none. ``matrices`` gives their number by its size only: size
− 1.
"""
from __future__ import annotations

from numba import prange

from swell.core.compiled import njit, parallel
from swell.dense.kernels.pivoting import pivot_of_column


@njit(cache=True)
def remainder(lu, row, column, i, j, first, end):
    """Return entry (i, j) less the contributions of steps ``first`` to ``end``, Σ l[i, k] u[k, j]. Arguments: top of
    file."""
    total = lu.dtype.type(0)
    for k in range(first, end):
        total += lu[i * row + k * column] * lu[k * row + j * column]
    return lu[i * row + j * column] - total


@parallel
def crout(lu, row, column, pivot, tolerance, n, pivots, matrices):
    """Decompose all matrices in place: column j of L (1.11), its pivot (1.13), row j of U (1.12). Arguments: top of
    file."""
    for m in prange(matrices.size - 1):
        crout_one(lu[m * n * n:(m + 1) * n * n], row, column, pivot, tolerance, n, pivots[m * n:(m + 1) * n])


@njit(cache=True)
def crout_one(lu, row, column, pivot, tolerance, n, pivots):
    """Decompose one matrix in place by Crout's method; stop at a zero pivot. Arguments: top of file."""
    for j in range(n):
        for i in range(j, n):
            lu[i * row + j * column] = remainder(lu, row, column, i, j, 0, j)
        diagonal = pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots)
        if diagonal == 0:
            return
        for i in range(j + 1, n):
            lu[j * row + i * column] = remainder(lu, row, column, j, i, 0, j) / diagonal


@parallel
def eliminate(lu, row, column, pivot, tolerance, n, pivots, matrices):
    """Decompose all matrices in place: subtract multiples of row j from the rows below it. The multipliers are L, which
    has the unit diagonal. Arguments: top of file."""
    for m in prange(matrices.size - 1):
        eliminate_one(lu[m * n * n:(m + 1) * n * n], row, column, pivot, tolerance, n, pivots[m * n:(m + 1) * n])


@njit(cache=True)
def eliminate_one(lu, row, column, pivot, tolerance, n, pivots):
    """Decompose one matrix in place by Gaussian elimination; stop at a zero pivot. Arguments: top of file."""
    for j in range(n):
        diagonal = pivot_of_column(lu, row, column, j, pivot, tolerance, n, pivots)
        if diagonal == 0:
            return
        for i in range(j + 1, n):
            factor = lu[i * row + j * column] / diagonal
            lu[i * row + j * column] = factor
            for k in range(j + 1, n):
                lu[i * row + k * column] -= factor * lu[j * row + k * column]
