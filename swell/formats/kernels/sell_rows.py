"""Eight rows of a SELL slice on a CPU, with their sums in registers, for one vector or two.

``swell/formats/sell.py`` describes the layout. Unsigned indices spare Numba's test for negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from swell.core.compiled import helper, njit
from swell.formats.kernels.sums import empty_sum, plus_product, sum_value

ROWS = 8                # rows computed together, as in ``eight_rows``; every slice height is a multiple of it
PAD = 0xFFFF


@helper
def add(total, offset, value, x, column, padded):
    """Return total + value · x[column + offset], the sum after one entry.

    ``column``: the base column of the entry's slice column. ``padded``: the entry may be padding, which adds nothing.
    """
    return total if padded and offset == PAD else plus_product(total, value, x[column + np.uint64(offset)])


@njit(cache=True, inline="always")
def add_columns(sums, base, offsets, values, x, begin, end, height, i, padded):
    """Return eight sums, of rows i to i + 7 of a slice, after slice columns begin to end − 1 were added to ``sums``.

    ``padded``: entries may be padding. ``base``, ``offsets``, ``values``, ``height``: A in SELL (formats/sell.py)."""
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


@njit(cache=True, inline="always")
def eight_sums(zero):
    """Return eight empty sums, for numbers of the type of ``zero``."""
    none = empty_sum(zero)
    return none, none, none, none, none, none, none, none


@njit(cache=True, inline="always")
def eight_values(sums):
    """Return the values of eight sums."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    return (sum_value(s0), sum_value(s1), sum_value(s2), sum_value(s3),
            sum_value(s4), sum_value(s5), sum_value(s6), sum_value(s7))


def full_until(zero, offsets, begin, end, height, i):
    """Return a slice column, from begin to end, before which rows i to i + 7 have no padding; padding lies at row ends.

    ``offsets``, ``height``: of the SELL matrix. ``zero`` tells the type: for real numbers it returns ``begin``, since a
    test of every entry costs no more than this search."""


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
    """Return eight numbers: the products with x of rows i to i + 7 of a slice with 16-bit columns.

    The slice has slice columns begin to end − 1. ``zero``: a zero of y's type. ``base``, ``offsets``, ``values``,
    ``height``: A in SELL (formats/sell.py)."""
    full = full_until(zero, offsets, begin, end, height, i)
    sums = add_columns(eight_sums(zero), base, offsets, values, x, begin, full, height, i, False)
    return eight_values(add_columns(sums, base, offsets, values, x, full, end, height, i, True))


@njit(cache=True, inline="always")
def eight_rows_of_two(base, offsets, values, x, other, zero, begin, end, height, i):
    """Return the eight numbers of `eight_rows` for x and those for ``other``, with the same bits."""
    full = full_until(zero, offsets, begin, end, height, i)
    sums, others = eight_sums(zero), eight_sums(zero)
    for e in range(begin, full):
        sums = add_columns(sums, base, offsets, values, x, e, e + np.uint64(1), height, i, False)
        others = add_columns(others, base, offsets, values, other, e, e + np.uint64(1), height, i, False)
    for e in range(full, end):
        sums = add_columns(sums, base, offsets, values, x, e, e + np.uint64(1), height, i, True)
        others = add_columns(others, base, offsets, values, other, e, e + np.uint64(1), height, i, True)
    return eight_values(sums), eight_values(others)


@helper
def wide_row(offsets, values, high, x, zero, begin, end, height, i, high_first):
    """Return the product with x of row i of a wide slice, a slice of a SELL matrix that has 32-bit columns.

    The slice has ``height`` rows and slice columns begin to end − 1. The upper 16 bits of its columns begin at
    high[high_first], the lower ones are in ``offsets``. ``zero``: a zero of y's type."""
    total = zero
    for e in range(begin, end):
        k = e * height + i
        upper = high[high_first + (e - begin) * height + i]
        if offsets[k] != PAD or upper != PAD:
            total += values[k] * x[np.uint64(offsets[k]) + (np.uint64(upper) << np.uint64(16))]
    return total


@helper
def eight_wide_rows(offsets, values, high, x, zero, begin, end, height, i, high_first):
    """Return eight numbers: the products with x of rows i to i + 7 of a slice that has 32-bit columns.

    The slice has ``height`` rows and slice columns begin to end − 1. The upper 16 bits of its columns begin at
    high[high_first], the lower ones are in ``offsets``. ``zero``: a zero of y's type."""
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
    """Return eight numbers: the products with x of rows i to i + 7 of slice s, with 16- or 32-bit columns.

    The slice has slice columns begin to end − 1. ``zero``: a zero of y's type. The arrays from ``base`` to ``high``,
    and ``height``, hold A in SELL (formats/sell.py)."""
    if high_ptr.size > 0 and high_ptr[s] >= 0:
        return eight_wide_rows(offsets, values, high, x, zero, begin, end, height, i, np.uint64(high_ptr[s]))
    return eight_rows(base, offsets, values, x, zero, begin, end, height, i)


@njit(cache=True, inline="always")
def products_of_two(base, offsets, values, high_ptr, high, x, other, zero, s, begin, end, height, i):
    """Return the eight numbers of `products` for x and those for ``other``, with the same bits."""
    if high_ptr.size > 0 and high_ptr[s] >= 0:
        first = np.uint64(high_ptr[s])
        return (eight_wide_rows(offsets, values, high, x, zero, begin, end, height, i, first),
                eight_wide_rows(offsets, values, high, other, zero, begin, end, height, i, first))
    return eight_rows_of_two(base, offsets, values, x, other, zero, begin, end, height, i)
