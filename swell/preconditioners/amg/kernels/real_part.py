"""Real parts of turned rows, and mirrored values, on the CPU, threads sharing the rows; see real_part.py one folder up.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def modulus(z):
    """Return |z| by operations that a GPU rounds alike; it neither overflows nor underflows."""
    if z.imag == 0:
        return abs(z.real)
    largest = max(abs(z.real), abs(z.imag))
    a, b = z.real / largest, z.imag / largest
    return largest * np.sqrt(a * a + b * b)


@parallel
def turned(indptr, indices, data, out):
    """Write ``out``, bᵢⱼ = Re(aᵢⱼ āᵢᵢ) / |aᵢᵢ| for each entry of a complex CSR matrix; 0 in rows without a diagonal."""
    for i in prange(indptr.size - 1):
        a, b = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                size = modulus(data[k])
                a, b = (data[k].real / size, data[k].imag / size) if size > 0 else (0.0, 0.0)
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = data[k].real * a + data[k].imag * b


@parallel
def mirrored(indptr, indices, data, mirror):
    """Write mirror[k] = aⱼᵢ for each entry k = (i, j) of a CSR matrix with sorted columns; 0 where it is not stored."""
    for i in prange(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[k])
            low, high = np.int64(indptr[j]), np.int64(indptr[j + np.uint64(1)])
            end = high
            while low < high:                                    # the first entry of row j whose column is at least i
                middle = (low + high) // 2
                if indices[middle] < i:
                    low = middle + 1
                else:
                    high = middle
            mirror[k] = data[low] if low < end and indices[low] == i else 0.0
