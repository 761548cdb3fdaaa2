"""CSR kernels on the CPU. Products run over rows in parallel, each row on one thread for any ``lanes``.

Two independent sums a row, of its even and its odd entries, let additions overlap. Unsigned indices spare Numba's test
for negative ones.

Products with several right-hand sides, arrays of shape (k, n), take pieces of PIECE rows, and FOUR columns of x at a
time: their sums overlap too, and the matrix comes from memory once. ``running`` lists the columns to be computed;
``groups.py`` says which of them are taken together.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.vector import CHUNKS, chunk_rows, total
from swell.formats.kernels.groups import SAMPLES, groups
from swell.formats.kernels.sums import empty_sum, plus_product, sum_value

ONE, TWO = np.uint64(1), np.uint64(2)
FOUR = 4                # columns of x that are treated together, as in ``four_products``
PIECE = 512             # rows whose entries stay in the cache until all columns are done
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


@njit(cache=True)
def reach(indptr, indices):
    """Return the distance between the first and the last column of a row: the mean over some rows."""
    distance, n = 0, indptr.size - 1
    for sample in range(SAMPLES):
        row = sample * n // SAMPLES
        if indptr[row] < indptr[row + 1]:
            distance += abs(np.int64(indices[indptr[row + 1] - 1]) - np.int64(indices[indptr[row]]))
    return distance / SAMPLES


@helper(inlined=True)
def four_products(indices, data, x, columns, zero, begin, end):
    """Return four numbers: for each of four ``columns`` of x, the sum that `row_product` returns, bit for bit."""
    a, b, c, d = columns
    even_a = even_b = even_c = even_d = odd_a = odd_b = odd_c = odd_d = empty_sum(zero)
    k, end = np.uint64(begin), np.uint64(end)
    while k + ONE < end:
        first, i, second, j = data[k], np.uint64(indices[k]), data[k + ONE], np.uint64(indices[k + ONE])
        even_a, odd_a = plus_product(even_a, first, x[a, i]), plus_product(odd_a, second, x[a, j])
        even_b, odd_b = plus_product(even_b, first, x[b, i]), plus_product(odd_b, second, x[b, j])
        even_c, odd_c = plus_product(even_c, first, x[c, i]), plus_product(odd_c, second, x[c, j])
        even_d, odd_d = plus_product(even_d, first, x[d, i]), plus_product(odd_d, second, x[d, j])
        k += TWO
    if k < end:
        last, i = data[k], np.uint64(indices[k])
        even_a, even_b = plus_product(even_a, last, x[a, i]), plus_product(even_b, last, x[b, i])
        even_c, even_d = plus_product(even_c, last, x[c, i]), plus_product(even_d, last, x[d, i])
    return (sum_value(even_a) + sum_value(odd_a), sum_value(even_b) + sum_value(odd_b),
            sum_value(even_c) + sum_value(odd_c), sum_value(even_d) + sum_value(odd_d))


@helper
def four_of(running, j):
    """Return four columns, ``running[j]`` and the next ones; the last of ``running`` stands for missing ones."""
    last = running.size - 1
    return (np.uint64(running[j]), np.uint64(running[min(j + 1, last)]), np.uint64(running[min(j + 2, last)]),
            np.uint64(running[min(j + 3, last)]))


@helper
def piece_rows(n, piece):
    """Return the range of rows of piece number ``piece``, when n rows are cut into pieces of `PIECE` rows."""
    return range(np.uint64(np.int64(piece) * PIECE), np.uint64(min(n, (np.int64(piece) + 1) * PIECE)))


@helper
def put(y, j, i, value, alpha, beta):
    """y[j, i] = alpha value + beta y[j, i]; beta = 0 never reads y."""
    y[j, i] = alpha * value if beta == 0 else alpha * value + beta * y[j, i]


def product_columns(running, indptr, indices, data, x, y, lanes, alpha, beta):
    """y[j] = alpha A x[j] + beta y[j] for the columns j in ``running``, as `product` computes each."""
    for group in groups(running, reach(indptr, indices), x.itemsize):
        if group.size == 1:
            product(indptr, indices, data, x[group[0]], y[group[0]], lanes, alpha, beta)
        else:
            group_product(group, indptr, indices, data, x, y, alpha, beta)


@parallel
def group_product(running, indptr, indices, data, x, y, alpha, beta):
    """`product_columns` for one group."""
    n, zero = y.shape[1], y.dtype.type(0)
    for piece in prange(-(-n // PIECE)):
        for j in range(0, running.size, FOUR):
            count, columns = running.size - j, four_of(running, j)
            for i in piece_rows(n, piece):
                values = four_products(indices, data, x, columns, zero, indptr[i], indptr[i + ONE])
                put(y, columns[0], i, values[0], alpha, beta)
                if count > 1:
                    put(y, columns[1], i, values[1], alpha, beta)
                if count > 2:
                    put(y, columns[2], i, values[2], alpha, beta)
                if count > 3:
                    put(y, columns[3], i, values[3], alpha, beta)


@helper
def put_sum(y, z, w, j, i, value, alpha, beta, gamma):
    """y[j, i] = alpha value + beta z[j, i] + gamma w[j, i]. gamma = 0 never reads w."""
    part = alpha * value + beta * z[j, i]
    y[j, i] = part + gamma * w[j, i] if gamma != 0 else part


def product_sum_columns(running, indptr, indices, data, x, z, w, y, lanes, alpha, beta, gamma):
    """y[j] = alpha A x[j] + beta z[j] + gamma w[j] for the columns j in ``running``; see `product_sum`."""
    for group in groups(running, reach(indptr, indices), x.itemsize):
        if group.size == 1:
            j = group[0]
            product_sum(indptr, indices, data, x[j], z[j], w[j], y[j], lanes, alpha, beta, gamma)
        else:
            group_product_sum(group, indptr, indices, data, x, z, w, y, alpha, beta, gamma)


@parallel
def group_product_sum(running, indptr, indices, data, x, z, w, y, alpha, beta, gamma):
    """`product_sum_columns` for one group."""
    n, zero = y.shape[1], y.dtype.type(0)
    for piece in prange(-(-n // PIECE)):
        for j in range(0, running.size, FOUR):
            count, columns = running.size - j, four_of(running, j)
            for i in piece_rows(n, piece):
                values = four_products(indices, data, x, columns, zero, indptr[i], indptr[i + ONE])
                put_sum(y, z, w, columns[0], i, values[0], alpha, beta, gamma)
                if count > 1:
                    put_sum(y, z, w, columns[1], i, values[1], alpha, beta, gamma)
                if count > 2:
                    put_sum(y, z, w, columns[2], i, values[2], alpha, beta, gamma)
                if count > 3:
                    put_sum(y, z, w, columns[3], i, values[3], alpha, beta, gamma)


@helper
def put_dot(y, w, j, i, value, wy, yy):
    """y[j, i] = value; return (wy + conj(w[j, i]) value, yy + |value|²)."""
    y[j, i] = value
    return wy + np.conj(w[j, i]) * value, yy + (np.conj(value) * value).real


def product_dots_columns(running, indptr, indices, data, x, y, w, dots, lanes):
    """y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in ``running``, as `product_dots`
    computes each.

    Complex columns go one by one: LLVM may fuse the operations of their sums in another way for a group, and the last
    bit would differ."""
    for group in groups(running, reach(indptr, indices), x.itemsize):
        if group.size > 1 and x.dtype.kind != "c":
            group_product_dots(group, indptr, indices, data, x, y, w, dots)
            continue
        for j in group:
            product_dots(indptr, indices, data, x[j], y[j], w[j], dots[j], lanes)


@parallel
def group_product_dots(running, indptr, indices, data, x, y, w, dots):
    """`product_dots_columns` for one group."""
    n, zero, none = y.shape[1], y.dtype.type(0), dots.dtype.type(0)
    parts = np.empty((2, y.shape[0], CHUNKS), dots.dtype)
    for c in prange(CHUNKS):
        for j in range(0, running.size, FOUR):
            columns = four_of(running, j)
            wy_a, wy_b, wy_c, wy_d, yy_a, yy_b, yy_c, yy_d = none, none, none, none, 0.0, 0.0, 0.0, 0.0
            for i in chunk_rows(n, c):
                values = four_products(indices, data, x, columns, zero, indptr[i], indptr[i + ONE])
                wy_a, yy_a = put_dot(y, w, columns[0], i, values[0], wy_a, yy_a)
                wy_b, yy_b = put_dot(y, w, columns[1], i, values[1], wy_b, yy_b)
                wy_c, yy_c = put_dot(y, w, columns[2], i, values[2], wy_c, yy_c)
                wy_d, yy_d = put_dot(y, w, columns[3], i, values[3], wy_d, yy_d)
            parts[0, columns[0], c], parts[0, columns[1], c] = wy_a, wy_b
            parts[0, columns[2], c], parts[0, columns[3], c] = wy_c, wy_d
            parts[1, columns[0], c], parts[1, columns[1], c] = yy_a, yy_b
            parts[1, columns[2], c], parts[1, columns[3], c] = yy_c, yy_d
    for j in running:
        dots[j, 0], dots[j, 1] = total(parts[0, j]), total(parts[1, j])


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
