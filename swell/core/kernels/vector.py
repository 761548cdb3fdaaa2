"""How Numba's kernels add; vector operations are native (vector.cpp).

A sum consists of CHUNKS partial sums over ``chunk_rows``. Threads compute them, and ``total`` adds them in order. The
sum therefore has the same bits for any number of threads. Numba's own reduction over a parallel loop would not: it has
one partial sum for each thread.
"""
from __future__ import annotations

import numpy as np

from swell.core.compiled import helper

CHUNKS = 64             # partial sums of a sum
FAST = {"reassoc", "contract", "nsz"}       # sums may be reordered to vectorise; NaN and Inf keep their meaning


@helper
def chunk_rows(n, chunk):
    """Return the range of rows of chunk number ``chunk``, when n rows are cut into CHUNKS chunks.

    With unsigned indices Numba does not test for negative ones, and can vectorise loops. ``chunk`` is made signed: the
    index of a parallel loop is sometimes unsigned, and its products with signed integers would be floating-point
    numbers."""
    chunk = np.int64(chunk)
    return range(np.uint64(chunk * n // CHUNKS), np.uint64((chunk + 1) * n // CHUNKS))


@helper
def total(parts):
    """The sum of the parts, added in order."""
    added = parts.dtype.type(0)
    for k in range(parts.size):
        added += parts[k]
    return added
