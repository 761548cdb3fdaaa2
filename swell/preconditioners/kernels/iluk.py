"""The pattern of ILU(k) and an estimate of its size, on the host."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit
from swell.preconditioners.kernels.ick import grown, merge


@njit(cache=True)
def fill(indptr, indices, level):
    """Return (indptr, indices) of L and U with fill up to ``level``, columns ascending, from the pattern of A.

    Row i is a linked list of ascending columns with their levels; n marks its head and its end. For each of its columns
    m < i in turn, the columns of row m right of the diagonal are merged into it. Returns new arrays."""
    n = indptr.size - 1
    ptr = np.zeros(n + 1, np.int64)
    beyond = np.empty(n, np.int64)               # place of a row's first column right of the diagonal
    columns, levels = np.empty(indices.size, np.int64), np.empty(indices.size, np.int32)
    after = np.empty(n + 1, np.int64)            # the column that follows in the list of this row
    depth = np.empty(n, np.int64)                # the level of a column in the list
    member = np.full(n, -1, np.int64)            # the row whose list last had a column
    for i in range(n):
        at = n
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            after[at] = j
            at, depth[j], member[j] = j, 0, i
        after[at] = n
        m = after[n]
        while m < i:
            merge(columns[beyond[m]:ptr[m + 1]], levels[beyond[m]:ptr[m + 1]], after, depth, member, i, m, level)
            m = after[m]
        count, m = ptr[i], after[n]
        beyond[i] = -1
        while m < n:
            if count == columns.size:
                columns, levels = grown(columns, count + 1), grown(levels, count + 1)
            columns[count], levels[count] = m, depth[m]
            if m > i and beyond[i] < 0:
                beyond[i] = count
            count += 1
            m = after[m]
        ptr[i + 1] = count
        if beyond[i] < 0:
            beyond[i] = count
    return ptr, columns[:ptr[n]]


@njit(cache=True)
def reached(indptr, indices, level, rows):
    """Return for each row i of ``rows``, an array of row numbers, the number of columns j > i that a path of at most
    ``level`` + 1 edges reaches through rows before i. ``indptr`` and ``indices`` are the graph."""
    n = indptr.size - 1
    counts = np.zeros(rows.size, np.int64)
    seen = np.full(n, -1, np.int64)
    queue, steps = np.empty(n, np.int64), np.empty(n, np.int64)
    for r in range(rows.size):
        i = rows[r]
        queue[0], steps[0], seen[i] = i, 0, i
        head, tail = 0, 1
        while head < tail:
            v, step = queue[head], steps[head]
            head += 1
            if step > level:
                break
            for k in range(indptr[v], indptr[v + 1]):
                j = indices[k]
                if seen[j] == i:
                    continue
                seen[j] = i
                if j > i:
                    counts[r] += 1
                else:
                    queue[tail], steps[tail] = j, step + 1
                    tail += 1
    return counts
