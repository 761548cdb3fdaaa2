"""Incomplete LU on the CPU: rows one after the other, by levels, and the fixed-point sweeps. One CSR pattern holds L,
without its unit diagonal, and U; ``diagonal`` has the places of the diagonal entries. A pivot of at most ``tiny`` times
its row's ``scale`` is replaced by ``replacement`` times ``scale``. bad[0] becomes the first such row, bad[1] the number
of such rows.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.preconditioners.kernels.triangular import CONTRACT

NONE = np.iinfo(np.int64).max                    # no row
NARROW = 256                                     # levels with fewer rows run on one thread
GPU_ONLY = ("factor_rows",)                      # its rows wait for one another; a CPU has ``factor_levels``


@helper
def is_good(pivot, scale, tiny):
    """True if the pivot is finite and larger in modulus than ``tiny`` × ``scale``."""
    return tiny * scale < abs(pivot) < np.inf


@helper
def replaced(pivot, scale, replacement, one):
    """Return the replacement of a tiny pivot: ``scale`` × ``replacement``, with the pivot's sign (or complex phase).
    ``one`` is the sign of a zero pivot: 1 of the matrix's type. Infinite where the replacement underflows to zero, by
    which nothing can be divided."""
    modulus, size = abs(pivot), scale * replacement
    sign = pivot / modulus if 0 < modulus < np.inf else one
    return sign * (size if size > 0 else np.inf)


@helper
def place_of(j, indices, begin, end):
    """Return the place of index j in indices[begin:end], or −1."""
    for k in range(begin, end):
        if indices[np.uint64(k)] == j:
            return k
    return -1


@parallel
def find_diagonal(indptr, indices, diagonal):
    """Write diagonal[i] = the place of row i's diagonal entry in ``indices``, or −1. Returns the number of rows without
    one."""
    missing = 0
    for i in prange(diagonal.size):
        diagonal[i] = place_of(i, indices, indptr[i], indptr[i + 1])
        missing += diagonal[i] < 0
    return missing


@helper(fastmath=CONTRACT)
def factor_rows_from(begin, end, indptr, indices, diagonal, data, scale, values, inverse, row, tiny, replacement, bad):
    """Factor rows ``begin`` to ``end`` − 1 of the CSR matrix ``data`` in Saad's IKJ order. Writes their ``values``,
    ``inverse`` (the inverse pivots) and ``bad``.

    The top of this file explains ``diagonal``, ``scale``, ``tiny``, ``replacement`` and ``bad``. ``row`` is a work
    vector. Its entries outside the current row's pattern are written but never read: a test that skips them would be
    mispredicted."""
    kind = values.dtype.type
    for i in range(begin, end):
        first, middle, last = np.uint64(indptr[i]), np.uint64(diagonal[i]), np.uint64(indptr[i + 1])
        for k in range(first, last):
            row[np.uint64(indices[k])] = data[k]
        for k in range(first, middle):
            j = np.uint64(indices[k])
            l = row[j] * inverse[j]
            values[k] = l
            for m in range(np.uint64(diagonal[j]) + np.uint64(1), np.uint64(indptr[j + np.uint64(1)])):
                row[np.uint64(indices[m])] -= l * values[m]
        pivot = row[i]
        if not is_good(pivot, scale[i], tiny):
            bad[0], bad[1] = min(bad[0], i), bad[1] + 1
            pivot = kind(replaced(pivot, scale[i], replacement, kind(1)))
        inverse[i] = 1 / pivot
        values[middle] = pivot
        for k in range(middle + np.uint64(1), last):
            values[k] = row[np.uint64(indices[k])]


@njit(cache=True)
def factor(indptr, indices, diagonal, data, scale, values, inverse, row, tiny, replacement, bad):
    """Write ``values`` = L and U with (L U)ᵢⱼ = aᵢⱼ on the pattern, and ``inverse`` = the inverse pivots.

    ``data`` has the entries of A. ``row`` is a work vector of n numbers. A pivot of at most ``tiny`` times its row's
    ``scale`` is replaced by ``replacement`` times ``scale``; bad[0] becomes the first such row, bad[1] their number."""
    factor_rows_from(0, inverse.size, indptr, indices, diagonal, data, scale, values, inverse, row, tiny, replacement,
                     bad)


@parallel
def factor_halves(indptr, indices, diagonal, data, scale, values, inverse, cuts, work, tiny, replacement, bad):
    """Like `factor`, if rows cuts[0] to cuts[1] − 1 need no row before cuts[0]: two threads, then one for the rest.
    ``work`` has a work vector for each of the two."""
    each = np.empty((2, 2), np.int64)
    for part in prange(2):
        begin, end = (0, cuts[0]) if part == 0 else (cuts[0], cuts[1])
        each[part, 0], each[part, 1] = bad[0], 0
        factor_rows_from(begin, end, indptr, indices, diagonal, data, scale, values, inverse, work[part], tiny,
                         replacement, each[part])
    bad[0], bad[1] = min(each[0, 0], each[1, 0]), each[:, 1].sum()
    factor_rows_from(cuts[1], inverse.size, indptr, indices, diagonal, data, scale, values, inverse, work[0], tiny,
                     replacement, bad)


@njit(cache=True)
def find_depths(indptr, indices, diagonal, depth):
    """Write depth[i] = the level of row i, from 0: one more than the highest level of the rows that it needs, which are
    the columns left of its diagonal entry. ``diagonal`` has the places of the diagonal entries."""
    for i in range(depth.size):
        deepest = -1
        for k in range(indptr[i], diagonal[i]):
            deepest = max(deepest, depth[indices[k]])
        depth[i] = deepest + 1


@helper(fastmath=CONTRACT)
def eliminate(indptr, indices, diagonal, scale, values, inverse, i, tiny, replacement):
    """Factor row i in place in ``values``, by merging rows, and write inverse[i], the inverse pivot. Returns True if
    the pivot was good; else it is replaced.

    The rows that it needs must be done. The values have the bits of `factor`, which explains the arguments."""
    end, middle = indptr[i + 1], diagonal[i]
    for k in range(indptr[i], middle):
        j = indices[k]
        l = values[k] * inverse[j]
        values[k] = l
        p = k + 1
        for m in range(diagonal[j] + 1, indptr[j + 1]):
            c = indices[m]
            while p < end and indices[p] < c:
                p += 1
            if p == end:
                break
            if indices[p] == c:
                values[p] -= l * values[m]
    good = is_good(values[middle], scale[i], tiny)
    if not good:
        values[middle] = replaced(values[middle], scale[i], replacement, values.dtype.type(1))
    inverse[i] = 1 / values[middle]
    return good


@parallel
def factor_levels(indptr, indices, diagonal, scale, values, inverse, sequence, bounds, tiny, replacement, bad):
    """Like `factor`, in place in ``values``, which hold A on entry. Threads share the rows sequence[bounds[l]:bounds[l
    + 1]] of level l."""
    first, count = bad[0], bad[1]
    for level in range(bounds.size - 1):
        if bounds[level + 1] - bounds[level] < NARROW:
            for t in range(bounds[level], bounds[level + 1]):
                i = sequence[t]
                if not eliminate(indptr, indices, diagonal, scale, values, inverse, i, tiny, replacement):
                    first, count = min(first, i), count + 1
            continue
        least, many = NONE, 0
        for t in prange(bounds[level], bounds[level + 1]):
            i = sequence[t]
            good = eliminate(indptr, indices, diagonal, scale, values, inverse, i, tiny, replacement)
            least = min(least, NONE if good else i)
            many += 0 if good else 1
        first, count = min(first, least), count + many
    bad[0], bad[1] = first, count


@parallel
def fixed_point(indptr, indices, diagonal, entry_rows, starts, column_rows, places, data, scale, old, fresh, tiny,
                replacement, bad):
    """One sweep of lᵢⱼ = (aᵢⱼ − Σ lᵢₘ uₘⱼ) / uⱼⱼ and uᵢⱼ = aᵢⱼ − Σ lᵢₘ uₘⱼ, over m < min(i, j), from the old factors to
    the new. It merges row i and column j up to min(i, j); both have an entry there or behind it, their diagonal.

    ``data`` is A, ``old`` and ``fresh`` are the old and new factors on one pattern. Writes ``fresh`` and ``bad``;
    pivots are treated as in `factor`. entry_rows[k] is the row of entry k. Column j has its rows and places from
    starts[j] on, in ``column_rows`` and ``places``."""
    first, count = bad[0], bad[1]
    for k in prange(data.size):
        i, j = entry_rows[k], indices[k]
        stop = min(i, j)
        total = data[k]
        p, q = indptr[i], starts[j]
        while indices[p] < stop and column_rows[q] < stop:
            a, b = indices[p], column_rows[q]
            if a == b:
                total -= old[p] * old[places[q]]
            p += a <= b
            q += b <= a
        bad_pivot = i == j and not is_good(total, scale[i], tiny)
        if i > j:
            total = total / old[diagonal[j]]
        elif bad_pivot:
            total = old.dtype.type(replaced(total, scale[i], replacement, old.dtype.type(1)))
        fresh[k] = total
        first = min(first, i if bad_pivot else NONE)
        count += 1 if bad_pivot else 0
    bad[0], bad[1] = first, count
