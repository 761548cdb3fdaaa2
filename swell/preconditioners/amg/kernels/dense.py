"""The dense inverse of the coarsest level on the CPU; see coarsest.py one folder up."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


@njit(cache=True)
def scatter(indptr, indices, data, scales, dense):
    """Write ``dense`` = D A D as a full matrix, row after row, with D = diag(``scales``) and A in CSR."""
    n = scales.size
    for i in range(n):
        row = dense[i * n:i * n + n]
        row[:] = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[np.uint64(k)])
            row[j] = scales[i] * data[np.uint64(k)] * scales[j]


@njit(cache=True, fastmath={"contract", "nsz"})
def invert(matrix, pivots, rows, singular, worst, record):
    """Invert a symmetric row-major matrix in place, by symmetric sweeps: one for each pivot, without exchanges.

    Row and column k become zero if pivot k is at most ``singular`` times the original diagonal entry. worst[0] = the
    least such ratio, 1 at most. Work arrays: ``pivots`` and ``rows``, n numbers each (a GPU needs more); ``record`` is
    for a GPU's blocks."""
    n, least = pivots.size, 1.0
    for k in range(n):
        pivots[k] = matrix[k * n + k]
    for k in range(n):
        row = rows[:n]
        for j in range(n):
            row[j] = matrix[k * n + j]
        pivot = row[k]
        ratio = pivot / pivots[k] if pivots[k] > 0 else min(pivot, 0.0)
        least = min(least, ratio)
        inverse = 1 / pivot if ratio > singular else 0.0
        for i in range(n):
            own, factor = matrix[i * n:i * n + n], row[i]
            if i == k:
                for j in range(n):
                    own[j] = row[j] * inverse
                own[k] = -inverse
            elif inverse == 0:
                own[k] = 0
            else:
                for j in range(n):
                    own[j] -= factor * row[j] * inverse          # symmetric up to rounding
                own[k] = factor * inverse
    for i in range(n * n):
        matrix[i] = -matrix[i]
    worst[0] = least
