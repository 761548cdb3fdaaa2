"""Facts of a matrix in CSR, gathered in one pass on the CPU; ``facts.cu`` is for GPUs."""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, parallel
from swell.core.kernels.vector import CHUNKS
from swell.formats.kernels.csr import place_of
from swell.formats.slots import COUNT, Extreme, Total

TOTALS = len(Total)
NOT_FINITE, OUT_OF_RANGE, DISORDERED, ADJOINING, UNMATCHED, EMPTY_ROWS, ZERO_DIAGONAL, DOMINANT_ROWS, UNBALANCED_ROWS, \
    LENGTH2, FROBENIUS2, SKEW2, SKEW_HERMITIAN2 = Total
LARGEST, DIFFERENCE, HERMITIAN_DIFFERENCE, NORM_INF, LONGEST_ROW, BANDWIDTH, DIAGONAL_LARGEST, DIAGONAL_LEAST, \
    DIAGONAL_LOWEST, DIAGONAL_IMAGINARY, FIRST_ZERO, REACH = Extreme


@helper
def larger(a, b):
    """The larger of a and b; NaN if either is NaN."""
    return a if a > b or np.isnan(a) else b


@helper
def modulus(re, im):
    """√(re² + im²); by the slower ``hypot`` if a square would over- or underflow."""
    if im == 0:
        return abs(re)
    square = re * re + im * im
    return math.sqrt(square) if 1e-280 < square < 1e280 else math.hypot(re, im)


@helper
def mirror_image(indptr, indices, data, row, column):
    """Return (the entry at a row and column of a CSR matrix, or 0; True if it is stored)."""
    first, last = np.int64(indptr[row]), np.int64(indptr[row + 1])
    if 0 <= first <= last <= data.size:
        place = place_of(indices, first, last, column)
        if place < last:
            return data[np.uint64(place)], True
    return data.dtype.type(0), False


@helper
def look_at_pair(v, value, other, weight):
    """Update the facts ``v`` by the difference of ``value``, an aᵢⱼ, and ``other``, its aⱼᵢ.

    ``weight``: how often the pair counts in the Frobenius norms. ``v``: see `gather`."""
    re, im = np.float64(value.real) - other.real, np.float64(value.imag) - other.imag
    mirrored = np.float64(value.imag) + other.imag
    if re != 0 or im != 0 or mirrored != 0:
        plain, hermitian = modulus(re, im), modulus(re, mirrored)
        v[DIFFERENCE] = larger(plain, v[DIFFERENCE])
        v[HERMITIAN_DIFFERENCE] = larger(hermitian, v[HERMITIAN_DIFFERENCE])
        v[SKEW2] += weight * plain * plain
        v[SKEW_HERMITIAN2] += weight * hermitian * hermitian


