"""SELL products on the CPU: chunks of slices in parallel, eight rows of a slice at a time with their sums in registers.

A chunk has about ``task`` rows. ``swell/formats/sell.py`` describes the layout. Unsigned indices spare Numba's test for
negative ones. Without ``_nrt=False`` Numba counts references to the arrays for every eight rows.

Products with several right-hand sides, arrays of shape (k, n), take pieces of about PIECE rows, and two columns of x at
a time, so that the matrix comes from memory once. ``running`` lists the columns to be computed; ``groups.py`` says
which of them are taken together.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.vector import total
from swell.formats.kernels.groups import SAMPLES, groups
from swell.formats.kernels.sell_rows import ROWS, products, products_of_two

PIECE = 512             # rows whose entries stay in the cache until all columns are done


@helper
def row_at(rows, place, window):
    """Return the row at a place of the sorted order; ``rows`` holds row numbers inside windows of ``window`` rows.

    An empty ``rows`` is the identity. ``window`` is a power of two."""
    return place if rows.size == 0 else (place & ~np.uint64(window - 1)) + np.uint64(rows[place])


@helper
def put(y, row, value, alpha, beta):
    """y[row] = alpha value + beta y[row], unless ``row`` lies past the end of y; beta = 0 never reads y."""
    if row < np.uint64(y.size):
        if beta == 0:
            y[row] = alpha * value
        else:
            y[row] = alpha * value + beta * y[row]


@njit(cache=True, inline="always")
def put_eight(y, rows, place, window, sums, alpha, beta):
    """`put` of eight sums, which belong to the rows at ``place`` and the next places; see `row_at`."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    put(y, row_at(rows, place, window), s0, alpha, beta)
    put(y, row_at(rows, place + np.uint64(1), window), s1, alpha, beta)
    put(y, row_at(rows, place + np.uint64(2), window), s2, alpha, beta)
    put(y, row_at(rows, place + np.uint64(3), window), s3, alpha, beta)
    put(y, row_at(rows, place + np.uint64(4), window), s4, alpha, beta)
    put(y, row_at(rows, place + np.uint64(5), window), s5, alpha, beta)
    put(y, row_at(rows, place + np.uint64(6), window), s6, alpha, beta)
    put(y, row_at(rows, place + np.uint64(7), window), s7, alpha, beta)


@helper
def multiply_slices(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, alpha, beta):
    """y = alpha A x + beta y for the rows of slices first to last − 1; beta = 0 never reads y.

    The arrays from ``ptr`` to ``high``, and ``height``, hold A in SELL (formats/sell.py). ``window``: rows sorted
    together."""
    zero, end = y.dtype.type(0), np.uint64(ptr[first]) // height
    for s in range(first, last):
        begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
        for i in range(np.uint64(0), height, np.uint64(ROWS)):
            sums = products(base, offsets, values, high_ptr, high, x, zero, s, begin, end, height, i)
            put_eight(y, rows, s * height + i, window, sums, alpha, beta)


@helper
def multiply_slices_two(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, other_x, y, other_y, height,
                        window, alpha, beta):
    """`multiply_slices` for two columns: x, to which y belongs, and ``other_x``, to which ``other_y`` belongs."""
    zero, end = y.dtype.type(0), np.uint64(ptr[first]) // height
    for s in range(first, last):
        begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
        for i in range(np.uint64(0), height, np.uint64(ROWS)):
            sums, others = products_of_two(base, offsets, values, high_ptr, high, x, other_x, zero, s, begin, end,
                                           height, i)
            put_eight(y, rows, s * height + i, window, sums, alpha, beta)
            put_eight(other_y, rows, s * height + i, window, others, alpha, beta)


