"""Gauss–Seidel on the CPU, in natural order and by colours; ``gauss_seidel.cu`` has the colours for a GPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def natural(indptr, indices, data, inverse, b, x, forward):
    """Sweep once over all rows of A x = b, in place in x: upwards if ``forward``, else downwards.

    ``indptr``, ``indices``, ``data``: A in CSR. ``inverse``: 1 / diagonal. Unsigned indices avoid Numba's test for
    negative ones.
    """
    n = x.size
    for row in range(n):
        i = np.uint64(row if forward else n - 1 - row)
        total = b[i]
        for k in range(indptr[i], indptr[i + np.uint64(1)]):
            total -= data[np.uint64(k)] * x[np.uint64(indices[np.uint64(k)])]
        x[i] += total * inverse[i]


@parallel
def color(rows, ptr, inverse, columns, values, b, x):
    """Solve A x = b for the rows of one colour, which do not couple, in place in x.

    ``rows``: the row in each place; ``inverse``: 1 / its diagonal. Slice s has the places 32 s to 32 s + 31. The k-th
    off-diagonal of place 32 s + t is at ptr[s] + 32 k + t of ``columns`` and ``values``. −1 marks a missing row or
    column.
    """
    for s in prange(ptr.size - 1):
        for lane in range(32):
            i = rows[32 * s + lane]
            if i < 0:
                continue
            total = b[i]
            for at in range(ptr[s] + lane, ptr[s + 1], 32):
                if columns[at] < 0:
                    break
                total -= values[at] * x[columns[at]]
            x[i] = total * inverse[32 * s + lane]
