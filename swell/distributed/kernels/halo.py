"""Halo kernels of a distributed product on the CPU: pack the entries to send, add the off-diagonal product. GPU:
``halo.cu``.

The off-diagonal part A is in BSR, with blocks of ``block`` rows, row-major; blocks of 1 are CSR. It has one row for
each of ``rows``, which are distinct.
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


@helper
def row_product(indptr, indices, values, x, block, k):
    """Return row k of A x; ``values``: all blocks of A, flattened."""
    i, r = k // block, k % block
    total = values.dtype.type(0)
    for at in range(indptr[i], indptr[i + np.uint64(1)]):
        first, j = (np.uint64(at) * block + r) * block, np.uint64(indices[at]) * block
        for c in range(block):
            total += values[first + c] * x[j + c]
    return total


@parallel
def add_product(rows, indptr, indices, data, x, out, block, alpha):
    """Add to out: out[rows] += alpha A x."""
    values, size = data.reshape(-1), np.uint64(block)
    for k in prange(rows.size):
        out[rows[k]] += alpha * row_product(indptr, indices, values, x, size, np.uint64(k))


@parallel
def add_product_dot(rows, indptr, indices, data, x, out, w, dots, block):
    """Like ``add_product`` with alpha = 1: out[rows] += A x. It also adds the resulting change of the inner product (w,
    out) to dots[0]."""
    parts, values, size = np.empty(CHUNKS, dots.dtype), data.reshape(-1), np.uint64(block)
    for c in prange(CHUNKS):
        change = dots.dtype.type(0)
        for k in chunk_rows(rows.size, c):
            before = out[rows[k]]
            after = before + row_product(indptr, indices, values, x, size, np.uint64(k))
            out[rows[k]] = after
            change += np.conj(w[rows[k]]) * after - np.conj(w[rows[k]]) * before
        parts[c] = change
    dots[0] += total(parts)
