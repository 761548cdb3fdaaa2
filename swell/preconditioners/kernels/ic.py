"""Incomplete Cholesky on the CPU: rows one after the other, and the fixed-point sweeps. L is CSR, the diagonal last in
its row; ``data`` holds the lower triangle of A on the same pattern. A's diagonal is multiplied by 1 + ``shift``. A
pivot of at most ``tiny`` times its diagonal entry is a breakdown.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.preconditioners.kernels.triangular import CONTRACT

NONE = np.iinfo(np.int64).max                 # no row
# A CPU factors one row after the other instead, and NumPy replaces the last three.
GPU_ONLY = "factor_rows", "count_lower", "take_columns", "take_values"


@njit(cache=True, fastmath=CONTRACT)
def factor(indptr, indices, data, values, inverse, row, shift, tiny, bad):
    """Write ``values`` = L with (L Lᴴ)ᵢⱼ = aᵢⱼ on the pattern, and inverse[i] = 1 / lᵢᵢ.

    ``data`` is the lower triangle of A on the pattern of L, with the diagonal last in each row; A's diagonal is
    multiplied by 1 + ``shift``. ``row`` is a work vector of zeros, zero again on return. At the first row whose pivot
    is not above ``tiny`` times its diagonal entry, bad[0] becomes this row, and the factorisation stops."""
    for i in range(inverse.size):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1] - 1)
        diagonal = data[end].real * (1 + shift)
        pivot = diagonal
        for k in range(begin, end):
            j = np.uint64(indices[k])
            total = data[k]
            for m in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)] - 1)):
                total -= row[np.uint64(indices[m])] * np.conj(values[m])
            total *= inverse[j]
            values[k] = total
            row[j] = total
            pivot -= (np.conj(total) * total).real
        for k in range(begin, end):
            row[np.uint64(indices[k])] = 0
        if not pivot > tiny * diagonal:
            bad[0] = i
            return
        root = np.sqrt(pivot)
        values[end] = root
        inverse[i] = 1 / root


@helper
def common(indptr, indices, values, i, j, zero):
    """Return Σ lᵢₘ conj(lⱼₘ) over m < j, by merging rows i and j of L, ``values`` in CSR. ``zero``: 0 of the type of L.
    """
    total = zero
    p, q = indptr[i], indptr[j]
    while p < indptr[i + 1] and q < indptr[j + 1]:
        a, b = indices[p], indices[q]
        if a >= j or b >= j:
            break
        if a == b:
            total += values[p] * np.conj(values[q])
        p += a <= b
        q += b <= a
    return total


@parallel
def fixed_point(indptr, indices, entry_rows, data, old, fresh, shift, tiny, bad):
    """One sweep of lᵢⱼ = (aᵢⱼ − Σ lᵢₘ conj(lⱼₘ)) / lⱼⱼ from the factor ``old`` to the factor ``fresh``, which is
    written.

    ``data`` and ``shift`` are as in `factor`; entry_rows[k] is the row of entry k. A pivot that is not above ``tiny``
    times its diagonal entry keeps its old value. bad[0] becomes the minimum of its old value and the first such row."""
    zero = old.dtype.type(0)
    first = bad[0]
    for k in prange(data.size):
        i, j = entry_rows[k], indices[k]
        total = common(indptr, indices, old, i, j, zero)
        if i == j:
            diagonal = data[k].real * (1 + shift)
            pivot = diagonal - total.real
            good = pivot > tiny * diagonal
            fresh[k] = np.sqrt(pivot) if good else old[k].real
            first = min(first, NONE if good else i)
        else:
            fresh[k] = (data[k] - total) / old[indptr[j + 1] - 1].real
    bad[0] = first
