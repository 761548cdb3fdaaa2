"""Block triangular solves on the CPU; ``swell/preconditioners/block_triangular.py`` describes the layout.

``block`` is a tuple with one number for each row of a block, so that the compiler knows the size and unrolls loops. An
empty tuple means that the size is read from ``blocks``. Blocks are column-major: four rows of a column are adjacent,
and their sums stay in registers. Unsigned indices save Numba's test for negative ones. ``_nrt=False`` removes Numba's
atomic reference counts of arrays: inlined functions had them in their loops, where they took longer than the solve.
Such functions must not allocate. ``forceinline`` lets LLVM inline functions, each compiled once; Numba's own inlining
takes longer to compile.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel
from swell.preconditioners.kernels.triangular import CONTRACT

CHUNKS = 64             # more than there are cores, so that threads finish at about the same time
GPU_ONLY = ("level", "levels", "sync_free")      # a CPU solves row by row and needs no levels


@njit(cache=True, forceinline=True, fastmath=CONTRACT, _nrt=False)
def four_rows(values, x, zero, at, j, size, count):
    """Return the products of ``count`` ≤ 4 rows of a block with x, four numbers; ``zero`` for missing rows.

    The column-major block has ``size`` rows. Its first wanted row begins at values[at], and its first column belongs to
    x[j]."""
    p0 = p1 = p2 = p3 = zero
    for c in range(size):
        xc = x[j + c]
        p0 += values[at] * xc
        if count > 1:
            p1 += values[at + np.uint64(1)] * xc
        if count > 2:
            p2 += values[at + np.uint64(2)] * xc
        if count > 3:
            p3 += values[at + np.uint64(3)] * xc
        at += size
    return p0, p1, p2, p3


@njit(cache=True, forceinline=True, _nrt=False)
def put(b, y, row, product, sign):
    """Write y[row] = b[row] + ``sign`` ``product``. b counts as zero beyond its end; nothing is written beyond the end
    of y."""
    if row < np.uint64(y.size):
        y[row] = (b[row] if row < np.uint64(b.size) else y.dtype.type(0)) + sign * product


@njit(cache=True, forceinline=True, _nrt=False)
def put_four(b, y, row, count, p0, p1, p2, p3, sign):
    """Like `put`, for ``count`` ≤ 4 rows from ``row`` on with the products p0 to p3."""
    put(b, y, row, p0, sign)
    if count > 1:
        put(b, y, row + np.uint64(1), p1, sign)
    if count > 2:
        put(b, y, row + np.uint64(2), p2, sign)
    if count > 3:
        put(b, y, row + np.uint64(3), p3, sign)


@njit(cache=True, forceinline=True, fastmath=CONTRACT, _nrt=False)
def block_row(columns, values, x, begin, end, size, row, b, y, sign):
    """Write y = b + ``sign`` × (sum of the blocks ``begin`` to ``end`` − 1 times their parts of x) in ``size`` rows
    from ``row`` on.

    Block k is at place k size² of ``values`` and in block column columns[k]. The sum over blocks is added to b at the
    end: the blocks need not wait for one another. Up to 4 × 4 the sums stay in registers; for larger blocks they are in
    y."""
    zero, area = y.dtype.type(0), size * size
    if size <= 4:
        s0 = s1 = s2 = s3 = zero
        for k in range(begin, end):
            p0, p1, p2, p3 = four_rows(values, x, zero, k * area, np.uint64(columns[k]) * size, size, size)
            s0, s1, s2, s3 = s0 + p0, s1 + p1, s2 + p2, s3 + p3
        put_four(b, y, row, size, s0, s1, s2, s3, sign)
    else:
        for r in range(row, row + size):
            put(b, y, r, zero, sign)
        for k in range(begin, end):
            for first in range(np.uint64(0), size, np.uint64(4)):
                count = min(size - first, np.uint64(4))
                p0, p1, p2, p3 = four_rows(values, x, zero, k * area + first, np.uint64(columns[k]) * size, size, count)
                put_four(y, y, row + first, count, p0, p1, p2, p3, sign)


@njit(cache=True, inline="always")
def size_of(block, shape):
    """Return the number of rows of a block: the length of the tuple ``block``, a compile-time constant, or shape[2] if
    the tuple is empty. ``shape`` is (blocks, size, size)."""
    return np.uint64(len(block)) if len(block) > 0 else np.uint64(shape[2])


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def solve(rows, ptr, columns, blocks, inverse, b, w, out, nothing, block):
    """Write w = (I + N)⁻¹ b and out = D⁻¹ w, one block row after the other. out may be b.

    The p-th visited block row is rows[p]; its blocks of N are ptr[p] to ptr[p + 1] − 1 of ``columns`` and ``blocks``.
    ``inverse`` has the inverse diagonal blocks, in the order of visits; it is empty for D = I. ``nothing`` is an empty
    vector."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    unit, plus, minus = inverse.size == 0, w.dtype.type(1), w.dtype.type(-1)
    for p in range(np.uint64(rows.size)):
        at = np.uint64(rows[p]) * size
        block_row(columns, values, w, np.uint64(ptr[p]), np.uint64(ptr[p + np.uint64(1)]), size, at, b, w, minus)
        if not unit:
            block_row(rows, inverses, w, p, p + np.uint64(1), size, at, nothing, out, plus)
        else:
            for r in range(at, min(at + size, np.uint64(out.size))):
                out[r] = w[r]


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def solve_adjoint(rows, ptr, columns, blocks, inverse, b, w, out, block):
    """Write out = (I + N)⁻ᴴ D⁻ᴴ b; w is work space. Each solved block row is subtracted from the block rows that need
    it. See `solve` for the layout."""
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


@parallel(fastmath=CONTRACT)
def sweep(rows, ptr, columns, blocks, inverse, b, old, fresh, out, nothing, block, last):
    """Write fresh = b − N old; if ``last``, also out = D⁻¹ fresh. In-place sweeps pass ``old`` as ``fresh``. See
    `solve` for the layout and ``nothing``."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    count, plus, minus = rows.size, out.dtype.type(1), out.dtype.type(-1)
    for chunk in prange(CHUNKS):
        for p in range(np.uint64(chunk * count // CHUNKS), np.uint64((chunk + 1) * count // CHUNKS)):
            at = np.uint64(rows[p]) * size
            begin, end = np.uint64(ptr[p]), np.uint64(ptr[p + np.uint64(1)])
            block_row(columns, values, old, begin, end, size, at, b, fresh, minus)
            if not last:
                continue
            if inverse.size > 0:
                block_row(rows, inverses, fresh, p, p + np.uint64(1), size, at, nothing, out, plus)
            else:
                for r in range(at, min(at + size, np.uint64(out.size))):
                    out[r] = fresh[r]
