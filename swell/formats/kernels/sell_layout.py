"""Kernels that build the layout of SELL on the CPU, in passes over rows or slices; ``sell_layout.cu`` is for GPUs.

``place[i]`` is the position of row i in the sorted order, and ``order[p]`` the row at position p. An empty array stands
for the identity. Kernels that read only row pointers run on one thread.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel

PAD = 0xFFFF


def find_upper(ptr, wide, high_ptr, halves):
    """Write where the upper 16 bits of each slice's columns begin into ``high_ptr``, −1 for none.

    halves[0] = their number. ``ptr``: where each slice's entries begin. ``wide``: nonzero for slices with 32-bit
    columns."""
    sizes = np.where(wide, np.diff(ptr), 0)
    ends = np.cumsum(sizes, dtype=np.int64)
    high_ptr[:] = np.where(wide, ends - sizes, -1)
    halves[0] = ends[-1] if wide.size else 0


@parallel
def find_where(indptr, place, ptr, height, where):
    """Write the index in a SELL matrix's ``values`` of each entry of a CSR matrix into ``where``.

    ``place``: each row's place in the sorted order; empty: unsorted. ``ptr``: starts of slices; ``height``: their rows.
    """
    for row in prange(indptr.size - 1):
        i = np.int64(row)                        # prange's index is unsigned; with a signed number it makes a double
        p = np.int64(place[i]) if place.size else i
        first = ptr[p // height] + p % height
        for k in range(indptr[i], indptr[i + 1]):
            where[k] = first + (k - indptr[i]) * height


@njit(cache=True)
def histogram(indptr, first, last):
    """Return a new array whose element l is the number of rows of length l among rows first to last − 1.

    ``indptr``: CSR row pointers. Rows past the end of the matrix count as empty."""
    n = indptr.size - 1
    longest = 0
    for i in range(first, min(last, n)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    counts = np.zeros(longest + 1, np.int64)
    for i in range(first, min(last, n)):
        counts[indptr[i + 1] - indptr[i]] += 1
    counts[0] += last - max(first, min(last, n))
    return counts


@njit(cache=True)
def measure_windows(indptr, height, window, plain, ordered):
    """Write the length of the longest row of each slice: in the given order (``plain``), and sorted (``ordered``).

    ``indptr``: CSR row pointers. ``height``: rows of a slice. The sort is by length, inside windows of ``window`` rows.
    """
    n, places = indptr.size - 1, plain.size * height
    for w in range(-(-places // window)):
        first = w * window
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


@njit(cache=True)
def sort_windows(indptr, window, order, place):
    """Sort the rows of each window of ``window`` rows by descending length, stably; ``indptr``: CSR row pointers.

    Writes ``order``, the row at each place, and its inverse, ``place``."""
    n = indptr.size - 1
    for w in range(-(-order.size // window)):
        first = w * window
        last = min(first + window, order.size)
        at = histogram(indptr, first, last)
        before = first                           # at[length] becomes the place of the first row of this length
        for back in range(at.size):
            length = at.size - 1 - back
            before, at[length] = before + at[length], before
        for i in range(first, last):
            length = indptr[i + 1] - indptr[i] if i < n else 0
            order[at[length]] = i
            place[i] = at[length]
            at[length] += 1


@njit(cache=True, _nrt=False)
def entries_at(indptr, order, place):
    """Return (first entry, number of entries, row) of the row at ``place`` of the sorted order, all uint64.

    ``indptr``: CSR row pointers. ``order``: the row at each place; an empty one is the identity."""
    i = np.uint64(order[place]) if order.size else place
    if i + np.uint64(1) >= np.uint64(indptr.size):
        return np.uint64(0), np.uint64(0), i
    begin = np.uint64(indptr[i])
    return begin, np.uint64(indptr[i + np.uint64(1)]) - begin, i


@parallel
def find_bases(indptr, indices, order, starts, height, largest, base, wide):
    """Write the smallest matrix column in each slice column into ``base``; CSR matrix ``indptr``, ``indices``.

    ``order``: the row at each place, or empty. Slice s has ``height`` places, and slice columns starts[s] to starts[s +
    1] − 1. wide[s] is set to 1 if an offset from the base exceeds ``largest``; the bases of this slice are then 0."""
    most = np.iinfo(base.dtype).max
    for s in prange(wide.size):
        first, last = np.uint64(starts[s]), np.uint64(starts[s + 1])
        base[first:last] = most
        for lane in range(height):
            begin, length, _ = entries_at(indptr, order, np.uint64(s * height + lane))
            for k in range(length):
                base[first + k] = min(base[first + k], indices[begin + k])
        reach = 0
        for lane in range(height):
            begin, length, _ = entries_at(indptr, order, np.uint64(s * height + lane))
            for k in range(length):
                reach = max(reach, indices[begin + k] - base[first + k])
        wide[s] = reach > largest
        if wide[s]:
            base[first:last] = 0


@parallel
def place_entries(indptr, indices, data, order, ptr, base, height, window, high_ptr, values, offsets, high, rows):
    """Write a CSR matrix (first three arrays) into the arrays of SELL: ``values``, ``offsets``, ``high``, ``rows``.

    ``order``: the row at each place, or empty. The other arguments are arrays of formats/sell.py that are known
    already."""
    for s in prange(ptr.size - 1):
        first, width = np.uint64(ptr[s]), np.uint64((ptr[s + 1] - ptr[s]) // height)
        upper = np.int64(high_ptr[s]) if high_ptr.size else np.int64(-1)
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
