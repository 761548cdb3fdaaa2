"""Products with the inverses of diagonal blocks, on the CPU; ``block_jacobi.cu`` is the GPU's version."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel


@parallel
def apply(inverses, x, out, block, alpha, beta):
    """Write out = alpha diag(inverses) x + beta out; beta = 0 never reads out. ``inverses``: array (blocks, block,
    block); ``block``: rows of a block; the last block of x may be shorter."""
    n = x.size
    for k in prange(inverses.shape[0]):
        first = k * block
        size = min(block, n - first)
        for i in range(size):
            total = out.dtype.type(0)
            for j in range(size):
                total += inverses[k, i, j] * x[first + j]
            out[first + i] = alpha * total if beta == 0 else alpha * total + beta * out[first + i]


@parallel
def apply_adjoint(inverses, x, out, block, alpha, beta):
    """Write out = alpha diag(inverses)ᴴ x + beta out; beta = 0 never reads out. Arguments as in `apply`."""
    n = x.size
    for k in prange(inverses.shape[0]):
        first = k * block
        size = min(block, n - first)
        for i in range(size):
            total = out.dtype.type(0)
            for j in range(size):
                total += np.conj(inverses[k, j, i]) * x[first + j]
            out[first + i] = alpha * total if beta == 0 else alpha * total + beta * out[first + i]