@parallel
def product(ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, task, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y.

    ``ptr``, ``base``, ``offsets``, ``values``, ``rows``, ``high_ptr``, ``high``, ``height``: A, laid out as in
    formats/sell.py. ``window``: rows that were sorted by length together. ``task``: rows of a thread's piece of work.
    """
    slices = ptr.size - 1
    chunks = max(1, (y.size + task - 1) // task)
    for chunk in prange(chunks):
        first, last = np.uint64(chunk * slices // chunks), np.uint64((chunk + 1) * slices // chunks)
        multiply_slices(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, y, np.uint64(height), window,
                        alpha, beta)


@njit(cache=True)
def reach(ptr, base, high_ptr, height):
    """Return the distance between the first and the last column of a slice's rows: the mean over some slices."""
    distance, slices = 0, ptr.size - 1
    for sample in range(SAMPLES):
        s = sample * slices // SAMPLES
        first, end = ptr[s] // height, ptr[s + 1] // height
        if high_ptr.size > 0 and high_ptr[s] >= 0:
            distance += 1 << 16                  # at least: its columns need more than 16 bits
        elif first < end:
            distance += abs(np.int64(base[end - 1]) - np.int64(base[first]))
    return distance / SAMPLES


def product_columns(running, ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, task, alpha, beta):
    """y[j] = alpha A x[j] + beta y[j] for the columns j in ``running``, as `product` computes each."""
    matrix = ptr, base, offsets, values, rows, high_ptr, high
    for group in groups(running, reach(ptr, base, high_ptr, height), x.itemsize):
        if group.size == 1:
            product(*matrix, x[group[0]], y[group[0]], height, window, task, alpha, beta)
        else:
            group_product(group, *matrix, x, y, height, window, alpha, beta)


@parallel
def group_product(running, ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, alpha, beta):
    """`product_columns` for one group."""
    slices, count = ptr.size - 1, running.size
    pieces = max(1, -(-slices * height // PIECE))
    for piece in prange(pieces):
        first, last = np.uint64(piece * slices // pieces), np.uint64((piece + 1) * slices // pieces)
        for k in range(0, count - 1, 2):
            a, b = running[k], running[k + 1]
            multiply_slices_two(first, last, ptr, base, offsets, values, rows, high_ptr, high, x[a], x[b], y[a], y[b],
                                np.uint64(height), window, alpha, beta)
        if count % 2:
            a = running[count - 1]
            multiply_slices(first, last, ptr, base, offsets, values, rows, high_ptr, high, x[a], y[a],
                            np.uint64(height), window, alpha, beta)


def product_sum(ptr, base, offsets, values, rows, high_ptr, high, x, z, w, y, height, window, task, alpha, beta, gamma):
    """y = alpha A x + beta z + gamma w. The arrays from ``ptr`` to ``high``, and ``height``, hold A in SELL
    (formats/sell.py). gamma = 0 never reads w.

    ``window``: rows sorted together. ``task``: rows of a thread's piece of work."""
    y[:] = beta * z + gamma * w if gamma else beta * z
    product(ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, task, alpha, y.dtype.type(1))


def product_sum_columns(running, ptr, base, offsets, values, rows, high_ptr, high, x, z, w, y, height, window, task,
                        alpha, beta, gamma):
    """y[j] = alpha A x[j] + beta z[j] + gamma w[j] for the columns j in ``running``; see `product_sum`."""
    for j in running:
        y[j] = beta * z[j] + gamma * w[j] if gamma else beta * z[j]
    product_columns(running, ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, task, alpha,
                    y.dtype.type(1))


@helper
def put_dot(y, w, row, value, zero):
    """y[row] = value and return zero + conj(w[row]) value; ``zero`` alone if ``row`` lies past the end of y."""
    if row < np.uint64(y.size):
        y[row] = value
        return zero + np.conj(w[row]) * value
    return zero


@helper
def square(value):
    """|value|²."""
    return (np.conj(value) * value).real


@njit(cache=True, inline="always")
def put_dots(y, w, rows, place, window, sums, dots, none):
    """`put_dot` of eight sums, which belong to the rows at ``place`` and the next places; return ``dots``, the parts of
    (w, y) and (y, y), plus theirs."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    a, b = dots
    a += put_dot(y, w, row_at(rows, place, window), s0, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(1), window), s1, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(2), window), s2, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(3), window), s3, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(4), window), s4, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(5), window), s5, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(6), window), s6, none)
    a += put_dot(y, w, row_at(rows, place + np.uint64(7), window), s7, none)
    b += square(s0) + square(s1) + square(s2) + square(s3)
    b += square(s4) + square(s5) + square(s6) + square(s7)
    return a, b


@helper
def multiply_slices_dots(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, y, w, height, window, none):
    """y = A x for the rows of slices first to last − 1; return these rows' parts of (w, y) and (y, y).

    The arrays from ``ptr`` to ``high``, and ``height``, hold A in SELL (formats/sell.py). ``window``: rows sorted
    together. ``none``: a zero of the type of the first sum."""
    zero, dots, end = y.dtype.type(0), (none, 0.0), np.uint64(ptr[first]) // height
    for s in range(first, last):
        begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
        for i in range(np.uint64(0), height, np.uint64(ROWS)):
            sums = products(base, offsets, values, high_ptr, high, x, zero, s, begin, end, height, i)
            dots = put_dots(y, w, rows, s * height + i, window, sums, dots, none)
    return dots


@helper
def multiply_slices_dots_two(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, other_x, y, other_y, w,
                             other_w, height, window, none):
    """`multiply_slices_dots` for two columns; return the parts of the first, then of the other, as pairs."""
    zero, dots, other_dots, end = y.dtype.type(0), (none, 0.0), (none, 0.0), np.uint64(ptr[first]) // height
    for s in range(first, last):
        begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
        for i in range(np.uint64(0), height, np.uint64(ROWS)):
            sums, others = products_of_two(base, offsets, values, high_ptr, high, x, other_x, zero, s, begin, end,
                                           height, i)
            dots = put_dots(y, w, rows, s * height + i, window, sums, dots, none)
            other_dots = put_dots(other_y, other_w, rows, s * height + i, window, others, other_dots, none)
    return dots, other_dots


@parallel
def product_dots(ptr, base, offsets, values, rows, high_ptr, high, x, y, w, dots, height, window, task):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y). Writes ``y`` and ``dots``.

    The arrays from ``ptr`` to ``high``, and ``height``, hold A in SELL (formats/sell.py). ``window``: rows sorted
    together. ``task``: rows of a thread's piece of work."""
    slices = ptr.size - 1
    chunks = max(1, (y.size + task - 1) // task)
    wy, yy = np.empty(chunks, dots.dtype), np.empty(chunks)
    for chunk in prange(chunks):
        first, last = np.uint64(chunk * slices // chunks), np.uint64((chunk + 1) * slices // chunks)
        wy[chunk], yy[chunk] = multiply_slices_dots(first, last, ptr, base, offsets, values, rows, high_ptr, high, x, y,
                                                    w, np.uint64(height), window, dots.dtype.type(0))
    dots[0], dots[1] = total(wy), total(yy)


def product_dots_columns(running, ptr, base, offsets, values, rows, high_ptr, high, x, y, w, dots, height, window,
                         task):
    """y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in ``running``, as `product_dots`
    computes each."""
    matrix = ptr, base, offsets, values, rows, high_ptr, high
    for group in groups(running, reach(ptr, base, high_ptr, height), x.itemsize):
        if group.size == 1:
            j = group[0]
            product_dots(*matrix, x[j], y[j], w[j], dots[j], height, window, task)
        else:
            group_product_dots(group, *matrix, x, y, w, dots, height, window, task)


@parallel
def group_product_dots(running, ptr, base, offsets, values, rows, high_ptr, high, x, y, w, dots, height, window, task):
    """`product_dots_columns` for one group."""
    slices, count, none = ptr.size - 1, running.size, dots.dtype.type(0)
    chunks = max(1, (y.shape[1] + task - 1) // task)
    wy, yy = np.empty((y.shape[0], chunks), dots.dtype), np.empty((y.shape[0], chunks))
    for chunk in prange(chunks):
        first, last = np.uint64(chunk * slices // chunks), np.uint64((chunk + 1) * slices // chunks)
        for k in range(0, count - 1, 2):
            a, b = running[k], running[k + 1]
            own, other = multiply_slices_dots_two(first, last, ptr, base, offsets, values, rows, high_ptr, high, x[a],
                                                  x[b], y[a], y[b], w[a], w[b], np.uint64(height), window, none)
            wy[a, chunk], yy[a, chunk] = own
            wy[b, chunk], yy[b, chunk] = other
        if count % 2:
            a = running[count - 1]
            wy[a, chunk], yy[a, chunk] = multiply_slices_dots(
                first, last, ptr, base, offsets, values, rows, high_ptr, high, x[a], y[a], w[a], np.uint64(height),
                window, none)
    for j in running:
        dots[j, 0], dots[j, 1] = total(wy[j]), total(yy[j])
