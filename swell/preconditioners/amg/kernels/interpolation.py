"""Interpolation weights on the CPU, threads sharing the rows; see interpolation.py one folder up.

A thread gathers the weights of a row by coarse column, and keeps the largest. ``slots`` has the place of each column's
weight, −1 for none. Sums run in the order of the entries, so results do not depend on the number of threads.

A processor cannot predict strong links and coarse rows, and a wrong guess costs as much as ten products. So entries are
picked without a branch: each is written to the next place, and the place advances only past a picked one. Functions
called for each row are inlined, since a call passes seven numbers for each array.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.intrinsics import prefetch
from swell.preconditioners.amg.slots import State

FINE, COARSE = np.uint8(State.FINE), np.uint8(State.COARSE)
ONE = np.uint64(1)
CHUNKS = 16             # chunks of rows; each has its own ``slots``
CANCELLED = 1e-8        # a divisor below this times the sum of the row's moduli is rounding
LARGEST = 10.0          # weights beyond this come from cancellation
RESCALED = 10.0         # largest factor, or inverse factor, of rescaling after truncation


@njit(cache=True, forceinline=True, _nrt=False)
def is_coarse(k, indices, strong, state):
    """True if entry k of the CSR matrix is a strong link to a coarse row: strong[k] is set, and ``state`` of its column
    is COARSE."""
    return (strong[np.uint64(k)] != 0) & (state[np.uint64(indices[np.uint64(k)])] == COARSE)


@parallel
def coarse_lengths(indptr, indices, strong, state, lengths):
    """Write lengths[i] = the number of strong coarse columns of fine row i; 0 for other rows. Arguments as in
    `is_coarse`."""
    for i in prange(state.size):
        count = 0
        if state[i] == FINE:
            for k in range(indptr[i], indptr[i + 1]):
                count += is_coarse(k, indices, strong, state)
        lengths[i] = count


@parallel
def coarse_entries(indptr, indices, data, strong, state, numbers, c_indptr, c_indices, c_data, sums):
    """Write to ``c_indices`` and ``c_data`` the strong coarse entries of fine rows, and sums[i] = βᵢ, the sum of row i.

    c_indptr[i] is where row i begins, the prefix sum of `coarse_lengths`. Columns are numbered as on the next level:
    ``numbers`` has the new number of each row."""
    for i in prange(state.size):
        at, end, k, total = np.uint64(c_indptr[i]), np.uint64(c_indptr[i + 1]), np.uint64(indptr[i]), 0.0
        while at < end:                                          # a row must not write past its end
            found = is_coarse(k, indices, strong, state)
            c_indices[at], c_data[at] = numbers[np.uint64(indices[k])], data[k]
            total += data[k] if found else 0.0
            at += np.uint64(found)
            k += ONE
        sums[i] = total


@njit(cache=True, forceinline=True, _nrt=False)
def add(slots, columns, weights, count, column, value):
    """Add ``value`` to the weight of ``column``; returns the new number of columns. Changes the first three arrays in
    place.

    slots[column] is the place of the column in ``columns`` and ``weights``, −1 for none; ``count`` places are in use.
    Weights past ``count`` must be 0."""
    at = slots[np.uint64(column)]
    new = at < 0
    at = count if new else at
    slots[np.uint64(column)] = at
    columns[np.uint64(at)] = column
    weights[np.uint64(at)] += value
    return count + new


@njit(cache=True, forceinline=True, _nrt=False)
def extended_row(i, indptr, indices, data, mirror, strong, state, c_indptr, c_indices, c_data, sums, slots, columns,
                 weights, begins, ends, shares):
    """Compute the weights of fine row i by extended+i interpolation. Returns (number of weights, 1 if they are usable,
    else 0).

    Writes ``columns``, ``weights`` and ``slots``, see `add`. mirror[k] = aⱼᵢ for entry k, aᵢⱼ. ``c_...`` and ``sums``
    are the results of `coarse_entries`; ``begins``, ``ends`` and ``shares`` are work space, as long as a row of A."""
    count, total, moduli, fine = np.int64(0), 0.0, 0.0, np.uint64(0)
    for k in range(indptr[i], indptr[i + 1]):
        j, value = np.uint64(indices[np.uint64(k)]), data[np.uint64(k)]
        weak = strong[np.uint64(k)] == 0
        picked = (not weak) & (state[j] != COARSE)
        back = min(mirror[np.uint64(k)], 0.0)                    # aⱼᵢ
        total_j = sums[j] + back if picked else 1.0              # dᵢⱼ: neither term is positive
        empty = total_j == 0                                     # j leads nowhere: aᵢⱼ is lumped
        share = value / (1.0 if empty else total_j)              # aᵢⱼ / dᵢⱼ
        moduli += abs(value)
        lumped = (value if empty else share * back) if picked else 0.0
        total += value if weak else lumped                       # aᵢᵢ, and γᵢ: weak links are lumped
        begins[fine], ends[fine], shares[fine] = c_indptr[j], c_indptr[j + ONE], share
        prefetch(c_indices, np.uint64(c_indptr[j]))
        prefetch(c_data, np.uint64(c_indptr[j]))
        fine += np.uint64(picked)
    for at in range(c_indptr[i], c_indptr[i + 1]):
        count = add(slots, columns, weights, count, c_indices[np.uint64(at)], c_data[np.uint64(at)])
    for f in range(fine):
        for at in range(begins[f], ends[f]):
            count = add(slots, columns, weights, count, c_indices[np.uint64(at)], shares[f] * c_data[np.uint64(at)])
    if not total > CANCELLED * moduli:
        return count, 0
    usable = True
    for c in range(count):
        weights[c] /= -total
        usable &= abs(weights[c]) <= LARGEST
    return count, int(usable)


@njit(cache=True, _nrt=False)
def direct_row(i, indptr, indices, data, c_indptr, c_indices, c_data, sums, slots, columns, weights):
    """Compute the weights of fine row i by direct interpolation, from its strong coarse columns. Returns their number.
    Writes ``columns``, ``weights`` and ``slots``; see `extended_row` for the arguments."""
    count, diagonal, negative = np.int64(0), 0.0, 0.0
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != i and data[k] < 0:
            negative += data[k]
        else:
            diagonal += data[k]                                  # positive links are lumped
    if diagonal > 0:                                             # else nothing is interpolated
        for at in range(c_indptr[i], c_indptr[i + 1]):
            count = add(slots, columns, weights, count, c_indices[at], -negative / sums[i] / diagonal * c_data[at])
    return count


@njit(cache=True, _nrt=False)
def forget(slots, columns, weights, count):
    """Reset ``slots`` to −1 and ``weights`` to 0 at the ``count`` places in use, for the next row."""
    for c in range(count):
        slots[np.uint64(columns[c])] = -1
        weights[c] = 0.0


@njit(cache=True, forceinline=True, _nrt=False)
def before(columns, weights, c, other):
    """True if weight ``c`` is preferred to weight ``other``: it is larger in modulus, or equal and has a smaller
    column."""
    a, b = abs(weights[c]), abs(weights[other])
    return a > b or (a == b and columns[c] < columns[other])


@njit(cache=True, forceinline=True, _nrt=False)
def select(columns, weights, count, most, chosen):
    """Write the places of the ``most`` largest of ``count`` weights to ``chosen``, sorted by column. Returns how many
    are written."""
    kept = 0
    for c in range(count):
        at = kept
        if kept == most:
            if not before(columns, weights, c, chosen[most - 1]):
                continue
            at -= 1
        else:
            kept += 1
        while at > 0 and before(columns, weights, c, chosen[at - 1]):
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = c
    for t in range(1, kept):                                     # by columns
        c, at = chosen[t], t
        while at > 0 and columns[chosen[at - 1]] > columns[c]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = c
    return kept


@njit(cache=True)
def rescale(whole, kept):
    """Return ``whole`` / ``kept``, the sums of a row's weights before and after truncation: the factor that restores
    the sum. 1 if it, or its inverse, is beyond `RESCALED`."""
    if whole == kept or not abs(whole) <= RESCALED * abs(kept) or not abs(kept) <= RESCALED * abs(whole):
        return 1.0
    return whole / kept


@parallel
def interpolate(indptr, indices, data, mirror, strong, state, numbers, c_indptr, c_indices, c_data, sums, extended,
                most, known, p_indptr, p_indices, p_data, lengths):
    """Write the rows of P to ``p_indices`` and ``p_data``, at most ``most`` entries in each.

    If ``known``, the pattern of P is given in ``p_indptr`` and ``p_indices``, and only ``p_data`` is written. Otherwise
    row i begins at place i × ``most``, and its columns and lengths[i] are written too. ``extended``: use extended+i,
    else direct interpolation. ``numbers`` has the number of each coarse row on the next level, then their count;
    `extended_row` explains the other arrays."""
    n, coarse = state.size, numbers[state.size]
    longest = widest = 0
    for i in range(n):
        longest, widest = max(longest, indptr[i + 1] - indptr[i]), max(widest, c_indptr[i + 1] - c_indptr[i])
    found = min(coarse, (longest + 1) * widest)                  # most columns of a row before truncation
    for chunk in prange(CHUNKS):
        slots, columns, weights = np.empty(coarse, np.int32), np.empty(found, np.int32), np.zeros(found)
        for c in range(coarse):
            slots[c] = -1
        begins, ends, shares = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
        chosen = np.empty(most, np.int64)
        for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            begin = p_indptr[i] if known else i * most
            if state[i] == COARSE:
                p_data[begin] = 1
                if not known:
                    p_indices[begin], lengths[i] = numbers[i], 1
                continue
            count = np.int64(0)
            if state[i] == FINE:
                usable = 0
                if extended:
                    count, usable = extended_row(i, indptr, indices, data, mirror, strong, state, c_indptr, c_indices,
                                                 c_data, sums, slots, columns, weights, begins, ends, shares)
                if not usable:
                    forget(slots, columns, weights, count)
                    count = direct_row(i, indptr, indices, data, c_indptr, c_indices, c_data, sums, slots, columns,
                                       weights)
            whole = sum_kept = 0.0
            for c in range(count):
                whole += weights[c]
            if known:
                for k in range(begin, p_indptr[i + 1]):
                    at = slots[p_indices[k]]
                    p_data[k] = weights[at] if at >= 0 else 0.0
                    sum_kept += p_data[k]
                kept = p_indptr[i + 1] - begin
            else:
                kept = select(columns, weights, count, most, chosen)
                for t in range(kept):
                    p_indices[begin + t], p_data[begin + t] = columns[chosen[t]], weights[chosen[t]]
                    sum_kept += weights[chosen[t]]
                lengths[i] = kept
            factor = rescale(whole, sum_kept)
            for t in range(kept):
                p_data[begin + t] *= factor
            forget(slots, columns, weights, count)


interpolate_long = interpolate                   # a GPU has another kernel for long or few rows


@parallel
def compact(most, from_indices, from_data, indptr, indices, data):
    """Copy row i of P, which begins at place i × ``most`` of ``from_indices`` and ``from_data``, to indptr[i] of
    ``indices`` and ``data``, for all rows."""
    for i in prange(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            indices[k] = from_indices[i * most + k - indptr[i]]
            data[k] = from_data[i * most + k - indptr[i]]
