"""Sparse products C = A B on the CPU, row by row after Gustavson; ``product.cu`` has the GPU's kernels.

Each thread has one chunk of consecutive rows, and an array with an element for every column of B. The terms of
Σₖ aᵢₖ bₖⱼ are added in the order of A's columns, starting at zero. So any number of threads gives the same bits.
"""
from __future__ import annotations

import numpy as np
from numba import prange, types
from numba.extending import overload

from swell.core.compiled import njit, parallel
from swell.core.kernels.intrinsics import LANES, count_below, prefetch, zeros_behind

ONE, SIX, EIGHT, LAST = np.uint64(1), np.uint64(6), np.uint64(8), np.uint64(63)
INSERTION, MANY = 8, 16     # longest row sorted by `_sort`; keys below which `_sort` is a plain insertion sort
RANKED = 128            # longest row sorted by comparing each column with all others
AHEAD = 8               # a row of B is prefetched this many entries of A before it is read
FEW = 1 << 14           # fewer entries are not worth several threads
GPU_ONLY = ("columns", "join_rows")


def unfused(a, b):
    """Return the product a b of two numbers in a kernel; no multiplication is fused with an addition.

    Numba compiles its own complex product once a process, with the flags of the first kernel that uses it. If that
    kernel allows "contract", the product is fused in all later kernels."""


@overload(unfused, inline="always")
def _unfused(a, b):
    if isinstance(a, types.Complex):
        return lambda a, b: complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
    return lambda a, b: a * b


@parallel
def products(a_indptr, a_indices, b_indptr, columns, counts):
    """Write the number of products aᵢₖ bₖⱼ of each row i of C, but at most ``columns``, into ``counts``.

    ``columns``: columns of B. ``a_…``, ``b_…``: CSR arrays of A and B."""
    for i in prange(counts.size):
        total = 0
        for k in range(a_indptr[i], a_indptr[i + 1]):
            row = np.uint64(a_indices[np.uint64(k)])
            total += np.int64(b_indptr[row + ONE]) - np.int64(b_indptr[row])
        counts[i] = min(total, columns)


@njit(cache=True)
def _nowhere(places):
    """Fill ``places`` with −1 and return it; Numba takes longer to compile NumPy's ``full``."""
    for column in range(places.size):
        places[column] = -1
    return places


@parallel
def count(a_indptr, a_indices, b_indptr, b_indices, columns, bounds, counts):
    """Write the number of entries in each row of C = A B into ``counts``. ``columns``: columns of B.

    A and B are CSR patterns. Chunk c has the rows bounds[c] to bounds[c + 1] − 1."""
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
    """Write ``indices`` and ``data``, the columns and values of C = A B, and ``counts``, the entries of each row.

    ``a_…``, ``b_…``: CSR arrays of A and B; B has ``columns`` columns. Chunk c has the rows bounds[c] to bounds[c + 1]
    − 1, and writes them without gaps from index starts[bounds[c]] on. Gaps remain between chunks: see `close_gaps`. On
    entry ``counts`` holds upper bounds."""
    for c in prange(bounds.size - 1):
        first, last = bounds[c], bounds[c + 1]
        _fill(first, last, starts[first], a_indptr, a_indices, a_data, b_indptr, b_indices, b_data,
              _nowhere(np.empty(columns, indices.dtype)), indices, data, counts)


@njit(cache=True, forceinline=True)
def _ask(k, a_indices, b_indptr, b_indices, b_data):
    """Prefetch the row of B for the entry of A that is ``AHEAD`` after entry k, and the pointer of a later row.

    ``a_…``, ``b_…``: CSR arrays of A and B. No value changes."""
    last = a_indices.size - 1
    prefetch(b_indptr, np.uint64(a_indices[np.uint64(min(k + 2 * AHEAD, last))]))
    begin = np.uint64(b_indptr[np.uint64(a_indices[np.uint64(min(k + AHEAD, last))])])
    prefetch(b_indices, begin)
    prefetch(b_data, begin)
    prefetch(b_data, begin + EIGHT)


@njit(cache=True)
def _fill(first, last, at, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, place, indices, data, counts):
    """Write rows first to last − 1 of C = A B into ``indices`` and ``data`` from index ``at`` on, their lengths into
    ``counts``.

    ``a_…``, ``b_…``: CSR arrays of A and B. On entry ``counts`` holds upper bounds. ``place``: one element a column of
    B, −1 on entry. place[j] is the last index at which column j was written; it belongs to the present row if it is at
    least ``begin``. New and known columns run the same instructions, since no processor predicts which comes next."""
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
    """Sort keys[first:last] in place, by insertion; many keys by Shell's method, with gaps that shrink threefold."""
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
    """Sort columns[first:last], at most RANKED different ones, in place. ``keys``: work array of RANKED + LANES.

    The number of smaller columns gives each column its place."""
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
    """Sort columns[first:last], which differ, in place, with one bit a column; only words of 64 bits need a sort.

    ``bits``: work array of 64-bit words, one bit a column of B, zero before and after. ``words``: work array."""
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
    """Move the chunks that `fill` wrote into ``indices`` and ``data`` so that no gaps remain, in place.

    Chunk c begins at starts[bounds[c]] and moves to indptr[bounds[c]]; ``indptr``: row pointers of C. Each chunk moves
    in pieces no longer than the shift, so that threads never overwrite what others still read."""
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
    """Write the values of C = A B into ``data``, on the known pattern ``indptr``, ``indices`` of C.

    ``columns``: columns of B. Chunk c has the rows from bounds[c] to bounds[c + 1] − 1; only GPUs use ``rows``."""
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
