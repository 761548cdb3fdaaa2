"""Forward and backward substitution, one row after the other and as an iteration, on the CPU; ``substitution.cu`` is
the iteration on a GPU.

``lu``: L and U of n rows as a flat array; entry (i, j) is at ``i row + j column``. ``unit``: 1 if the triangle in
question has a unit diagonal, which is not stored; else 0. In the iteration ``V`` is a flat array of ``m`` right-hand
sides, entry (i, r) at ``i + r n``; the solution overwrites it. With ``backward`` it solves with U, else with L. In
backward substitution positions count from the last row. An entry has settled if it changed by at most ``tolerance``.
``rows``, ``threads``: on a GPU only.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def forward_backward(lu, row, column, unit, X, n):
    """Solve L Y = X, then U X = Y, in place in ``X``, which has shape (n, m). ``unit``: 1 if the unit diagonal is in L,
    0 if in U. Other arguments: top of file."""
    m = X.shape[1]
    for i in range(n):
        for j in range(i):
            for r in range(m):
                X[i, r] -= lu[i * row + j * column] * X[j, r]
        if not unit:
            for r in range(m):
                X[i, r] /= lu[i * (row + column)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            for r in range(m):
                X[i, r] -= lu[i * row + j * column] * X[j, r]
        if unit:
            for r in range(m):
                X[i, r] /= lu[i * (row + column)]


@parallel
def settle(lu, row, column, first, size, backward, unit, rows, threads, tolerance, V, n, m, counts):
    """Iterate the rows ``first`` to ``first + size`` of V until they have settled. ``counts`` has an entry for every 8
    right-hand sides, and one more; the iterations of the slowest of the 8 are added to it. Arguments: top of file."""
    for tile in prange(counts.size - 1):
        slowest = 0
        for r in range(8 * tile, min(8 * tile + 8, m)):
            v = V[r * n:(r + 1) * n]
            slowest = max(slowest, settle_block(lu, row, column, first, size, backward, unit, tolerance, v))
        counts[tile] += slowest


@njit(cache=True)
def settle_block(lu, row, column, first, size, backward, unit, tolerance, v):
    """Do the work of ``settle`` for one right-hand side v (``first``, ``size`` as there), in place. Returns the number
    of iterations. Arguments: top of file."""
    start, step = (first + size - 1, -1) if backward else (first, 1)
    b, base = np.empty(size, lu.dtype), np.zeros(size, lu.dtype)
    for p in range(size):
        b[p] = v[start + step * p]
    front = iterations = 0
    while front < size:
        changed = size
        for p in range(size - 1, front - 1, -1):                 # backwards: p must read the last iterate
            i = start + step * p
            total = base[p]
            for q in range(front, p):
                k = start + step * q
                total += lu[i * row + k * column] * v[k]
            value = b[p] - total
            if not unit:
                value = value / lu[i * (row + column)]
            if not (abs(value - v[i]) <= tolerance):             # a NaN has not settled
                changed = p
            v[i] = value
        after = max(changed, front + 1)                          # the first entry needed final ones only: it is final
        for p in range(after, size):
            i = start + step * p
            for q in range(front, min(after, p)):
                k = start + step * q
                base[p] += lu[i * row + k * column] * v[k]
        front = after
        iterations += 1
    return iterations


@parallel
def sweep(lu, row, column, backward, unit, b, now, then, rows, threads, tolerance, n, m, changed, tiles):
    """Do one iteration of all rows, from ``now`` to ``then``, both like V; b: the right-hand sides. ``changed[0]``
    becomes 1 if an entry has not settled. ``tiles`` matters on a GPU only. Arguments: top of file."""
    count = 0
    for t in prange(n * m):
        count += sweep_entry(lu, row, column, backward, unit, b, now, then, tolerance, n, t % n, t // n)
    if count:
        changed[0] = 1


@njit(cache=True)
def sweep_entry(lu, row, column, backward, unit, b, now, then, tolerance, n, i, r):
    """Compute then[i + r n] from ``now`` and b, as ``sweep`` does. Returns 1 if it has changed by more than
    ``tolerance``, else 0. Arguments: top of file."""
    total = lu.dtype.type(0)
    for k in range(i + 1 if backward else 0, n if backward else i):
        total += lu[i * row + k * column] * now[k + r * n]
    value = b[i + r * n] - total
    if not unit:
        value = value / lu[i * (row + column)]
    then[i + r * n] = value
    return 0 if abs(value - now[i + r * n]) <= tolerance else 1
