"""The product of four rows of a dense block with a vector, for Numba kernels; bsr.cpp has the kernels of this format.
"""
from __future__ import annotations

import numpy as np

from swell.core.compiled import helper


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
