"""BSR products on the CPU: chunks of block rows in parallel, four rows of a block row at a time, their sums in registers.

``block`` is a tuple of as many numbers as a block has rows: so the compiler knows how many, and unrolls. An empty one says
"look at ``data``". A block is summed before it is added to its row, so that blocks need not wait for one another; products
and sums may be fused. Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CHUNKS = 64             # more than cores, so that they end together; few enough that partial sums cost nothing


@njit(cache=True, inline="always", fastmath={"contract"})
def four_rows(indices, values, x, zero, begin, end, size, row):
    """The products of rows ``row`` to row + 3 of a block row whose blocks are begin to end."""
    s0 = s1 = s2 = s3 = zero
    for k in range(begin, end):
        j, at = np.uint64(indices[k]) * size, (k * size + row) * size
        xc = x[j]
        p0 = values[at] * xc
        p1 = values[at + size] * xc
        p2 = values[at + np.uint64(2) * size] * xc
        p3 = values[at + np.uint64(3) * size] * xc
        for c in range(np.uint64(1), size):
            xc = x[j + c]
            p0 += values[at + c] * xc
            p1 += values[at + size + c] * xc
            p2 += values[at + np.uint64(2) * size + c] * xc
            p3 += values[at + np.uint64(3) * size + c] * xc
        s0 += p0
        s1 += p1
        s2 += p2
        s3 += p3
    return s0, s1, s2, s3


@njit(cache=True, inline="always", fastmath={"contract"})
def three_rows(indices, values, x, zero, begin, end, size, row):
    """The same of three."""
    s0 = s1 = s2 = zero
    for k in range(begin, end):
        j, at = np.uint64(indices[k]) * size, (k * size + row) * size
        xc = x[j]
        p0 = values[at] * xc
        p1 = values[at + size] * xc
        p2 = values[at + np.uint64(2) * size] * xc
        for c in range(np.uint64(1), size):
            xc = x[j + c]
            p0 += values[at + c] * xc
            p1 += values[at + size + c] * xc
            p2 += values[at + np.uint64(2) * size + c] * xc
        s0 += p0
        s1 += p1
        s2 += p2
    return s0, s1, s2


@njit(cache=True, inline="always", fastmath={"contract"})
def two_rows(indices, values, x, zero, begin, end, size, row):
    """The same of two."""
    s0 = s1 = zero
    for k in range(begin, end):
        j, at = np.uint64(indices[k]) * size, (k * size + row) * size
        xc = x[j]
        p0 = values[at] * xc
        p1 = values[at + size] * xc
        for c in range(np.uint64(1), size):
            xc = x[j + c]
            p0 += values[at + c] * xc
            p1 += values[at + size + c] * xc
        s0 += p0
        s1 += p1
    return s0, s1


@njit(cache=True, inline="always", fastmath={"contract"})
def one_row(indices, values, x, zero, begin, end, size, row):
    """The same of one."""
    s0 = zero
    for k in range(begin, end):
        j, at = np.uint64(indices[k]) * size, (k * size + row) * size
        xc = x[j]
        p0 = values[at] * xc
        for c in range(np.uint64(1), size):
            xc = x[j + c]
            p0 += values[at + c] * xc
        s0 += p0
    return s0


@njit(cache=True)
def cut_block(values, x, zero, k, size, row):
    """The product of a row of block k, which is in the last block column and reaches past the end of x."""
    total = zero
    j, at = np.uint64(x.size) // size * size, (k * size + row) * size
    for c in range(np.uint64(x.size) - j):
        total += values[at + c] * x[j + c]
    return total


@njit(cache=True)
def put(y, row, value, alpha, beta):
    """y[row] = alpha value + beta y[row], if there is such a row."""
    if row < np.uint64(y.size):
        if beta == 0:
            y[row] = alpha * value
        else:
            y[row] = alpha * value + beta * y[row]


@njit(cache=True, inline="always")
def block_row(indptr, indices, data, x, y, block, i, alpha, beta):
    """The rows of block row i: y = alpha A x + beta y."""
    size = np.uint64(len(block)) if len(block) > 0 else np.uint64(data.shape[1])
    values, zero = data.reshape(-1), y.dtype.type(0)
    begin, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
    cut = last > begin and np.uint64(indices[last - np.uint64(1)]) >= np.uint64(x.size) // size
    end = last - np.uint64(1) if cut else last
    row, at = np.uint64(0), i * size
    for _ in range(size // np.uint64(4)):
        s0, s1, s2, s3 = four_rows(indices, values, x, zero, begin, end, size, row)
        put(y, at + row, s0, alpha, beta)
        put(y, at + row + np.uint64(1), s1, alpha, beta)
        put(y, at + row + np.uint64(2), s2, alpha, beta)
        put(y, at + row + np.uint64(3), s3, alpha, beta)
        row += np.uint64(4)
    rest = size % np.uint64(4)
    if rest == 3:
        s0, s1, s2 = three_rows(indices, values, x, zero, begin, end, size, row)
        put(y, at + row, s0, alpha, beta)
        put(y, at + row + np.uint64(1), s1, alpha, beta)
        put(y, at + row + np.uint64(2), s2, alpha, beta)
    elif rest == 2:
        s0, s1 = two_rows(indices, values, x, zero, begin, end, size, row)
        put(y, at + row, s0, alpha, beta)
        put(y, at + row + np.uint64(1), s1, alpha, beta)
    elif rest == 1:
        put(y, at + row, one_row(indices, values, x, zero, begin, end, size, row), alpha, beta)
    if cut:
        for row in range(size):
            put(y, at + row, cut_block(values, x, zero, end, size, row), alpha, y.dtype.type(1))


@njit(parallel=True, cache=True, fastmath={"contract"})
def product(indptr, indices, data, x, y, block, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y."""
    rows = indptr.size - 1
    for chunk in prange(CHUNKS):
        for i in range(np.uint64(chunk * rows // CHUNKS), np.uint64((chunk + 1) * rows // CHUNKS)):
            block_row(indptr, indices, data, x, y, block, i, alpha, beta)


@njit(parallel=True, cache=True, fastmath={"contract"})
def product_dots(indptr, indices, data, x, y, w, dots, block):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y)."""
    rows, size = indptr.size - 1, np.uint64(data.shape[1])
    one, none = y.dtype.type(1), y.dtype.type(0)
    wy = np.zeros(CHUNKS, dots.dtype)
    yy = np.zeros(CHUNKS)
    for chunk in prange(CHUNKS):
        a, b = dots.dtype.type(0), 0.0
        for i in range(np.uint64(chunk * rows // CHUNKS), np.uint64((chunk + 1) * rows // CHUNKS)):
            block_row(indptr, indices, data, x, y, block, i, one, none)
            for row in range(i * size, min((i + np.uint64(1)) * size, np.uint64(y.size))):
                a += np.conj(w[row]) * y[row]
                b += (np.conj(y[row]) * y[row]).real
        wy[chunk], yy[chunk] = a, b
    dots[0] = wy.sum()
    dots[1] = yy.sum()
