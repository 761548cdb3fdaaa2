"""CSR kernels on the CPU. Products run over rows in parallel, each row on one thread for any ``lanes``.

Two independent sums a row, of its even and its odd entries, let additions overlap. Unsigned indices spare Numba's test
for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, parallel
from swell.core.kernels.vector import CHUNKS, chunk_rows, total
from swell.formats.kernels.sums import empty_sum, plus_product, sum_value

ONE, TWO = np.uint64(1), np.uint64(2)
INSERTION = 64          # entries up to which a row is sorted by insertion


@helper(inlined=True)
def row_product(indices, data, x, zero, begin, end):
    """Return Σ data[k] x[indices[k]] over the entries k = begin to end − 1. ``zero``: a zero of the type of the sum."""
    even = odd = empty_sum(zero)
    k, end = np.uint64(begin), np.uint64(end)
    while k + ONE < end:
        even = plus_product(even, data[k], x[np.uint64(indices[k])])
        odd = plus_product(odd, data[k + ONE], x[np.uint64(indices[k + ONE])])
        k += TWO
    if k < end:
        even = plus_product(even, data[k], x[np.uint64(indices[k])])
    return sum_value(even) + sum_value(odd)


@parallel
def product(indptr, indices, data, x, y, lanes, alpha, beta):
    """y = alpha A x + beta y for A in CSR; beta = 0 never reads y. Only GPU kernels use ``lanes``."""
    for i in prange(y.size):
        total = row_product(indices, data, x, y.dtype.type(0), indptr[i], indptr[i + 1])
        if beta == 0:
            y[i] = alpha * total
        else:
            y[i] = alpha * total + beta * y[i]


@parallel
def product_sum(indptr, indices, data, x, z, w, y, lanes, alpha, beta, gamma):
    """y = alpha A x + beta z + gamma w for A in CSR. gamma = 0 never reads w. Only GPU kernels use ``lanes``."""
    for i in prange(y.size):
        total = alpha * row_product(indices, data, x, y.dtype.type(0), indptr[i], indptr[i + 1]) + beta * z[i]
        y[i] = total + gamma * w[i] if gamma != 0 else total


@parallel
def product_dots(indptr, indices, data, x, y, w, dots, lanes):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y) for A in CSR. Only GPU kernels use ``lanes``."""
    parts = np.empty((2, CHUNKS), dots.dtype)
    for c in prange(CHUNKS):
        wy, yy = dots.dtype.type(0), 0.0
        for i in chunk_rows(y.size, c):
            value = row_product(indices, data, x, y.dtype.type(0), indptr[i], indptr[i + ONE])
            y[i] = value
            wy += np.conj(w[i]) * value
            yy += (np.conj(value) * value).real
        parts[0, c], parts[1, c] = wy, yy
    dots[0], dots[1] = total(parts[0]), total(parts[1])


@parallel
def maxima(indptr, indices, data, x, y):
    """y[i] = maxⱼ |aᵢⱼ| xⱼ over the stored entries of row i of a CSR matrix, at least 0."""
    for i in prange(y.size):
        largest = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[np.uint64(k)]) * x[np.uint64(indices[np.uint64(k)])])
        y[i] = largest


@helper
def place_of(indices, first, last, column):
    """Return the index of ``column`` in the ascending ``indices[first:last]``, by bisection; ``last`` if missing."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if indices[np.uint64(middle)] < column:
            first = middle + 1
        else:
            last = middle
    return first if first < end and indices[np.uint64(first)] == column else end


@parallel
def diagonal(indptr, indices, data, d):
    """Write the diagonal of a CSR matrix into ``d``; zero for entries that are not stored."""
    for i in prange(d.size):
        place = place_of(indices, np.int64(indptr[i]), np.int64(indptr[i + 1]), np.int64(i))
        d[i] = data[np.uint64(place)] if place < indptr[i + 1] else 0


@parallel
def scale(indptr, indices, data, left, right, out):
    """Write the values of diag(left) A diag(right), in the order of ``data``, into ``out``; A in CSR."""
    for i in prange(left.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[np.uint64(k)] = left[i] * data[np.uint64(k)] * right[np.uint64(indices[np.uint64(k)])]


@parallel
def modulus_sums(indptr, data, y):
    """y[i] = Σⱼ |aᵢⱼ|, over the values ``data`` of row i of a CSR matrix."""
    for i in prange(y.size):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += abs(data[np.uint64(k)])
        y[i] = total


@parallel
def permute(indptr, indices, order, inverse, new_indptr, new_indices, entry):
    """Write the pattern of a CSR matrix with permuted rows and columns; columns ascend in each new row.

    ``order``: the old row of each new row; ``inverse``: its inverse. ``new_indptr`` is given. Writes ``new_indices``,
    and ``entry``, the old index of each new entry. Insertion sorts short rows, ``argsort`` long ones."""
    for t in prange(order.size):
        begin, length = indptr[order[t]], indptr[order[t] + 1] - indptr[order[t]]
        first = np.int64(new_indptr[t])
        if length > INSERTION:
            columns = inverse[indices[begin:begin + length]]
            sequence = np.argsort(columns)
            for k in range(length):
                new_indices[first + k], entry[first + k] = columns[sequence[k]], begin + sequence[k]
            continue
        for k in range(length):
            column, at = inverse[indices[begin + k]], first + k
            while at > first and new_indices[at - 1] > column:
                new_indices[at], entry[at] = new_indices[at - 1], entry[at - 1]
                at -= 1
            new_indices[at], entry[at] = column, begin + k
