"""Sparse products C = A B on the CPU, row by row after Gustavson; ``product.cu`` has the GPU's kernels.

Each thread has one chunk of consecutive rows, and an array with an element for every column of B. The terms of
Σₖ aᵢₖ bₖⱼ are added in the order of A's columns, starting at zero. So any number of threads gives the same bits.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange, types
from numba.extending import overload

from swell.core.compiled import parallel
from swell.core.kernels.intrinsics import LANES, count_below, prefetch, zeros_behind

ONE, SIX, EIGHT, LAST = np.uint64(1), np.uint64(6), np.uint64(8), np.uint64(63)
INSERTION, MANY = 8, 16     # longest row sorted by `_sort`; keys below which `_sort` is a plain insertion sort
RANKED = 128            # longest row sorted by comparing each column with all others
AHEAD = 8               # a row of B is prefetched this many entries of A before it is read
FEW = 1 << 14           # fewer entries are not worth several threads
GPU_ONLY = ("columns", "join_rows")


def unfused(a, b):
    """The product a b for kernels, with every multiplication and addition rounded.

    Numba compiles its own complex product once a process, with the flags of the first kernel that uses it. If that
    kernel allows "contract", the product is fused in all later kernels."""


@overload(unfused, inline="always")
def _unfused(a, b):
    if isinstance(a, types.Complex):
        return lambda a, b: complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
    return lambda a, b: a * b


@parallel
def products(a_indptr, a_indices, b_indptr, columns, counts):
    """counts = the number of products aᵢₖ bₖⱼ in each row, at most the number of columns of B."""
    for i in prange(counts.size):
        total = 0
        for k in range(a_indptr[i], a_indptr[i + 1]):
            row = np.uint64(a_indices[np.uint64(k)])
            total += np.int64(b_indptr[row + ONE]) - np.int64(b_indptr[row])
        counts[i] = min(total, columns)


@njit(cache=True)
def _nowhere(places):
    """Fill the array with −1 and return it; Numba takes longer to compile NumPy's ``full``."""
    for column in range(places.size):
        places[column] = -1
    return places


@parallel
def count(a_indptr, a_indices, b_indptr, b_indices, columns, bounds, counts):
    """counts = the number of entries in each row of C. Chunk c has the rows bounds[c] to bounds[c + 1] − 1."""
    for c in prange(bounds.size - 1):
        seen = _nowhere(np.empty(columns, a_indices.dtype))
        _count(bounds[c], bounds[c + 1], a_indptr, a_indices, b_indptr, b_indices, seen, counts)


@njit(cache=True)
def _count(first, last, a_indptr, a_indices, b_indptr, b_indices, seen, counts):
    for i in range(first, last):
        found = 0
        for k in range(a_indptr[i], a_indptr[i + 1]):
            row = np.uint64(a_indices[np.uint64(k)])
            for entry in range(b_indptr[row], b_indptr[row + ONE]):
                column = np.uint64(b_indices[np.uint64(entry)])
                found += seen[column] != i
                seen[column] = i
        counts[i] = found


@parallel
def fill(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, columns, bounds, starts, indices, data, counts):
    """Write the columns and values of C; counts = the number of entries in each row.

    Chunk c writes its rows without gaps from starts[bounds[c]] on. Gaps remain between chunks: see `close_gaps`."""
    for c in prange(bounds.size - 1):
        first, last = bounds[c], bounds[c + 1]
        _fill(first, last, starts[first], a_indptr, a_indices, a_data, b_indptr, b_indices, b_data,
              _nowhere(np.empty(columns, indices.dtype)), indices, data, counts)


@njit(cache=True, forceinline=True)
def _ask(k, a_indices, b_indptr, b_indices, b_data):
    """Prefetch the row of B for the entry of A that is ``AHEAD`` after k, and the pointer of a later row."""
    last = a_indices.size - 1
    prefetch(b_indptr, np.uint64(a_indices[np.uint64(min(k + 2 * AHEAD, last))]))
    begin = np.uint64(b_indptr[np.uint64(a_indices[np.uint64(min(k + AHEAD, last))])])
    prefetch(b_indices, begin)
    prefetch(b_data, begin)
    prefetch(b_data, begin + EIGHT)


