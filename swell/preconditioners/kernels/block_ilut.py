"""Block ILUT on the host; CPU only, since each block row depends on the blocks that earlier block rows keep."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import CONTRACT, helper, njit
from swell.preconditioners.kernels.block_ilu import add_product, invert

SMALLEST = 1e-150           # ratio of two scales in a block row, so that its square is not zero


@njit(cache=True, fastmath=False)
def grown(array, size):
    """Return ``array``, or a larger copy with room for at least ``size`` entries; the added entries are undefined."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, array.size + array.size // 2), array.dtype)
    larger[:array.size] = array
    return larger


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


@helper
def norm2(values, k, scale, i, size):
    """Return the squared Frobenius norm of block k of ``values`` after row r of it is divided by scale[i size + r]."""
    total = 0.0
    for r in range(size):
        for c in range(size):
            total += (abs(values[(k * size + r) * size + c]) / scale[i * size + r]) ** 2     # squares alone underflow
    return total


@helper
def copy(a, p, b, q, size):
    """Copy block p of ``a`` to block q of ``b``."""
    for e in range(size * size):
        b[q * size * size + e] = a[p * size * size + e]


@helper
def insert(columns, start, end, after, member, i, m, row, area):
    """Insert the columns[start:end], which ascend, into the linked list of row i behind its column m, with blocks of
    zeros in ``row``. The list holds the columns with member[j] = i already."""
    at = m
    for k in range(start, end):
        j = columns[k]
        if member[j] != i:
            while after[at] < j:
                at = after[at]
            after[j] = after[at]
            after[at] = j
            member[j] = i
            row[j * area:(j + 1) * area] = 0


@njit(cache=True, fastmath=CONTRACT)
def factor(lower, upper, indices, blocks, below, scale, drop, fill, tiny, replacement, bad, limit):
    """Return (lower, columns of L, L, inverse, upper, columns of U, U, n): row pointers and ascending block columns of
    the strict triangles of L and U, their blocks, and the inverse diagonal blocks of U, all blocks flat. If the blocks
    exceed ``limit``, it stops, and the last number is the current block row.

    ``lower`` to ``below`` are a `BlockFactor` that holds A, in place of a factor. Norms are Frobenius norms after
    division by ``scale``, the largest modulus of each row of A. Blocks of block row i below ``drop`` times its norm are
    dropped; the largest ``fill`` / 2 times as many as it has in A are kept in each of L and U. `invert` says how a tiny
    pivot is replaced; bad[0] becomes the first block row with one, bad[1] their number.

    Block row i is a linked list of ascending columns, where n marks head and end, with a dense vector of blocks."""
    n, size, kind = lower.size - 1, np.uint64(blocks.shape[1]), blocks.dtype.type
    area, none = blocks.shape[1]**2, np.uint64(0)
    data = blocks.reshape(-1)
    lptr, uptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    lcolumns, ucolumns = np.empty(below, np.int64), np.empty(indices.size - below, np.int64)
    lvalues, uvalues = np.empty(lcolumns.size * area, data.dtype), np.empty(ucolumns.size * area, data.dtype)
    inverse = np.empty(n * area, data.dtype)
    after, member = np.empty(n + 1, np.int64), np.full(n, -1, np.int64)
    row = np.zeros(n * area, data.dtype)
    work, order = np.empty(area, data.dtype), np.empty(blocks.shape[1], np.int64)
    of_L = np.empty(scale.size)                  # L has no units: a block row of it is weighed by ratios of its scales
    for i in range(n):
        rows = slice(i * blocks.shape[1], (i + 1) * blocks.shape[1])
        of_L[rows] = np.maximum(scale[rows] / np.float64(scale[rows].max()), SMALLEST)
        at, total, own = n, 0.0, np.uint64(i)
        left, length = lower[i + 1] - lower[i], lower[i + 1] - lower[i] + 1 + upper[i + 1] - upper[i]
        for e in range(length):
            k = lower[i] + e if e < left else below + i if e == left else upper[i] + e - left - 1
            j = np.int64(indices[k])
            after[at] = j
            at, member[j] = j, i
            copy(data, np.uint64(k), row, np.uint64(j), size)
            total += norm2(data, np.uint64(k), scale, own, size)
        after[at] = n
        threshold, most = drop**2 * total, int(min(np.ceil(fill * length / 2), n))
        count, m = lptr[i], after[n]
        while m < i:
            if not norm2(row, np.uint64(m), scale, own, size) < threshold:
                for e in range(size * size):
                    work[e] = 0
                add_product(row, np.uint64(m), inverse, np.uint64(m), work, none, size, kind(1))
                insert(ucolumns, uptr[m], uptr[m + 1], after, member, i, m, row, area)
                for k in range(np.uint64(uptr[m]), np.uint64(uptr[m + 1])):
                    add_product(work, none, uvalues, k, row, np.uint64(ucolumns[k]), size, kind(-1))
                lcolumns, lvalues = grown(lcolumns, count + 1), grown(lvalues, (count + 1) * area)
                lcolumns[count] = m
                copy(work, none, lvalues, np.uint64(count), size)
                count += 1
            m = after[m]
        lptr[i + 1] = keep_largest_blocks(lcolumns, lvalues, lptr[i], count, most, of_L, i, size)
        tinies = invert(row, own, inverse, own, scale, own, order, work, size, tiny, replacement)
        if tinies:
            bad[0], bad[1] = min(bad[0], i), bad[1] + tinies
        count, m = uptr[i], after[i]
        while m < n:
            if not norm2(row, np.uint64(m), scale, own, size) < threshold:
                ucolumns, uvalues = grown(ucolumns, count + 1), grown(uvalues, (count + 1) * area)
                ucolumns[count] = m
                copy(row, np.uint64(m), uvalues, np.uint64(count), size)
                count += 1
            m = after[m]
        uptr[i + 1] = keep_largest_blocks(ucolumns, uvalues, uptr[i], count, most, scale, i, size)
        if lptr[i + 1] + uptr[i + 1] > limit:
            return lptr, lcolumns, lvalues, inverse, uptr, ucolumns, uvalues, i
    return (lptr, lcolumns[:lptr[n]], lvalues[:lptr[n] * area], inverse, uptr, ucolumns[:uptr[n]],
            uvalues[:uptr[n] * area], n)


@njit(cache=True, fastmath=False)
def keep_largest_blocks(columns, values, start, end, most, scale, i, size):
    """Keep the ``most`` blocks of largest norm of the blocks ``start`` to ``end`` − 1, of block row i, as
    `keep_largest` does. Returns their end."""
    norms = np.empty(end - start)
    for k in range(start, end):
        norms[k - start] = norm2(values, np.uint64(k), scale, np.uint64(i), size)
    return keep_largest(columns, values, norms, start, end, most, np.int64(size * size))
