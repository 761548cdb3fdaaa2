"""SELL products on the CPU: chunks of slices in parallel, eight rows of a slice at a time with their sums in registers.

A chunk has about ``task`` rows. The layout is described in ``swell/formats/sell.py``. Unsigned indices spare Numba's
test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange, types
from numba.extending import overload

from swell.core.kernels.vector import total
from swell.formats.kernels.sums import accumulated, collected, nothing

ROWS = 8                # rows side by side, as in ``eight_rows``; every slice height is a multiple of it
PAD = 0xFFFF


@njit(parallel=True, cache=True)
def find_where(indptr, place, ptr, height, where):
    """Where each entry of a CSR matrix lies in the slices; an empty ``place`` is the identity."""
    for row in prange(indptr.size - 1):
        i = np.int64(row)                        # Numba counts without sign, and would mix the two to a double
        p = place[i] if place.size else i
        first = ptr[p // height] + p % height
        for k in range(indptr[i], indptr[i + 1]):
            where[k] = first + (k - indptr[i]) * height


@njit(cache=True)
def histogram(indptr, first, last):
    """How many of the rows first to last have each length; rows past the last one are empty."""
    n = indptr.size - 1
    longest = 0
    for i in range(first, min(last, n)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    counts = np.zeros(longest + 1, np.int64)
    for i in range(first, min(last, n)):
        counts[indptr[i + 1] - indptr[i]] += 1
    counts[0] += last - max(first, min(last, n))
    return counts


@njit(parallel=True, cache=True)
def measure_windows(indptr, height, window, plain, ordered):
    """The longest row of each slice: as the rows come, and sorted by length inside windows."""
    n, places = indptr.size - 1, plain.size * height
    for w in prange(-(-places // window)):
        first = np.int64(w) * window
        last = min(first + window, places)
        counts = histogram(indptr, first, last)
        length, before = counts.size - 1, np.int64(0)
        for s in range(first // height, last // height):
            longest = 0
            for i in range(s * height, min((s + 1) * height, n)):
                longest = max(longest, indptr[i + 1] - indptr[i])
            plain[s] = longest
            while before + counts[length] <= s * height - first:
                before += counts[length]
                length -= 1
            ordered[s] = length


@njit(parallel=True, cache=True)
def sort_windows(indptr, window, order):
    """order = the rows of each window by descending length, equal ones as they come."""
    n = indptr.size - 1
    for w in prange(-(-order.size // window)):
        first = np.int64(w) * window
        last = min(first + window, order.size)
        at = histogram(indptr, first, last)
        before = first                           # where the rows of each length begin
        for back in range(at.size):
            length = at.size - 1 - back
            before, at[length] = before + at[length], before
        for i in range(first, last):
            length = indptr[i + 1] - indptr[i] if i < n else 0
            order[at[length]] = i
            at[length] += 1


@njit(cache=True)
def entries_at(indptr, order, place):
    """(first entry, entries, row) of the row at a place of the slices; an empty order is the identity."""
    i = np.uint64(order[place]) if order.size else np.uint64(place)
    if i + np.uint64(1) >= np.uint64(indptr.size):
        return np.uint64(0), np.uint64(0), i
    begin = np.uint64(indptr[i])
    return begin, np.uint64(indptr[i + np.uint64(1)]) - begin, i


@njit(parallel=True, cache=True)
def find_bases(indptr, indices, order, starts, height, largest, base, wide):
    """The least column of every slice column, of which slice s has starts[s] to starts[s + 1]; wide: slices with an
    offset from it beyond the largest, whose bases are 0.
    """
    most = np.iinfo(base.dtype).max
    for s in prange(wide.size):
        first, last = np.uint64(starts[s]), np.uint64(starts[s + 1])
        base[first:last] = most
        for lane in range(height):
            begin, length, _ = entries_at(indptr, order, s * height + lane)
            for k in range(length):
                base[first + k] = min(base[first + k], indices[begin + k])
        reach = 0
        for lane in range(height):
            begin, length, _ = entries_at(indptr, order, s * height + lane)
            for k in range(length):
                reach = max(reach, indices[begin + k] - base[first + k])
        wide[s] = reach > largest
        if wide[s]:
            base[first:last] = 0


@njit(parallel=True, cache=True)
def place_entries(indptr, indices, data, order, ptr, base, height, window, high_ptr, values, offsets, high, rows):
    """Every entry to its place, padding too."""
    for s in prange(ptr.size - 1):
        first, width, upper = np.uint64(ptr[s]), np.uint64((ptr[s + 1] - ptr[s]) // height), high_ptr[s]
        columns, step = np.uint64(ptr[s] // height), np.uint64(height)
        for lane in range(np.uint64(height)):
            begin, length, i = entries_at(indptr, order, np.uint64(s) * step + lane)
            if rows.size:
                rows[np.uint64(s) * step + lane] = i % np.uint64(window)
            at = first + lane
            for k in range(length):
                values[at] = data[begin + k]
                offsets[at] = (indices[begin + k] - base[columns + k]) & PAD
                at += step
            for k in range(length, width):
                values[at] = 0
                offsets[at] = PAD
                at += step
            if upper >= 0:
                at = np.uint64(upper) + lane
                for k in range(width):
                    high[at] = indices[begin + k] >> 16 if k < length else PAD
                    at += step


@njit(cache=True)
def add(total, offset, value, x, column, padded):
    """total + a x of one entry; padding, if there may be any, adds nothing, whatever its value."""
    return total if padded and offset == PAD else accumulated(total, value, x[column + np.uint64(offset)])


@njit(cache=True, inline="always")
def add_columns(sums, base, offsets, values, x, begin, end, height, i, padded):
    """The sums of eight rows with what columns begin to end of their slice add to them."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    for e in range(begin, end):
        k = e * height + i
        c = np.uint64(base[e])
        s0 = add(s0, offsets[k], values[k], x, c, padded)
        s1 = add(s1, offsets[k + np.uint64(1)], values[k + np.uint64(1)], x, c, padded)
        s2 = add(s2, offsets[k + np.uint64(2)], values[k + np.uint64(2)], x, c, padded)
        s3 = add(s3, offsets[k + np.uint64(3)], values[k + np.uint64(3)], x, c, padded)
        s4 = add(s4, offsets[k + np.uint64(4)], values[k + np.uint64(4)], x, c, padded)
        s5 = add(s5, offsets[k + np.uint64(5)], values[k + np.uint64(5)], x, c, padded)
        s6 = add(s6, offsets[k + np.uint64(6)], values[k + np.uint64(6)], x, c, padded)
        s7 = add(s7, offsets[k + np.uint64(7)], values[k + np.uint64(7)], x, c, padded)
    return s0, s1, s2, s3, s4, s5, s6, s7