@njit(cache=True)
def _fill(first, last, at, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, place, indices, data, counts):
    """The rows first to last − 1 of C, written from index ``at`` on.

    place[j] is the last index at which column j was written; it belongs to the present row if it is at least ``begin``.
    New columns and known ones run the same instructions, since no processor predicts which comes next."""
    longest = 0
    for i in range(first, last):
        longest = max(longest, counts[i])
    sums, keys = np.zeros(longest, data.dtype), np.empty(RANKED + LANES, indices.dtype)
    bits = np.zeros(place.size // 64 + 1, np.uint64)
    words = np.empty(bits.size + 1, indices.dtype)
    for i in range(first, last):
        begin = at
        for k in range(a_indptr[i], a_indptr[i + 1]):
            _ask(k, a_indices, b_indptr, b_indices, b_data)
            row, a = np.uint64(a_indices[np.uint64(k)]), a_data[np.uint64(k)]
            for entry in range(b_indptr[row], b_indptr[row + ONE]):
                column = np.uint64(b_indices[np.uint64(entry)])
                found = place[column]
                new = found < begin
                found = at if new else found
                place[column] = found
                indices[np.uint64(found)] = column
                sums[np.uint64(found - begin)] += unfused(a, b_data[np.uint64(entry)])
                at += new
        if at - begin <= INSERTION:
            _sort(indices, begin, at)
        elif at - begin <= RANKED:
            _sort_by_ranks(indices, begin, at, keys)
        else:
            _sort_by_bits(indices, begin, at, bits, words)
        for k in range(begin, at):
            data[np.uint64(k)] = sums[np.uint64(place[np.uint64(indices[np.uint64(k)])] - begin)]
        for k in range(at - begin):
            sums[np.uint64(k)] = 0
        counts[i] = at - begin


@njit(cache=True)
def _sort(keys, first, last):
    """Sort keys[first:last] by insertion; many keys by Shell's method, with gaps that shrink by a factor of 3."""
    apart = 1
    while MANY * apart < last - first:
        apart *= 3
    while apart:
        for k in range(first + apart, last):
            key, at = keys[np.uint64(k)], k
            while at >= first + apart and keys[np.uint64(at - apart)] > key:
                keys[np.uint64(at)] = keys[np.uint64(at - apart)]
                at -= apart
            keys[np.uint64(at)] = key
        apart //= 3


@njit(cache=True, forceinline=True)
def _sort_by_ranks(columns, first, last, keys):
    """Sort up to RANKED columns in columns[first:last] by rank: the number of smaller columns gives the place."""
    count = last - first
    for k in range(count):
        keys[np.uint64(k)] = columns[np.uint64(first + k)]
    behind = np.iinfo(columns.dtype).max
    for k in range(count, count + LANES):
        keys[np.uint64(k)] = behind
    for k in range(count):
        key, at = keys[np.uint64(k)], first
        for begin in range(0, count, LANES):
            at += count_below(keys, begin, key)
        columns[np.uint64(at)] = key


@njit(cache=True)
def _sort_by_bits(columns, first, last, bits, words):
    """Sort columns[first:last] by means of one bit a column, so that only words of 64 bits need a sort.

    Neighbouring columns share a word. ``bits`` is zero before and after."""
    count = np.int64(0)                          # a literal has its own Numba type, and costs another compilation
    for k in range(first, last):
        column = np.uint64(columns[np.uint64(k)])
        word = column >> SIX
        before = bits[word]
        bits[word] = before | ONE << (column & LAST)
        words[np.uint64(count)] = word
        count += before == 0
    _sort(words, np.int64(0), count)
    at = np.uint64(first)
    for k in range(count):
        word = np.uint64(words[np.uint64(k)])
        left, bits[word] = bits[word], 0
        while left:
            columns[at] = (word << SIX) + zeros_behind(left)
            left &= left - ONE
            at += ONE


@parallel
def close_gaps(bounds, starts, indptr, indices, data):
    """Move the chunks written by ``fill`` to their final place, given by indptr, one after the other.

    Each chunk moves in pieces no longer than the shift, so that threads never overwrite what others still read."""
    threads = bounds.size - 1
    for c in range(1, threads):
        source, target = starts[bounds[c]], indptr[bounds[c]]
        size, apart = indptr[bounds[c + 1]] - target, source - target
        if apart < FEW:
            if apart:
                for k in range(size):
                    indices[target + k], data[target + k] = indices[source + k], data[source + k]
            continue
        for begin in range(0, size, apart):
            length = min(apart, size - begin)
            for t in prange(threads):
                first, last = begin + np.int64(t) * length // threads, begin + (np.int64(t) + 1) * length // threads
                for k in range(first, last):
                    indices[target + k], data[target + k] = indices[source + k], data[source + k]


@parallel
def values(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, columns, rows, bounds, indptr, indices, data):
    """Compute the values of C on its known pattern. Chunk c has the rows from bounds[c] on; only GPUs use ``rows``."""
    for c in prange(bounds.size - 1):
        _values(bounds[c], bounds[c + 1], a_indptr, a_indices, a_data, b_indptr, b_indices, b_data,
                np.empty(columns, indices.dtype), indptr, indices, data)


@njit(cache=True)
def _values(first, last, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, place, indptr, indices, data):
    zero = data.dtype.type(0)
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            place[np.uint64(indices[np.uint64(k)])] = k
            data[np.uint64(k)] = zero
        for k in range(a_indptr[i], a_indptr[i + 1]):
            _ask(k, a_indices, b_indptr, b_indices, b_data)
            row, a = np.uint64(a_indices[np.uint64(k)]), a_data[np.uint64(k)]
            for entry in range(b_indptr[row], b_indptr[row + ONE]):
                data[np.uint64(place[np.uint64(b_indices[np.uint64(entry)])])] += unfused(a, b_data[np.uint64(entry)])
