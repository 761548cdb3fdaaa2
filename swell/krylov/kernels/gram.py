"""Inner products of two blocks of vectors on the CPU; ``gram.cu`` has the same kernel for a GPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels import block
from swell.core.kernels.vector import FAST

KERNELS = ("gram",)


@parallel(fastmath=FAST)
def gram(state, P, Q, partial, rows, count, height):
    """partial = Pᴴ Q, of each slice of rows.

    ``state``, ``rows``: as in core/kernels/block.py. P and Q have ``count`` vectors; ``partial`` has shape (slices,
    count, count). ``height``: threads of a block on a GPU."""
    if block.all_stopped(state):
        return
    none = np.empty(0, np.float32)
    for p in prange(rows.size - 1):
        partial[p] = 0
        for lo in range(rows[p], rows[p + 1], block.TILE):
            block.gram(P, Q, none, lo, min(lo + block.TILE, rows[p + 1]), partial[p])