def full_until(zero, offsets, begin, end, height, i):
    """A column before which none of rows i to i + 7 is padded, as rows are at their ends only; begin of real numbers,
    of which testing every entry costs no more than finding it."""


@overload(full_until)
def _full_until(zero, offsets, begin, end, height, i):
    if isinstance(zero, types.Float):
        return lambda zero, offsets, begin, end, height, i: begin

    def search(zero, offsets, begin, end, height, i):
        while end > begin:
            k = (end - np.uint64(1)) * height + i
            padded = False
            for lane in range(np.uint64(ROWS)):
                padded |= offsets[k + lane] == PAD
            if not padded:
                break
            end -= np.uint64(1)
        return end
    return search


@njit(cache=True, inline="always")
def eight_rows(base, offsets, values, x, zero, begin, end, height, i):
    """The products of rows i to i + 7 of a slice whose columns are begin to end."""
    none = nothing(zero)
    full = full_until(zero, offsets, begin, end, height, i)
    sums = none, none, none, none, none, none, none, none
    sums = add_columns(sums, base, offsets, values, x, begin, full, height, i, False)
    s0, s1, s2, s3, s4, s5, s6, s7 = add_columns(sums, base, offsets, values, x, full, end, height, i, True)
    return (collected(s0), collected(s1), collected(s2), collected(s3),
            collected(s4), collected(s5), collected(s6), collected(s7))


@njit(cache=True)
def wide_row(offsets, values, high, x, zero, begin, end, height, i, high_first):
    """The product of row i of a slice that keeps 32 bits of its columns; its upper halves begin at high_first."""
    total = zero
    for e in range(begin, end):
        k = e * height + i
        upper = high[high_first + (e - begin) * height + i]
        if offsets[k] != PAD or upper != PAD:
            total += values[k] * x[np.uint64(offsets[k]) + (np.uint64(upper) << np.uint64(16))]
    return total


