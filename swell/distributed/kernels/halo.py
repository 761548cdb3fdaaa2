"""Halo kernels of a distributed product on the CPU: pack the entries to send, add the off-diagonal product. GPU:
``halo.cu``."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels.vector import CHUNKS, chunk_rows, total


@parallel
def pack(index, x, out):
    """Write out[k] = x[index[k]]."""
    for k in prange(index.size):
        out[k] = x[index[k]]


@parallel
def add_product(rows, indptr, indices, data, x, out, alpha):
    """Add to out: out[rows] += alpha A x. A is in CSR (indptr, indices, data), with one row for each of ``rows``, which
    are distinct."""
    for k in prange(rows.size):
        total = data.dtype.type(0)
        for at in range(indptr[k], indptr[k + 1]):
            total += data[at] * x[indices[at]]
        out[rows[k]] += alpha * total


@parallel
def add_product_dot(rows, indptr, indices, data, x, out, w, dots):
    """Like ``add_product`` with alpha = 1: out[rows] += A x. It also adds the resulting change of the inner product (w,
    out) to dots[0]."""
    parts = np.empty(CHUNKS, dots.dtype)
    for c in prange(CHUNKS):
        change = dots.dtype.type(0)
        for k in chunk_rows(rows.size, c):
            value = data.dtype.type(0)
            for at in range(indptr[k], indptr[k + np.uint64(1)]):
                value += data[at] * x[indices[at]]
            before = out[rows[k]]
            after = before + value
            out[rows[k]] = after
            change += np.conj(w[rows[k]]) * after - np.conj(w[rows[k]]) * before
        parts[c] = change
    dots[0] += total(parts)
