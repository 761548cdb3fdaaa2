"""The product of a CSR row with a vector, for Numba kernels; csr.cpp has all kernels of this format."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import helper
from swell.formats.kernels.sums import empty_sum, plus_product, sum_value

ONE, TWO = np.uint64(1), np.uint64(2)


@helper(inlined=True)
def row_product(indices, data, x, zero, begin, end):
    """Return Σ data[k] x[indices[k]] over the entries k = begin to end − 1. ``zero``: a zero of the type of the sum.

    Two independent sums, of even and of odd entries, let additions overlap. Unsigned indices spare Numba's test for
    negative ones."""
    even = odd = empty_sum(zero)
    k, end = np.uint64(begin), np.uint64(end)
    while k + ONE < end:
        even = plus_product(even, data[k], x[np.uint64(indices[k])])
        odd = plus_product(odd, data[k + ONE], x[np.uint64(indices[k + ONE])])
        k += TWO
    if k < end:
        even = plus_product(even, data[k], x[np.uint64(indices[k])])
    return sum_value(even) + sum_value(odd)