@helper
def look_at_row(v, indptr, indices, data, row, columns, zero, search):
    """Update ``v``, the facts of some rows (indices: formats/slots.py), by row ``row`` of a CSR matrix.

    ``columns``: columns of the matrix. ``search``: compare aᵢⱼ with aⱼᵢ; only an entry below the diagonal searches for
    its mirror image. ``zero`` has the type in which rows are summed. Returns the number of entries above the diagonal,
    less the number of mirror images found: the sum over all rows is the number of entries above the diagonal without a
    mirror image."""
    begin, end = np.int64(indptr[row]), np.int64(indptr[row + 1])
    if not 0 <= begin <= end <= data.size:
        v[OUT_OF_RANGE] += 1
        return 0
    total, diagonal, size, largest, squares = zero, zero, 0.0, 0.0, 0.0
    last, unmatched = np.int64(-2), 0
    bad = disordered = adjoining = outside = 0
    for k in range(np.uint64(begin), np.uint64(end)):
        column, value = np.int64(indices[k]), data[k]
        absolute = modulus(np.float64(value.real), np.float64(value.imag))
        if not absolute < np.inf:                # NaN, Inf, or a complex number whose modulus overflows
            bad += not (np.isfinite(value.real) and np.isfinite(value.imag))
        disordered += column <= last
        adjoining += column == last + 1
        last = column
        total, size = total + value, size + absolute
        largest = max(largest, absolute)
        squares += absolute * absolute
        if column < 0 or column >= columns:
            outside += 1
            continue
        if column == row:
            diagonal += value
            if search:
                look_at_pair(v, value, value, 1.0)
        elif search and column > row:
            unmatched += 1
        elif search:
            other, there = mirror_image(indptr, indices, data, column, row)
            unmatched -= there
            v[UNMATCHED] += not there
            look_at_pair(v, value, other, 2.0)
    d, length = abs(diagonal), np.float64(end - begin)
    if bad or outside or disordered or begin == end:
        v[NOT_FINITE] += bad
        v[OUT_OF_RANGE] += outside
        v[DISORDERED] += disordered
        v[EMPTY_ROWS] += begin == end
    else:                                        # columns ascend, so the row's ends are farthest from the diagonal
        reach = max(row - np.int64(indices[np.uint64(begin)]), last - row)
        v[BANDWIDTH] = max(np.float64(reach), v[BANDWIDTH])
    v[ADJOINING] += adjoining
    if d == 0:
        v[ZERO_DIAGONAL] += 1
        v[FIRST_ZERO] = max(-np.float64(row), v[FIRST_ZERO])
    v[DOMINANT_ROWS] += d >= (size - d) * (1 - 1e-12)
    v[UNBALANCED_ROWS] += not abs(total) <= 1e-12 * size
    v[LENGTH2] += length * length
    v[FROBENIUS2] += squares
    v[LARGEST] = max(v[LARGEST], largest)
    v[NORM_INF] = larger(size, v[NORM_INF])
    v[LONGEST_ROW] = max(v[LONGEST_ROW], length)
    v[DIAGONAL_LARGEST] = max(v[DIAGONAL_LARGEST], d)
    v[DIAGONAL_LEAST] = max(v[DIAGONAL_LEAST], -d)
    v[DIAGONAL_LOWEST] = max(v[DIAGONAL_LOWEST], -diagonal.real)
    v[DIAGONAL_IMAGINARY] = max(v[DIAGONAL_IMAGINARY], abs(diagonal.imag))
    v[REACH] = max(v[REACH], size - 2 * diagonal.real)
    return unmatched


@parallel
def look_at_rows(indptr, indices, data, parts, unmatched, columns, zero, search):
    """Gather facts of all rows of a CSR matrix in parallel: `look_at_row` for each row, in chunks.

    Writes ``parts[c]``, the facts of chunk c, and ``unmatched[c]``, the sum of what `look_at_row` returns. ``columns``:
    columns of the matrix. ``search``: compare aᵢⱼ with aⱼᵢ. ``zero`` has the type in which rows are summed."""
    rows = indptr.size - 1
    for c in prange(CHUNKS):
        for row in range(np.int64(c) * rows // CHUNKS, (np.int64(c) + 1) * rows // CHUNKS):
            unmatched[c] += look_at_row(parts[c], indptr, indices, data, row, columns, zero, search)


@parallel
def look_above(indptr, indices, data, parts, columns):
    """Update ``parts``, the facts of each chunk of rows, by the entries above the diagonal without a mirror image.

    The first three arrays are a CSR matrix with ``columns`` columns."""
    rows = indptr.size - 1
    for c in prange(CHUNKS):
        for row in range(np.int64(c) * rows // CHUNKS, (np.int64(c) + 1) * rows // CHUNKS):
            for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
                column = np.int64(indices[np.uint64(k)])
                if row < column < columns and not mirror_image(indptr, indices, data, column, row)[1]:
                    parts[c][UNMATCHED] += 1
                    look_at_pair(parts[c], data[np.uint64(k)], data.dtype.type(0), 2.0)


def gather(indptr, indices, data, out, columns, search):
    """Write the facts of a CSR matrix, float64 numbers indexed by the enumerations in formats/slots.py, into ``out``.

    ``columns``: columns of the matrix. ``search``: compare aᵢⱼ with aⱼᵢ, for a square matrix."""
    parts, unmatched = np.zeros((CHUNKS, COUNT)), np.zeros(CHUNKS, np.int64)
    parts[:, TOTALS:] = -np.inf
    zero = data.dtype.type(0) * np.float64(1)
    look_at_rows(indptr, indices, data, parts, unmatched, columns, zero, search)
    if unmatched.sum() and not parts[:, OUT_OF_RANGE].any():
        look_above(indptr, indices, data, parts, columns)
    out[:TOTALS] = parts[:, :TOTALS].sum(axis=0)
    out[TOTALS:] = parts[:, TOTALS:].max(axis=0)                # NaN if any part is NaN