@njit(cache=True)
def eight_wide_rows(offsets, values, high, x, zero, begin, end, height, i, high_first):
    """The same in a slice that keeps 32 bits of its columns."""
    return (wide_row(offsets, values, high, x, zero, begin, end, height, i, high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(1), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(2), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(3), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(4), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(5), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(6), high_first),
            wide_row(offsets, values, high, x, zero, begin, end, height, i + np.uint64(7), high_first))


@njit(cache=True, inline="always")
def products(base, offsets, values, high_ptr, high, x, zero, s, begin, end, height, i):
    """The products of rows i to i + 7 of slice s."""
    if high_ptr.size > 0 and high_ptr[s] >= 0:
        return eight_wide_rows(offsets, values, high, x, zero, begin, end, height, i, np.uint64(high_ptr[s]))
    return eight_rows(base, offsets, values, x, zero, begin, end, height, i)


@njit(cache=True)
def row_at(rows, place, window):
    """The row at a place of the sorted order; windows are powers of two."""
    return place if rows.size == 0 else (place & ~np.uint64(window - 1)) + np.uint64(rows[place])


@njit(cache=True)
def put(y, row, value, alpha, beta):
    """y[row] = alpha value + beta y[row], if there is such a row."""
    if row < np.uint64(y.size):
        if beta == 0:
            y[row] = alpha * value
        else:
            y[row] = alpha * value + beta * y[row]


@njit(parallel=True, cache=True)
def product(ptr, base, offsets, values, rows, high_ptr, high, x, y, height, window, task, alpha, beta):
    """y = alpha A x + beta y; beta = 0 never reads y."""
    slices, height = ptr.size - 1, np.uint64(height)
    chunks = max(1, (y.size + task - 1) // task)
    zero = y.dtype.type(0)
    for chunk in prange(chunks):
        first, last = np.uint64(chunk * slices // chunks), np.uint64((chunk + 1) * slices // chunks)
        end = np.uint64(ptr[first]) // height
        for s in range(first, last):
            begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
            for i in range(np.uint64(0), height, np.uint64(ROWS)):
                s0, s1, s2, s3, s4, s5, s6, s7 = products(base, offsets, values, high_ptr, high, x, zero, s, begin, end,
                                                          height, i)
                place = s * height + i
                put(y, row_at(rows, place, window), s0, alpha, beta)
                put(y, row_at(rows, place + np.uint64(1), window), s1, alpha, beta)
                put(y, row_at(rows, place + np.uint64(2), window), s2, alpha, beta)
                put(y, row_at(rows, place + np.uint64(3), window), s3, alpha, beta)
                put(y, row_at(rows, place + np.uint64(4), window), s4, alpha, beta)
                put(y, row_at(rows, place + np.uint64(5), window), s5, alpha, beta)
                put(y, row_at(rows, place + np.uint64(6), window), s6, alpha, beta)
                put(y, row_at(rows, place + np.uint64(7), window), s7, alpha, beta)


@njit(cache=True)
def put_dot(y, w, row, value, zero):
    """y[row] = value; returns conj(w[row]) value."""
    if row < np.uint64(y.size):
        y[row] = value
        return zero + np.conj(w[row]) * value
    return zero


@njit(cache=True)
def square(value):
    """|value|²."""
    return (np.conj(value) * value).real


@njit(parallel=True, cache=True)
def product_dots(ptr, base, offsets, values, rows, high_ptr, high, x, y, w, dots, height, window, task):
    """y = A x, dots[0] = (w, y), dots[1] = (y, y)."""
    slices, height = ptr.size - 1, np.uint64(height)
    chunks = max(1, (y.size + task - 1) // task)
    zero, none = y.dtype.type(0), dots.dtype.type(0)
    wy, yy = np.empty(chunks, dots.dtype), np.empty(chunks)
    for chunk in prange(chunks):
        a, b = none, 0.0
        first, last = np.uint64(chunk * slices // chunks), np.uint64((chunk + 1) * slices // chunks)
        end = np.uint64(ptr[first]) // height
        for s in range(first, last):
            begin, end = end, np.uint64(ptr[s + np.uint64(1)]) // height
            for i in range(np.uint64(0), height, np.uint64(ROWS)):
                s0, s1, s2, s3, s4, s5, s6, s7 = products(base, offsets, values, high_ptr, high, x, zero, s, begin, end,
                                                          height, i)
                place = s * height + i
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
        wy[chunk], yy[chunk] = a, b
    dots[0], dots[1] = total(wy), total(yy)
