"""Matrices whose columns are numbered in a window, on the CPU; see amg/window.py one folder up. GPU: ``window.cu``."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@parallel
def join(own_indptr, own_indices, own_data, at, rest_indptr, rest_indices, rest_data, below, indptr, indices, data):
    """Write the rows of a matrix in window order, from its diagonal block and its ghost columns.

    ``own_...``: the diagonal block in CSR. ``rest_...``: the ghost columns in CSR, with row at[i] for row i, −1 for
    none; the first ``below`` ghosts come before the own columns. ``indptr`` is given, the prefix sums of the lengths.
    """
    rows = own_indptr.size - 1
    for i in prange(rows):
        k, t, end = indptr[i], 0, 0
        if at[i] >= 0:
            t, end = rest_indptr[at[i]], rest_indptr[at[i] + 1]
        while t < end and rest_indices[t] < below:
            indices[k], data[k] = rest_indices[t], rest_data[t]
            k += 1
            t += 1
        for s in range(own_indptr[i], own_indptr[i + 1]):
            indices[k], data[k] = own_indices[s] + below, own_data[s]
            k += 1
        while t < end:
            indices[k], data[k] = rest_indices[t] + rows, rest_data[t]
            k += 1
            t += 1


@parallel
def outside(indptr, indices, low, high, counts, touched):
    """Write counts[i] = the number of entries of row i in columns outside low … high − 1, and touched[i] = 1 if there
    are some, else 0."""
    for i in prange(counts.size):
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            count += (indices[k] < low) | (indices[k] >= high)
        counts[i], touched[i] = count, count > 0


@parallel
def split(indptr, indices, data, low, high, outs, places, own_indptr, own_indices, own_data, rows, rest_indptr,
          rest_indices, rest_data):
    """Split a CSR matrix into the columns low … high − 1, renumbered from 0, and the others, numbered without them.

    ``outs`` and ``places`` are the prefix sums of `outside`'s results. Writes ``own_indices`` and ``own_data`` at
    ``own_indptr``; and for each row with entries outside its number to ``rows``, and its entries to ``rest_...``."""
    for i in prange(own_indptr.size - 1):
        own, rest = own_indptr[i], outs[i]
        if places[i + 1] > places[i]:
            rows[places[i]], rest_indptr[places[i] + 1] = i, outs[i + 1]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if low <= j < high:
                own_indices[own], own_data[own] = j - low, data[k]
                own += 1
            else:
                rest_indices[rest], rest_data[rest] = (j if j < low else j - (high - low)), data[k]
                rest += 1


@parallel
def copy_rows(rows, indptr, indices, data, starts, out_indices, out_data):
    """Copy the given ``rows`` of a CSR matrix, one after the other: row rows[r] to ``starts``[r]."""
    for r in prange(rows.size):
        begin = indptr[rows[r]]
        for k in range(begin, indptr[rows[r] + 1]):
            out_indices[starts[r] + k - begin], out_data[starts[r] + k - begin] = indices[k], data[k]


@parallel
def renumber(indices, low, high, shift, moved, out):
    """Write the columns ``indices`` of one window in the numbers of another one: j + ``shift`` for own columns j in low
    … high − 1, moved[g] for ghost g."""
    for k in prange(indices.size):
        j = indices[k]
        if low <= j < high:
            out[k] = j + shift
        else:
            out[k] = moved[j if j < low else j - (high - low)]


@parallel
def mark_ghosts(indices, low, high, marked):
    """Set marked[g] = 1 for each ghost g that is a column of an entry; columns low … high − 1 are own ones. Several
    threads may write one byte; all write 1."""
    for k in prange(indices.size):
        j = indices[k]
        if j < low or j >= high:
            marked[j if j < low else j - (high - low)] = 1


@njit(cache=True)
def lower_bound(numbers, value):
    """Return how many of the ascending ``numbers`` are less than ``value``."""
    low, high = 0, numbers.size
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@parallel
def places(numbers, first, stop, below, ghosts, out):
    """Write the place in a window of each of the global ``numbers``: own ones are first … stop − 1, from place
    ``below`` on; ``ghosts`` are the others, ascending."""
    for k in prange(numbers.size):
        g = numbers[k]
        if first <= g < stop:
            out[k] = g - first + below
        else:
            out[k] = lower_bound(ghosts, g) + (0 if g < first else stop - first)


@parallel
def global_numbers(places, first, stop, below, ghosts, out):
    """Write the global number at each of the ``places`` of a window; the inverse of `places`."""
    for k in prange(places.size):
        at = np.int64(places[k])
        if below <= at < below + stop - first:
            out[k] = at - below + first
        else:
            out[k] = ghosts[at if at < below else at - (stop - first)]


@parallel
def mark_range(numbers, first, stop, inside, marked):
    """Write marked[k] = 1 if numbers[k] lies in first … stop − 1, else 0; the reverse if not ``inside``."""
    for k in prange(numbers.size):
        marked[k] = (first <= numbers[k] < stop) == inside


@parallel
def mark_first(numbers, marked):
    """Write marked[k] = 1 if numbers[k] is the first of its value among the ascending ``numbers``, else 0."""
    for k in prange(numbers.size):
        marked[k] = k == 0 or numbers[k] != numbers[k - 1]


@parallel
def mark_rows(indptr, indices, first, stop, marked):
    """Write marked[i] = 1 if row i of a CSR matrix has an entry in columns first … stop − 1, else 0."""
    for i in prange(marked.size):
        found = False
        for k in range(indptr[i], indptr[i + 1]):
            found |= first <= indices[k] < stop
        marked[i] = found


@parallel
def select(marked, starts, values, out):
    """Write the marked elements of ``values`` to ``out``; ``starts``: the prefix sums of ``marked``."""
    for k in prange(marked.size):
        if marked[k]:
            out[starts[k]] = values[k]
