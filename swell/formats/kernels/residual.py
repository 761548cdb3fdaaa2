"""Residuals with the rounding errors of products and sums, for Numba kernels; residual.cpp has the kernels of a solve.

No function here may reorder or fuse operations.
"""
from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from swell.core.compiled import njit
from swell.core.kernels.intrinsics import fma


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
