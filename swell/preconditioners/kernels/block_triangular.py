"""Block triangular solves on the CPU; the layout is described in ``swell/preconditioners/block_triangular.py``.

``block`` is a tuple of as many numbers as a block has rows, so that the compiler knows how many, and unrolls; an empty
one says "look at ``blocks``". Blocks are column-major: four rows of a column lie together, their sums in registers.
Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.preconditioners.kernels.triangular import CONTRACT

CHUNKS = 64             # more than cores, so that they end together
GPU_ONLY = ("level", "levels", "sync_free")      # a CPU solves row by row and needs no levels


@njit(cache=True, inline="always", fastmath=CONTRACT)
def four_rows(columns, values, x, zero, begin, end, size, row):
    """Rows ``row`` to row + 3 of the product of blocks begin to end with x."""
    s0 = s1 = s2 = s3 = zero
    for k in range(begin, end):
        j, at = np.uint64(columns[k]) * size, k * size * size + row
        for c in range(size):
            xc = x[j + c]
            s0 += values[at] * xc
            s1 += values[at + np.uint64(1)] * xc
            s2 += values[at + np.uint64(2)] * xc
            s3 += values[at + np.uint64(3)] * xc
            at += size
    return s0, s1, s2, s3


@njit(cache=True, inline="always", fastmath=CONTRACT)
def three_rows(columns, values, x, zero, begin, end, size, row):
    """The same of three."""
    s0 = s1 = s2 = zero
    for k in range(begin, end):
        j, at = np.uint64(columns[k]) * size, k * size * size + row
        for c in range(size):
            xc = x[j + c]
            s0 += values[at] * xc
            s1 += values[at + np.uint64(1)] * xc
            s2 += values[at + np.uint64(2)] * xc
            at += size
    return s0, s1, s2


@njit(cache=True, inline="always", fastmath=CONTRACT)
def two_rows(columns, values, x, zero, begin, end, size, row):
    """The same of two."""
    s0 = s1 = zero
    for k in range(begin, end):
        j, at = np.uint64(columns[k]) * size, k * size * size + row
        for c in range(size):
            xc = x[j + c]
            s0 += values[at] * xc
            s1 += values[at + np.uint64(1)] * xc
            at += size
    return s0, s1


@njit(cache=True, inline="always", fastmath=CONTRACT)
def one_row(columns, values, x, zero, begin, end, size, row):
    """The same of one."""
    s0 = zero
    for k in range(begin, end):
        j, at = np.uint64(columns[k]) * size, k * size * size + row
        for c in range(size):
            s0 += values[at] * x[j + c]
            at += size
    return s0


@njit(cache=True)
def put(b, y, row, total):
    """y[row] = b[row] − total, or total where there is no b; beyond the ends of the vectors nothing."""
    if row < np.uint64(y.size):
        if b.size == 0:
            y[row] = total
        else:
            y[row] = (b[row] if row < np.uint64(b.size) else y.dtype.type(0)) - total


@njit(cache=True, inline="always")
def block_row(columns, values, x, begin, end, size, at, b, y):
    """y = b − (blocks begin to end) x in the rows from ``at`` on, or the product alone where there is no b."""
    zero, row = y.dtype.type(0), np.uint64(0)
    for _ in range(size // np.uint64(4)):
        s0, s1, s2, s3 = four_rows(columns, values, x, zero, begin, end, size, row)
        put(b, y, at + row, s0)
        put(b, y, at + row + np.uint64(1), s1)
        put(b, y, at + row + np.uint64(2), s2)
        put(b, y, at + row + np.uint64(3), s3)
        row += np.uint64(4)
    rest = size % np.uint64(4)
    if rest == 3:
        s0, s1, s2 = three_rows(columns, values, x, zero, begin, end, size, row)
        put(b, y, at + row, s0)
        put(b, y, at + row + np.uint64(1), s1)
        put(b, y, at + row + np.uint64(2), s2)
    elif rest == 2:
        s0, s1 = two_rows(columns, values, x, zero, begin, end, size, row)
        put(b, y, at + row, s0)
        put(b, y, at + row + np.uint64(1), s1)
    elif rest == 1:
        put(b, y, at + row, one_row(columns, values, x, zero, begin, end, size, row))


@njit(cache=True, inline="always")
def size_of(block, shape):
    """The block size: a constant where the tuple has entries."""
    return np.uint64(len(block)) if len(block) > 0 else np.uint64(shape[2])


@njit(cache=True)
def solve(rows, ptr, columns, blocks, inverse, b, w, out, nothing, block):
    """w = (I + N)⁻¹ b, out = D⁻¹ w, one block row after the other. ``nothing``: an empty vector."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    unit = inverse.size == 0
    for p in range(np.uint64(rows.size)):
        at = np.uint64(rows[p]) * size
        block_row(columns, values, w, np.uint64(ptr[p]), np.uint64(ptr[p + np.uint64(1)]), size, at, b, w)
        if not unit:
            block_row(rows, inverses, w, p, p + np.uint64(1), size, at, nothing, out)
        else:
            for r in range(at, min(at + size, np.uint64(out.size))):
                out[r] = w[r]


@njit(cache=True, fastmath=CONTRACT)
def solve_adjoint(rows, ptr, columns, blocks, inverse, b, w, out, block):
    """out = (I + N)⁻ᴴ D⁻ᴴ b: a block row that is known is taken from those that it is in."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    zero, n = w.dtype.type(0), np.uint64(out.size)
    for p in range(np.uint64(rows.size)):
        at = np.uint64(rows[p]) * size
        for c in range(size):
            total = zero
            if inverse.size == 0:
                total = b[at + c] if at + c < n else zero
            else:
                for r in range(min(size, n - at)):
                    total += np.conj(inverses[(p * size + c) * size + r]) * b[at + r]
            w[at + c] = total
    for q in range(np.uint64(rows.size)):
        p = np.uint64(rows.size) - np.uint64(1) - q
        at = np.uint64(rows[p]) * size
        for k in range(np.uint64(ptr[p]), np.uint64(ptr[p + np.uint64(1)])):
            j = np.uint64(columns[k]) * size
            for c in range(size):
                total = zero
                for r in range(size):
                    total += np.conj(values[(k * size + c) * size + r]) * w[at + r]
                w[j + c] -= total
        for r in range(at, min(at + size, n)):
            out[r] = w[r]


@njit(parallel=True, cache=True)
def sweep(rows, ptr, columns, blocks, inverse, b, old, fresh, out, nothing, block, last):
    """fresh = b − N old; the last sweep adds out = D⁻¹ fresh. ``old`` may be ``fresh``: in place."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    count = rows.size
    for chunk in prange(CHUNKS):
        for p in range(np.uint64(chunk * count // CHUNKS), np.uint64((chunk + 1) * count // CHUNKS)):
            at = np.uint64(rows[p]) * size
            block_row(columns, values, old, np.uint64(ptr[p]), np.uint64(ptr[p + np.uint64(1)]), size, at, b, fresh)
            if not last:
                continue
            if inverse.size > 0:
                block_row(rows, inverses, fresh, p, p + np.uint64(1), size, at, nothing, out)
            else:
                for r in range(at, min(at + size, np.uint64(out.size))):
                    out[r] = fresh[r]
