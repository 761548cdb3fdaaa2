"""BSR products on the CPU: chunks of block rows in parallel, blocks in storage order, four rows of a block at a time.

For blocks up to 4 × 4 the sums of a block row stay in registers. For larger blocks they are in y, since a second pass
over a block row for its other rows took longer. ``block`` is a tuple with as many numbers as a block has rows, so that
the compiler knows the block size and unrolls the loops. If it is empty, the shape of ``data`` gives the size. LLVM
inlines the functions (``forceinline``), since Numba's own inlining took ten seconds to compile. Products and sums may
be fused. Unsigned indices spare Numba's test for negative ones.

Products with several right-hand sides, arrays of shape (k, n), take pieces of PIECE block rows, and one column of x
after the other, so that the matrix comes from memory once. ``running`` lists the columns to be computed; ``groups.py``
says which of them are taken together.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit
from swell.core.kernels.vector import total
from swell.formats.kernels.groups import SAMPLES, groups

CHUNKS = 64             # more than cores, to balance the load; few enough that partial sums cost nothing
PIECE = 64              # block rows whose blocks stay in the cache until all columns are done


@helper(fastmath={"contract"}, inlined=True)
def four_rows(values, x, zero, at, j, size, width, count):
    """Return four numbers: the products with x of ``count`` (up to four) rows of one block; the others are ``zero``.

    ``values``: all blocks, flattened. The first of these rows begins at values[at]. The block's first column is j, its
    size ``size``; only ``width`` columns lie inside the matrix."""
    p0 = p1 = p2 = p3 = zero
    for c in range(width):
        xc = x[j + c]
        p0 += values[at + c] * xc
        if count > 1:
            p1 += values[at + size + c] * xc
        if count > 2:
            p2 += values[at + np.uint64(2) * size + c] * xc
        if count > 3:
            p3 += values[at + np.uint64(3) * size + c] * xc
    return p0, p1, p2, p3


@helper(fastmath={"contract"}, inlined=True)
def put(y, row, value, alpha, beta):
    """y[row] = alpha value + beta y[row], unless ``row`` lies past the end of y; beta = 0 never reads y."""
    if row < np.uint64(y.size):
        if beta == 0:
            y[row] = alpha * value
        else:
            y[row] = alpha * value + beta * y[row]


@helper(fastmath={"contract"}, inlined=True)
def put_four(y, row, count, p0, p1, p2, p3, alpha, beta):
    """y[row + i] = alpha pᵢ + beta y[row + i] for i < ``count`` (up to four); rows past the end of y are left out."""
    put(y, row, p0, alpha, beta)
    if count > 1:
        put(y, row + np.uint64(1), p1, alpha, beta)
    if count > 2:
        put(y, row + np.uint64(2), p2, alpha, beta)
    if count > 3:
        put(y, row + np.uint64(3), p3, alpha, beta)


@helper(fastmath={"contract"}, inlined=True)
def add_block(values, x, y, zero, k, j, row, size, width, alpha):
    """y += alpha A x for block k alone, whose first row is ``row`` and first column j.

    ``values``: all blocks, flattened. ``size``: the block size. ``width``: columns of the block inside the matrix.
    ``zero``: of y's type."""
    for first in range(np.uint64(0), size, np.uint64(4)):
        count = min(size - first, np.uint64(4))
        p0, p1, p2, p3 = four_rows(values, x, zero, (k * size + first) * size, j, size, width, count)
        put_four(y, row + first, count, p0, p1, p2, p3, alpha, y.dtype.type(1))


@helper(fastmath={"contract"}, inlined=True)
def block_row(indptr, indices, values, x, y, block, any_size, i, alpha, beta):
    """y = alpha A x + beta y for the rows of block row i, with A in BSR; beta = 0 never reads y.

    ``values``: the blocks, flattened. ``block``: a tuple whose length is the block size; if empty, that is
    ``any_size``."""
    size, zero = np.uint64(len(block)) if len(block) > 0 else any_size, y.dtype.type(0)
    begin, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
    cut = last > begin and np.uint64(indices[last - np.uint64(1)]) >= np.uint64(x.size) // size
    end = last - np.uint64(1) if cut else last   # the last block column may reach past the end of x
    if size <= 4:
        s0 = s1 = s2 = s3 = zero
        for k in range(begin, end):
            p0, p1, p2, p3 = four_rows(values, x, zero, k * size * size, np.uint64(indices[k]) * size, size, size, size)
            s0, s1, s2, s3 = s0 + p0, s1 + p1, s2 + p2, s3 + p3
        put_four(y, i * size, size, s0, s1, s2, s3, alpha, beta)
    else:
        for row in range(i * size, (i + np.uint64(1)) * size):
            put(y, row, zero, alpha, beta)
        for k in range(begin, end):
            add_block(values, x, y, zero, k, np.uint64(indices[k]) * size, i * size, size, size, alpha)
    if cut:
        width = np.uint64(x.size) % size
        add_block(values, x, y, zero, end, np.uint64(x.size) - width, i * size, size, width, alpha)


