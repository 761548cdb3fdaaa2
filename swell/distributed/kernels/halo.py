"""Halo kernels of a distributed product on the CPU: pack the entries to send, add the off-diagonal product. GPU:
``halo.cu``.

The off-diagonal part A is in BSR, row-major blocks; blocks of 1 are CSR. It has one row for each of ``rows``, which are
distinct. ``block`` is a tuple with as many numbers as a block has rows, so that the compiler knows the block size and
unrolls the loops. If it is empty, the shape of ``data`` gives the size.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, parallel
from swell.core.kernels.vector import CHUNKS, chunk_rows, total


@parallel
def pack(index, x, out):
    """Write out[k] = x[index[k]]."""
    for k in prange(index.size):
        out[k] = x[index[k]]


@helper(inlined=True)
def row_product(indptr, indices, values, x, block, any_size, k):
    """Return row k of A x. ``values``: all blocks of A, flattened; ``any_size``: the block size if ``block`` is
    empty."""
    size = np.uint64(len(block)) if len(block) > 0 else any_size
    i, r = k // size, k % size
    total = values.dtype.type(0)
    for at in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
        first, j = (at * size + r) * size, np.uint64(indices[at]) * size
        for c in range(size):
            total += values[first + c] * x[j + c]
    return total


@parallel
def add_product(rows, indptr, indices, data, x, out, block, alpha):
    """Add to out: out[rows] += alpha A x."""
    values, size = data.reshape(-1), np.uint64(data.shape[-1])
    for k in prange(rows.size):
        out[rows[k]] += alpha * row_product(indptr, indices, values, x, block, size, np.uint64(k))


@parallel
def add_product_dot(rows, indptr, indices, data, x, out, w, dots, block):
    """Like ``add_product`` with alpha = 1: out[rows] += A x. It also adds the resulting change of the inner product (w,
    out) to dots[0]."""
    parts, values, size = np.empty(CHUNKS, dots.dtype), data.reshape(-1), np.uint64(data.shape[-1])
    for c in prange(CHUNKS):
        change = dots.dtype.type(0)
        for k in chunk_rows(rows.size, c):
            before = out[rows[k]]
            after = before + row_product(indptr, indices, values, x, block, size, np.uint64(k))
            out[rows[k]] = after
            change += np.conj(w[rows[k]]) * after - np.conj(w[rows[k]]) * before
        parts[c] = change
    dots[0] += total(parts)
