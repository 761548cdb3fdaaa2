"""Dense LU with partial pivoting for a batch, on the CPU; ``lu.cu`` is the GPU's version, which has a second kernel.

Arguments as in ``cg.py``; ``places``: row · 2¹⁶ + column of each entry, on a GPU only. The iterations of the record are
1, or 2 where the solution was refined.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.batch.kernels.system import CONVERGED, SINGULAR, confirmed, epsilon, judged, leave, true_residual
from swell.core.compiled import helper, njit, parallel

GPU_ONLY = ("lu_rows",)


@parallel
def lu(indptr, indices, ell, diagonal, places, values, b, x, record, size, columns, lanes, rtol, atol, threads,
       shared):
    """x = A⁻¹ b for each system. Arguments: top of file."""
    for s in prange(values.shape[0]):
        solve(indptr, indices, values[s], b[s], x[s], record[s], rtol, atol)


@njit(cache=True)
def solve(indptr, indices, a, b, x, record, rtol, atol):
    """Solve one system, for each of its columns. Arguments: top of file, of this system."""
    n = indptr.size - 1
    D, source = np.zeros((n, n), a.dtype), np.empty(n, np.int64)
    xs, better, r, rhs = np.empty((4, n), a.dtype)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            D[i, indices[k]] = a[k]
    found = factor(D, source)
    for c in range(b.shape[1]):
        for i in range(n):
            xs[i], r[i], rhs[i] = 0, b[i, c], b[i, c]
        done, now = 0, (0.0, 0.0, 0.0, 0.0)
        for attempt in range(2):                                 # the second one refines
            if found:
                substitute(D, source, r)
            for i in range(n):
                better[i] = xs[i] + r[i] if found else xs[i]
            then = true_residual(indptr, indices, a, rhs, better, r)
            threshold = max(rtol * then[1], atol)
            then = confirmed(indptr, indices, a, rhs, better, r, then, threshold)
            if attempt == 0 or then[0] < now[0]:
                now, done = then, attempt + 1
                for i in range(n):
                    xs[i] = better[i]
            if not found or not math.isfinite(then[0]) or then[0] <= threshold:
                break
        code = judged(CONVERGED if found else SINGULAR, now, max(rtol * now[1], atol), epsilon(a))
        leave(now, done, code, xs, record, x, c)


@helper
def factor(D, source):
    """P A = L U in place in D, with the inverse of U's diagonal; ``source[j]``: the row swapped with row j.

    False if a pivot vanishes."""
    n = D.shape[0]
    for j in range(n):
        p = j
        for i in range(j + 1, n):
            if abs(D[i, j]) > abs(D[p, j]):
                p = i
        source[j] = p
        if D[p, j] == 0:
            return False
        for k in range(n):
            D[j, k], D[p, k] = D[p, k], D[j, k]
        D[j, j] = 1 / D[j, j]
        pivot = D[j, j + 1:]
        for i in range(j + 1, n):
            D[i, j] *= D[j, j]
            scale, row = D[i, j], D[i, j + 1:]
            for k in range(pivot.size):                          # a loop over views is vectorised
                row[k] -= scale * pivot[k]
    return True


@helper
def substitute(D, source, y):
    """y = U⁻¹ L⁻¹ P y."""
    n = y.size
    for j in range(n):
        y[j], y[source[j]] = y[source[j]], y[j]
    for i in range(n):                                           # L z = P y
        total = y[i]
        for k in range(i):
            total -= D[i, k] * y[k]
        y[i] = total
    for i in range(n - 1, -1, -1):                               # U x = z
        total = y[i]
        for k in range(i + 1, n):
            total -= D[i, k] * y[k]
        y[i] = total * D[i, i]