@njit(parallel=True, cache=True, fastmath={"contract"})
def product(indptr, indices, data, x, y, block, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    ``indptr``, ``indices``, ``data``: A in BSR, ``data`` of shape (blocks, s, s). ``block``: a tuple whose length is s,
    known at compilation; an empty one takes s from ``data``."""
    rows, size, values = indptr.size - 1, np.uint64(data.shape[1]), data.reshape(-1)
    for chunk in prange(CHUNKS):
        for i in range(np.uint64(chunk * rows // CHUNKS), np.uint64((chunk + 1) * rows // CHUNKS)):
            block_row(indptr, indices, values, x, y, block, size, i, alpha, beta)


@njit(parallel=True, cache=True, fastmath={"contract"})
def product_dots(indptr, indices, data, x, y, w, dots, block):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y), with A in BSR. Writes ``y`` and ``dots``.

    ``data``: shape (blocks, s, s). ``block``: a tuple of length s; empty: not fixed at compilation."""
    rows, size, values = indptr.size - 1, np.uint64(data.shape[1]), data.reshape(-1)
    one, none = y.dtype.type(1), y.dtype.type(0)
    wy, yy = np.empty(CHUNKS, dots.dtype), np.empty(CHUNKS)
    for chunk in prange(CHUNKS):
        a, b = dots.dtype.type(0), 0.0
        for i in range(np.uint64(chunk * rows // CHUNKS), np.uint64((chunk + 1) * rows // CHUNKS)):
            block_row(indptr, indices, values, x, y, block, size, i, one, none)
            for row in range(i * size, min((i + np.uint64(1)) * size, np.uint64(y.size))):
                a += np.conj(w[row]) * y[row]
                b += (np.conj(y[row]) * y[row]).real
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)


@njit(cache=True)
def reach(indptr, indices, size):
    """Return the distance between the first and the last column of a row: the mean over some block rows."""
    distance, rows = 0, indptr.size - 1
    for sample in range(SAMPLES):
        i = sample * rows // SAMPLES
        if indptr[i] < indptr[i + 1]:
            distance += size * abs(np.int64(indices[indptr[i + 1] - 1]) - np.int64(indices[indptr[i]]))
    return distance / SAMPLES


def product_columns(running, indptr, indices, data, x, y, block, alpha, beta):
    """y[j] = alpha A x[j] + beta y[j] for the columns j in ``running``, as `product` computes each."""
    for group in groups(running, reach(indptr, indices, data.shape[1]), x.itemsize):
        if group.size == 1:
            product(indptr, indices, data, x[group[0]], y[group[0]], block, alpha, beta)
        else:
            group_product(group, indptr, indices, data, x, y, block, alpha, beta)


@njit(parallel=True, cache=True, fastmath={"contract"})
def group_product(running, indptr, indices, data, x, y, block, alpha, beta):
    """`product_columns` for one group."""
    rows, size, values = indptr.size - 1, np.uint64(data.shape[1]), data.reshape(-1)
    for piece in prange(-(-rows // PIECE)):
        first, last = np.uint64(np.int64(piece) * PIECE), np.uint64(min((np.int64(piece) + 1) * PIECE, rows))
        for j in running:
            own_x, own_y = x[j], y[j]
            for i in range(first, last):
                block_row(indptr, indices, values, own_x, own_y, block, size, i, alpha, beta)


def product_dots_columns(running, indptr, indices, data, x, y, w, dots, block):
    """y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in ``running``, as `product_dots`
    computes each."""
    for group in groups(running, reach(indptr, indices, data.shape[1]), x.itemsize):
        if group.size == 1:
            j = group[0]
            product_dots(indptr, indices, data, x[j], y[j], w[j], dots[j], block)
        else:
            group_product_dots(group, indptr, indices, data, x, y, w, dots, block)


@njit(parallel=True, cache=True, fastmath={"contract"})
def group_product_dots(running, indptr, indices, data, x, y, w, dots, block):
    """`product_dots_columns` for one group."""
    rows, size, values = indptr.size - 1, np.uint64(data.shape[1]), data.reshape(-1)
    one, none = y.dtype.type(1), y.dtype.type(0)
    wy, yy = np.zeros((y.shape[0], CHUNKS), dots.dtype), np.zeros((y.shape[0], CHUNKS))
    for chunk in prange(CHUNKS):
        begin, end = np.int64(chunk) * rows // CHUNKS, (np.int64(chunk) + 1) * rows // CHUNKS
        for piece in range(begin, end, PIECE):
            for j in running:
                own_x, own_y, own_w, a, b = x[j], y[j], w[j], wy[j, chunk], yy[j, chunk]
                for i in range(np.uint64(piece), np.uint64(min(piece + PIECE, end))):
                    block_row(indptr, indices, values, own_x, own_y, block, size, i, one, none)
                    for row in range(i * size, min((i + np.uint64(1)) * size, np.uint64(own_y.size))):
                        a += np.conj(own_w[row]) * own_y[row]
                        b += (np.conj(own_y[row]) * own_y[row]).real
                wy[j, chunk], yy[j, chunk] = a, b
    for j in running:
        dots[j, 0], dots[j, 1] = total(wy[j]), total(yy[j])
