"""The pattern of IC(k), on the host."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


@njit(cache=True, fastmath=False)
def grown(array, size):
    """Return ``array``, or a larger copy with room for at least ``size`` entries; the added entries are undefined."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, array.size + array.size // 2), array.dtype)
    larger[:array.size] = array
    return larger


@njit(cache=True)
def merge(columns, levels, after, depth, member, i, m, level):
    """Insert the columns of row m right of its diagonal into the linked list of row i, unless their new fill level
    exceeds ``level``.

    ``columns`` and ``levels`` are these columns of row m and their levels. Changed in place: after[j], the column
    behind j in the list; depth[j], the level of column j in row i; member[j] = i marks the columns in the list."""
    at = m                                       # the list is searched from here: columns of both ascend
    for k in range(columns.size):
        j, deeper = columns[k], depth[m] + levels[k] + 1
        if deeper > level:
            continue
        if member[j] == i:
            depth[j] = min(depth[j], deeper)
            continue
        while after[at] < j:
            at = after[at]
        after[j] = after[at]
        after[at] = j
        depth[j], member[j] = deeper, i


@njit(cache=True)
def fill(indptr, indices, level):
    """Return (indptr, indices) of L with fill up to ``level``, columns ascending, from the whole pattern of A.

    Row i is a linked list of ascending columns with their levels. For each of its columns m < i in turn, the columns of
    row m right of the diagonal (U) are merged into it. L is Uᴴ: only U is stored, and transposed at the end. Returns
    new arrays."""
    n = indptr.size - 1
    ptr = np.zeros(n + 1, np.int64)              # row pointers of U, whose rows start with the diagonal
    columns, levels = np.empty(indices.size, np.int64), np.empty(indices.size, np.int32)
    after = np.empty(n, np.int64)                # the column that follows in the list of this row; n at the end
    depth = np.empty(n, np.int32)                # the level of a column in the list
    member = np.full(n, -1, np.int64)            # the row whose list last had a column
    for i in range(n):
        first, last = i, -1
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if last < 0:
                first = j
            else:
                after[last] = j
            last, depth[j], member[j] = j, 0, i
        after[last] = n
        m = first
        while m < i:
            merge(columns[ptr[m] + 1:ptr[m + 1]], levels[ptr[m] + 1:ptr[m + 1]], after, depth, member, i, m, level)
            m = after[m]
        count = ptr[i]
        while m < n:                             # from the diagonal on
            if count == columns.size:
                columns, levels = grown(columns, count + 1), grown(levels, count + 1)
            columns[count], levels[count] = m, depth[m]
            count += 1
            m = after[m]
        ptr[i + 1] = count
    return transposed(ptr, columns[:ptr[n]])


@njit(cache=True)
def transposed(ptr, columns):
    """Return (indptr, indices) of the transposed pattern, columns ascending. ``ptr`` and ``columns`` are the given
    pattern in CSR form; the results are new arrays."""
    n = ptr.size - 1
    indptr, indices = np.zeros(n + 1, np.int64), np.empty(columns.size, np.int64)
    for j in columns:
        indptr[j + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    place = indptr[:-1].copy()
    for i in range(n):
        for k in range(ptr[i], ptr[i + 1]):
            indices[place[columns[k]]] = i
            place[columns[k]] += 1
    return indptr, indices
