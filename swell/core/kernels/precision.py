"""Conversion of vectors between two precisions, on a CPU; ``precision.cu`` is the GPU version.

See core/in_precision.py. A vector has ``width`` columns; the values of a row are contiguous.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total


@parallel
def enter(x, scale, factor, width, y):
    """y = factor[0] scale x, rounded to the type of y.

    x and y: row-major (n, width), flattened; ``scale``: n numbers, one a row; ``factor``: an array of one number."""
    for i in prange(scale.size):
        for at in range(i * width, (i + 1) * width):
            y[at] = factor[0] * (scale[i] * x[at])


@parallel
def leave(y, scale, factor, width, out, alpha, beta):
    """out = alpha scale y / factor[0] + beta out; beta = 0 never reads out.

    y and out: row-major (n, width), flattened; ``scale``: n numbers, one a row; ``factor``: an array of one number."""
    inverse = 1 / factor[0]
    for i in prange(scale.size):
        for at in range(i * width, (i + 1) * width):
            value = alpha * (scale[i] * (inverse * y[at]))
            out[at] = value if beta == 0 else value + beta * out[at]


@parallel(fastmath=FAST)
def leave_dots(y, scale, factor, width, out, w, dots):
    """out = scale y / factor[0]; for each column c, dots[c] = (w, out) and dots[width + c] = (out, out).

    y, out, w: row-major (n, width), flattened; ``scale``: n numbers, one a row; ``factor``: an array of one number."""
    inverse = 1 / factor[0]
    parts = np.empty((2, width, CHUNKS), dots.dtype)
    for c in prange(CHUNKS):
        for column in range(width):
            wy, yy = dots.dtype.type(0), 0.0
            for i in chunk_rows(scale.size, c):
                at = i * np.uint64(width) + np.uint64(column)
                value = scale[i] * (inverse * y[at])
                out[at] = value
                wy += np.conj(w[at]) * value
                yy += (np.conj(value) * value).real
            parts[0, column, c], parts[1, column, c] = wy, yy
    for column in range(width):
        dots[column], dots[width + column] = total(parts[0, column]), total(parts[1, column])
