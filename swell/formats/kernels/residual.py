"""The true residual of a CSR system and the size of its rounding errors, on the CPU; ``residual.cu`` for the GPU.

r = b − A x and t = |A||x| + |b|, row by row, in double precision for every type of A: a computed rᵢ differs from the
exact one by at most about mᵢ eps tᵢ, with mᵢ entries in row i. `precise` computes r with a small multiple of eps² in
place of eps: every product and every sum keeps its rounding error (Ogita, Rump and Oishi, "Accurate sum and dot
product", SIAM J. Sci. Comput. 26, 2005, algorithm Dot2). No kernel here may reorder or fuse operations.

A matrix across ranks adds its entries in ghost columns by a second call, with ``boundary``: the row of each row of A.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange, types
from numba.extending import overload

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.intrinsics import fma
from swell.core.kernels.vector import CHUNKS, chunk_rows, total


@parallel
def residual(indptr, indices, data, boundary, x, b, r, terms):
    """r = b − A x and terms = |A||x| + |b|. With ``boundary``, of A's length: r[boundary] −= A x, terms[boundary] +=
    |A||x|, and b is not read."""
    for k in prange(indptr.size - 1):
        i = np.int64(boundary[k]) if boundary.size else np.int64(k)
        value, size = (r[i], terms[i]) if boundary.size else (b[i], abs(b[i]))
        for e in range(indptr[k], indptr[k + 1]):
            product = (1.0 * data[np.uint64(e)]) * x[np.uint64(indices[np.uint64(e)])]
            value, size = value - product, size + abs(product)
        r[i], terms[i] = value, size


@parallel
def precise(indptr, indices, data, boundary, x, b, r, low):
    """r + low = b − A x, as two numbers a row: the sum and its rounding error. ``boundary``: as for `residual`."""
    for k in prange(indptr.size - 1):
        i = np.int64(boundary[k]) if boundary.size else np.int64(k)
        high, rest = (r[i], low[i]) if boundary.size else (b[i], 0 * b[i])
        for e in range(indptr[k], indptr[k + 1]):
            high, rest = minus_product(high, rest, data[np.uint64(e)], x[np.uint64(indices[np.uint64(e)])])
        r[i], low[i] = high, rest


@njit(cache=True)
def minus_real(high, rest, a, x):
    """Return (high, rest) after high + rest −= a x for real numbers; ``rest`` takes the rounding errors."""
    product = a * x
    error = fma(a, x, -product)                  # a x = product + error
    after = high - product
    taken = high - after
    lost = (high - (after + taken)) + (taken - product)          # high − product = after + lost
    return after, rest + (lost - error)


def minus_product(high, rest, a, x):
    """Return (high, rest) after high + rest −= a x, for real or complex numbers in double precision."""


@overload(minus_product, inline="always")
def _minus_product(high, rest, a, x):
    if isinstance(high, types.Complex):
        return _minus_complex
    return lambda high, rest, a, x: minus_real(high, rest, np.float64(a), np.float64(x))


def _minus_complex(high, rest, a, x):
    re, low_re = minus_real(high.real, rest.real, np.float64(a.real), np.float64(x.real))
    re, low_re = minus_real(re, low_re, -np.float64(a.imag), np.float64(x.imag))
    im, low_im = minus_real(high.imag, rest.imag, np.float64(a.real), np.float64(x.imag))
    im, low_im = minus_real(im, low_im, np.float64(a.imag), np.float64(x.real))
    return complex(re, im), complex(low_re, low_im)


@parallel
def assess(r, terms, x, out):
    """out = Σ|rᵢ|², Σtᵢ², max |rᵢ|, max |xᵢ|, max |rᵢ|/tᵢ, with t = ``terms``; NaN if any of them meets NaN."""
    parts = np.zeros((5, CHUNKS))
    for c in prange(CHUNKS):
        rr = tt = most_r = most_x = ratio = 0.0
        for i in chunk_rows(r.size, c):
            of_r, of_x, t = abs(r[i]), float(abs(x[i])), terms[i]
            rr, tt = rr + of_r * of_r, tt + t * t
            most_r, most_x = larger(of_r, most_r), larger(of_x, most_x)
            if of_r != 0:
                ratio = larger(of_r / t if t != 0 else math.inf, ratio)
        parts[0, c], parts[1, c], parts[2, c], parts[3, c], parts[4, c] = rr, tt, most_r, most_x, ratio
    out[0], out[1] = total(parts[0]), total(parts[1])
    for k in range(2, 5):
        most = 0.0
        for c in range(CHUNKS):
            most = larger(parts[k, c], most)
        out[k] = most


@helper
def larger(a, b):
    """Return the larger number; NaN if a is NaN."""
    return a if a > b or a != a else b
