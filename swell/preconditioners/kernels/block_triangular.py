"""Block triangular solves on the CPU; ``swell/preconditioners/block_factor.py`` describes the factor.

Arguments of the kernels: ``order[i]``, the block of the vectors b and out that belongs to block row i; empty for equal
numbers. ``ptr[i]`` to ``ptr[i + 1]`` − 1, the places of the blocks N of block row i in ``columns`` and ``blocks``.
``diagonal``, the place of the first inverse diagonal block in ``blocks``; −1 for D = I. Work vectors are numbered as
the block rows.

``block`` is a tuple with one number for each row of a block, so that the compiler knows the size and unrolls loops. An
empty tuple means that the size is read from ``blocks``. Unsigned indices save Numba's test for negative ones.
``_nrt=False`` removes Numba's atomic reference counts of arrays: inlined functions had them in their loops, where they
took longer than the solve. Such functions must not allocate. ``forceinline`` lets LLVM inline functions, each compiled
once; Numba's own inlining takes longer to compile.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import CONTRACT, helper, njit, parallel
from swell.formats.kernels.bsr import four_rows

CHUNKS = 64             # more than there are cores, so that threads finish at about the same time
GPU_ONLY = ("level", "levels", "sync_free")      # a CPU solves row by row and needs no levels


@helper(fastmath=CONTRACT, inlined=True)
def put(b, y, from_row, row, product, sign):
    """Write y[row] = b[from_row] + ``sign`` ``product``. b counts as zero beyond its end; nothing is written beyond the
    end of y."""
    if row < np.uint64(y.size):
        y[row] = (b[from_row] if from_row < np.uint64(b.size) else y.dtype.type(0)) + sign * product


@helper(fastmath=CONTRACT, inlined=True)
def put_four(b, y, from_row, row, count, p0, p1, p2, p3, sign):
    """Like `put`, for ``count`` ≤ 4 rows from ``row`` on with the products p0 to p3."""
    put(b, y, from_row, row, p0, sign)
    if count > 1:
        put(b, y, from_row + np.uint64(1), row + np.uint64(1), p1, sign)
    if count > 2:
        put(b, y, from_row + np.uint64(2), row + np.uint64(2), p2, sign)
    if count > 3:
        put(b, y, from_row + np.uint64(3), row + np.uint64(3), p3, sign)


@helper(inlined=True)
def numbered(order, i, mapped):
    """Return ``order[i]`` if ``mapped``, else i."""
    return np.uint64(order[i]) if mapped else i


@helper(fastmath=CONTRACT, inlined=True)
def block_row(order, mapped, columns, values, x, begin, end, size, b, from_row, y, row):
    """Write y = b − (sum of the blocks ``begin`` to ``end`` − 1 times their parts of x) in ``size`` rows of b from
    ``from_row`` on, and of y from ``row`` on. x is numbered by ``order`` if ``mapped``.

    The sum over blocks is added to b at the end: the blocks need not wait for one another. Up to 4 × 4 the sums stay in
    registers; for larger blocks they are in y."""
    zero, minus, area = y.dtype.type(0), y.dtype.type(-1), size * size
    if size <= 4:
        s0 = s1 = s2 = s3 = zero
        for k in range(begin, end):
            j = numbered(order, np.uint64(columns[k]), mapped) * size
            p0, p1, p2, p3 = four_rows(values, x, zero, k * area, j, size, size, size)
            s0, s1, s2, s3 = s0 + p0, s1 + p1, s2 + p2, s3 + p3
        put_four(b, y, from_row, row, size, s0, s1, s2, s3, minus)
    else:
        for r in range(size):
            put(b, y, from_row + r, row + r, zero, minus)
        for k in range(begin, end):
            j = numbered(order, np.uint64(columns[k]), mapped) * size
            for first in range(np.uint64(0), size, np.uint64(4)):
                count = min(size - first, np.uint64(4))
                p0, p1, p2, p3 = four_rows(values, x, zero, k * area + first * size, j, size, size, count)
                put_four(y, y, row + first, row + first, count, p0, p1, p2, p3, minus)


@helper(fastmath=CONTRACT, inlined=True)
def finish(values, k, x, j, size, y, row):
    """Write y = (block k of ``values``) × (``size`` rows of x from ``j`` on), in rows from ``row`` on; a copy if k is
    negative."""
    if k >= 0:
        zero, area = y.dtype.type(0), size * size
        for first in range(np.uint64(0), size, np.uint64(4)):
            count = min(size - first, np.uint64(4))
            p0, p1, p2, p3 = four_rows(values, x, zero, np.uint64(k) * area + first * size, j, size, size, count)
            put_four(x[:0], y, row, row + first, count, p0, p1, p2, p3, y.dtype.type(1))
    else:
        for r in range(min(size, np.uint64(y.size) - row)):
            y[row + r] = x[j + r]


@njit(cache=True, inline="always")
def size_of(block, shape):
    """Return the number of rows of a block: the length of the tuple ``block``, a compile-time constant, or shape[2] if
    the tuple is empty. ``shape`` is (blocks, size, size)."""
    return np.uint64(len(block)) if len(block) > 0 else np.uint64(shape[2])


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def solve(order, ptr, columns, blocks, b, w, out, block, diagonal, lower):
    """Write w = (I + N)⁻¹ b and out = D⁻¹ w, one block row after the other, upwards unless ``lower``. out may be b."""
    size, values, count = size_of(block, blocks.shape), blocks.reshape(-1), np.uint64(ptr.size - 1)
    for t in range(count):
        i = t if lower else count - np.uint64(1) - t
        at, row = i * size, numbered(order, i, order.size > 0) * size
        block_row(order, False, columns, values, w, np.uint64(ptr[i]), np.uint64(ptr[i + np.uint64(1)]), size, b, row,
                  w, at)
        finish(values, diagonal + np.int64(i) if diagonal >= 0 else -1, w, at, size, out, row)


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def solve_adjoint(order, ptr, columns, blocks, b, w, out, block, diagonal, lower):
    """Write out = (I + N)⁻ᴴ D⁻ᴴ b; w is work space. Each solved block row is subtracted from the block rows that need
    it. ``lower`` is the triangle of N."""
    size, values, count = size_of(block, blocks.shape), blocks.reshape(-1), np.uint64(ptr.size - 1)
    zero, n = w.dtype.type(0), np.uint64(out.size)
    for i in range(count):
        at, row = i * size, numbered(order, i, order.size > 0) * size
        for c in range(size):
            total = zero
            if diagonal < 0:
                total = b[row + c] if row + c < n else zero
            else:
                for r in range(min(size, n - row)):
                    total += np.conj(values[((np.uint64(diagonal) + i) * size + r) * size + c]) * b[row + r]
            w[at + c] = total
    for t in range(count):
        i = count - np.uint64(1) - t if lower else t
        at, row = i * size, numbered(order, i, order.size > 0) * size
        for k in range(np.uint64(ptr[i]), np.uint64(ptr[i + np.uint64(1)])):
            j = np.uint64(columns[k]) * size
            for r in range(size):
                solved = w[at + r]
                for c in range(size):
                    w[j + c] -= np.conj(values[(k * size + r) * size + c]) * solved
        for r in range(min(size, n - row)):
            out[row + r] = w[at + r]


@parallel(fastmath=CONTRACT)
def sweep(order, ptr, columns, blocks, b, old, fresh, block, diagonal, first, last, whole):
    """Write fresh = b − N old; if ``last``, fresh = D⁻¹ (b − N old). ``old`` is numbered as b if ``first``, ``fresh``
    if ``last``; else they are work vectors. In-place sweeps pass ``old`` as ``fresh``. ``whole`` is for a GPU."""
    values, count = blocks.reshape(-1), ptr.size - 1
    for chunk in prange(CHUNKS):
        size, mapped = size_of(block, blocks.shape), order.size > 0
        reduced = np.empty(blocks.shape[2], fresh.dtype)
        for i in range(np.uint64(chunk * count // CHUNKS), np.uint64((chunk + 1) * count // CHUNKS)):
            begin, end, row = np.uint64(ptr[i]), np.uint64(ptr[i + np.uint64(1)]), numbered(order, i, mapped) * size
            if not last:
                block_row(order, mapped and first, columns, values, old, begin, end, size, b, row, fresh, i * size)
                continue
            block_row(order, mapped and first, columns, values, old, begin, end, size, b, row, reduced, np.uint64(0))
            finish(values, diagonal + np.int64(i) if diagonal >= 0 else -1, reduced, np.uint64(0), size, fresh, row)
