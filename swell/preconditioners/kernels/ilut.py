"""ILUT on the host; CPU only, since each row depends on the entries that earlier rows keep."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit
from swell.preconditioners.kernels.ick import grown
from swell.preconditioners.kernels.ilu import is_good, replaced


@njit(cache=True)
def keep_largest(columns, values, sizes, start, end, most, area):
    """Keep the ``most`` largest of the entries ``start`` to ``end`` − 1: move them, in their order, to ``start`` and
    the places behind it, in ``columns`` and ``values``. Returns their end.

    ``sizes`` has the moduli of these entries. An entry has ``area`` numbers in ``values``."""
    if end - start <= most:
        return end
    least = np.partition(sizes, sizes.size - most)[sizes.size - most] if most > 0 else np.inf
    ties = most - np.sum(sizes > least)
    at = start
    for k in range(start, end):
        size = sizes[k - start]
        if size > least or (size == least and ties > 0):
            ties -= size == least
            columns[at] = columns[k]
            for e in range(area):
                values[at * area + e] = values[k * area + e]
            at += 1
    return at


@njit(cache=True)
def factor(indptr, indices, data, scale, drop, fill, tiny, replacement, bad, limit):
    """Return (indptr, columns, values, n) of L, without its unit diagonal, and U together, columns ascending. If the
    entries exceed ``limit``, it stops, and the last number is the current row.

    A is in CSR. Entries of row i below ``drop`` times its 2-norm are dropped; the largest ``fill`` / 2 times as many as
    the row has in A are kept in each of L and U. A pivot of at most ``tiny`` times scale[i] is replaced by
    ``replacement`` times scale[i]; bad[0] becomes the first such row, bad[1] their number.

    Row i is a linked list of ascending columns, where n marks head and end, with a dense vector of values."""
    n = indptr.size - 1
    one = data.dtype.type(1)
    ptr = np.zeros(n + 1, np.int64)
    middle = np.empty(n, np.int64)               # places of the diagonal entries
    columns, values = np.empty(indices.size, np.int64), np.empty(indices.size, data.dtype)
    inverse = np.empty(n, data.dtype)
    after, member = np.empty(n + 1, np.int64), np.full(n, -1, np.int64)
    row = np.zeros(n, data.dtype)
    for i in range(n):
        at, norm2, length = n, 0.0, indptr[i + 1] - indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            after[at] = j
            at, member[j], row[j] = j, i, data[k]
            norm2 += abs(data[k]) ** 2
        after[at] = n
        threshold, most = drop * np.sqrt(norm2), int(min(np.ceil(fill * length / 2), n))
        count = ptr[i]
        m = after[n]
        while m < i:
            if not abs(row[m]) < threshold:
                l = row[m] * inverse[m]
                at = m                           # the list is searched from here: columns of both ascend
                for k in range(middle[m] + 1, ptr[m + 1]):
                    j = columns[k]
                    if member[j] == i:
                        row[j] -= l * values[k]
                        continue
                    while after[at] < j:
                        at = after[at]
                    after[j] = after[at]
                    after[at] = j
                    member[j], row[j] = i, -l * values[k]
                if count == columns.size:
                    columns, values = grown(columns, count + 1), grown(values, count + 1)
                columns[count], values[count] = m, l
                count += 1
            m = after[m]
        count = keep_largest(columns, values, np.abs(values[ptr[i]:count]), ptr[i], count, most, np.int64(1))
        pivot = row[i]
        if not is_good(pivot, scale[i], tiny):
            bad[0], bad[1] = min(bad[0], i), bad[1] + 1
            pivot = data.dtype.type(replaced(pivot, scale[i], replacement, one))
        inverse[i] = 1 / pivot
        middle[i] = count
        row[i] = pivot
        m = i                                    # the diagonal is always kept
        while m < n:
            if m == i or not abs(row[m]) < threshold:
                if count == columns.size:
                    columns, values = grown(columns, count + 1), grown(values, count + 1)
                columns[count], values[count] = m, row[m]
                count += 1
            m = after[m]
        first = middle[i] + 1
        count = keep_largest(columns, values, np.abs(values[first:count]), first, count, most, np.int64(1))
        ptr[i + 1] = count
        if count > limit:
            return ptr, columns, values, i
    return ptr, columns[:ptr[n]], values[:ptr[n]], n
