"""Block ILUT on the host; CPU only, since each block row depends on the blocks that earlier block rows keep."""
from __future__ import annotations

import numpy as np
from numba import njit

from swell.preconditioners.kernels.block_ilu import add_product, invert
from swell.preconditioners.kernels.ick import grown
from swell.preconditioners.kernels.ilut import keep_largest
from swell.preconditioners.kernels.triangular import CONTRACT


@njit(cache=True)
def norm2(values, k, scale, i, size):
    """Return the squared Frobenius norm of block k of ``values`` after row r of it is divided by scale[i size + r]."""
    total = 0.0
    for r in range(size):
        row = 0.0
        for c in range(size):
            row += abs(values[(k * size + r) * size + c]) ** 2
        total += row / scale[i * size + r] ** 2
    return total


@njit(cache=True)
def copy(a, p, b, q, size):
    """Copy block p of ``a`` to block q of ``b``."""
    for e in range(size * size):
        b[q * size * size + e] = a[p * size * size + e]


@njit(cache=True)
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
def factor(indptr, indices, blocks, scale, drop, fill, tiny, replacement, bad, limit):
    """Return (indptr, columns, values, inverse, n) of L, without its identities, and U together, columns ascending:
    their blocks, and the inverses of U's diagonal blocks, both flat. If the blocks exceed ``limit``, it stops, and the
    last number is the current block row.

    A is in BSR. Norms are Frobenius norms after division by ``scale``, the largest
    modulus of each row of A. Blocks of block row i below ``drop`` times its norm are dropped; the largest ``fill`` / 2
    times as many as it has in A are kept in each of L and U. `invert` says how a tiny pivot is replaced; bad[0] becomes
    the first block row with one, bad[1] their number.

    Block row i is a linked list of ascending columns, where n marks head and end, with a dense vector of blocks."""
    n, size, kind = indptr.size - 1, np.uint64(blocks.shape[1]), blocks.dtype.type
    area, none = blocks.shape[1]**2, np.uint64(0)
    data = blocks.reshape(-1)
    ptr = np.zeros(n + 1, np.int64)
    middle = np.empty(n, np.int64)               # places of the diagonal blocks
    columns, values = np.empty(indices.size, np.int64), np.empty(indices.size * area, data.dtype)
    inverse = np.empty(n * area, data.dtype)
    after, member = np.empty(n + 1, np.int64), np.full(n, -1, np.int64)
    row = np.zeros(n * area, data.dtype)
    work, order = np.empty(area, data.dtype), np.empty(blocks.shape[1], np.int64)
    for i in range(n):
        at, total, length, own = n, 0.0, indptr[i + 1] - indptr[i], np.uint64(i)
        for k in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[k])
            after[at] = j
            at, member[j] = j, i
            copy(data, np.uint64(k), row, np.uint64(j), size)
            total += norm2(data, np.uint64(k), scale, own, size)
        after[at] = n
        threshold, most = drop**2 * total, int(min(np.ceil(fill * length / 2), n))
        count = ptr[i]
        m = after[n]
        while m < i:
            if not norm2(row, np.uint64(m), scale, own, size) < threshold:
                for e in range(size * size):
                    work[e] = 0
                add_product(row, np.uint64(m), inverse, np.uint64(m), work, none, size, kind(1))
                insert(columns, middle[m] + 1, ptr[m + 1], after, member, i, m, row, area)
                for k in range(np.uint64(middle[m] + 1), np.uint64(ptr[m + 1])):
                    add_product(work, none, values, k, row, np.uint64(columns[k]), size, kind(-1))
                columns, values = grown(columns, count + 1), grown(values, (count + 1) * area)
                columns[count] = m
                copy(work, none, values, np.uint64(count), size)
                count += 1
            m = after[m]
        count = keep_largest_blocks(columns, values, ptr[i], count, most, scale, i, size)
        middle[i] = count
        m = i                                    # the diagonal block is always kept
        while m < n:
            if m == i or not norm2(row, np.uint64(m), scale, own, size) < threshold:
                columns, values = grown(columns, count + 1), grown(values, (count + 1) * area)
                columns[count] = m
                copy(row, np.uint64(m), values, np.uint64(count), size)
                count += 1
            m = after[m]
        tinies = invert(values, np.uint64(middle[i]), inverse, own, scale, order, work, size, tiny, replacement)
        if tinies:
            bad[0], bad[1] = min(bad[0], i), bad[1] + tinies
        count = keep_largest_blocks(columns, values, middle[i] + 1, count, most, scale, i, size)
        ptr[i + 1] = count
        if count > limit:
            return ptr, columns, values, inverse, i
    return ptr, columns[:ptr[n]], values[:ptr[n] * area], inverse, n


@njit(cache=True)
def keep_largest_blocks(columns, values, start, end, most, scale, i, size):
    """Keep the ``most`` blocks of largest norm of the blocks ``start`` to ``end`` − 1, of block row i, as
    `keep_largest` does. Returns their end."""
    norms = np.empty(end - start)
    for k in range(start, end):
        norms[k - start] = norm2(values, np.uint64(k), scale, np.uint64(i), size)
    return keep_largest(columns, values, norms, start, end, most, np.int64(size * size))
