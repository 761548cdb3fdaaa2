"""Interpolation weights on the CPU, threads sharing the rows; see interpolation.py one folder up.

A thread gathers the weights of a row by coarse column, in ``slots`` (where a column's weight is, −1: nowhere), and
keeps the largest. Sums run in the order of the entries, so results do not depend on the number of threads.

Which links are strong and which rows coarse no processor predicts, and a wrong guess costs as much as ten products.
Entries are therefore picked without a branch: each is written to the next place, which moves on behind a picked one.
What a row calls is inlined: a call passes seven numbers for each array.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel
from swell.core.kernels.intrinsics import prefetch
from swell.preconditioners.amg.slots import State

FINE, COARSE = np.uint8(State.FINE), np.uint8(State.COARSE)
ONE = np.uint64(1)
CHUNKS = 16             # of the rows; each has its own ``slots``
CANCELLED = 1e-8        # of the sum of a row's moduli: a smaller divisor is rounding
LARGEST = 10.0          # weights beyond this come from cancellation
RESCALED = 10.0         # what truncation may multiply a row by


@njit(cache=True, forceinline=True, _nrt=False)
def is_coarse(k, indices, strong, state):
    """True if entry k is a strong link to a coarse row."""
    return (strong[np.uint64(k)] != 0) & (state[np.uint64(indices[np.uint64(k)])] == COARSE)


@parallel
def coarse_lengths(indptr, indices, strong, state, lengths):
    """lengths[i] = how many strong coarse columns fine row i has; 0 for other rows."""
    for i in prange(state.size):
        count = 0
        if state[i] == FINE:
            for k in range(indptr[i], indptr[i + 1]):
                count += is_coarse(k, indices, strong, state)
        lengths[i] = count


@parallel
def coarse_entries(indptr, indices, data, strong, state, numbers, c_indptr, c_indices, c_data, sums):
    """The strong coarse columns of fine rows, by their numbers on the next level, and sums[i] = βᵢ, their sum."""
    for i in prange(state.size):
        at, end, k, total = np.uint64(c_indptr[i]), np.uint64(c_indptr[i + 1]), np.uint64(indptr[i]), 0.0
        while at < end:                                          # so that no row writes past its end
            found = is_coarse(k, indices, strong, state)
            c_indices[at], c_data[at] = numbers[np.uint64(indices[k])], data[k]
            total += data[k] if found else 0.0
            at += np.uint64(found)
            k += ONE
        sums[i] = total


@njit(cache=True, forceinline=True, _nrt=False)
def add(slots, columns, weights, count, column, value):
    """Add to a column's weight; returns how many columns there are. Weights behind them are 0."""
    at = slots[np.uint64(column)]
    new = at < 0
    at = count if new else at
    slots[np.uint64(column)] = at
    columns[np.uint64(at)] = column
    weights[np.uint64(at)] += value
    return count + new


@njit(cache=True, forceinline=True, _nrt=False)
def extended_row(i, indptr, indices, data, strong, state, c_indptr, c_indices, c_data, sums, slots, columns, weights,
                 begins, ends, shares):
    """Extended+i: the weights of fine row i. Returns (how many, 1 if they can be used)."""
    count, total, moduli, fine = np.int64(0), 0.0, 0.0, np.uint64(0)
    for k in range(indptr[i], indptr[i + 1]):
        j, value = np.uint64(indices[np.uint64(k)]), data[np.uint64(k)]
        weak = strong[np.uint64(k)] == 0
        picked = (not weak) & (state[j] != COARSE)
        share = value / (sums[j] + value if picked else 1.0)     # aᵢⱼ / dᵢⱼ: neither term is positive, aⱼᵢ = aᵢⱼ
        moduli += abs(value)
        lumped = share * value if picked else 0.0
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
    """Direct interpolation: the weights of fine row i, from its strong coarse columns alone. Returns how many."""
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
    """Leave ``slots`` and weights as they were before a row."""
    for c in range(count):
        slots[np.uint64(columns[c])] = -1
        weights[c] = 0.0


@njit(cache=True, forceinline=True, _nrt=False)
def before(columns, weights, c, other):
    """True if weight c is kept sooner than another: it is larger, or as large and of a lesser column."""
    a, b = abs(weights[c]), abs(weights[other])
    return a > b or (a == b and columns[c] < columns[other])


@njit(cache=True, forceinline=True, _nrt=False)
def select(columns, weights, count, most, chosen):
    """The places of the ``most`` largest weights, in the order of their columns. Returns how many."""
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
    """What the kept weights are multiplied by, so that their sum stays whole; 1 where that would blow them up."""
    if whole == kept or not abs(whole) <= RESCALED * abs(kept) or not abs(kept) <= RESCALED * abs(whole):
        return 1.0
    return whole / kept


@parallel
def interpolate(indptr, indices, data, strong, state, numbers, c_indptr, c_indices, c_data, sums, extended, most, known,
                p_indptr, p_indices, p_data, lengths):
    """The rows of P. Unless ``known``, row i begins at i ``most``, and its columns and lengths[i] are written; else the
    pattern is given, and the values alone are written."""
    n, coarse = state.size, numbers[state.size]
    longest = widest = 0
    for i in range(n):
        longest, widest = max(longest, indptr[i + 1] - indptr[i]), max(widest, c_indptr[i + 1] - c_indptr[i])
    found = min(coarse, (longest + 1) * widest)                  # columns of a row at most
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
                    count, usable = extended_row(i, indptr, indices, data, strong, state, c_indptr, c_indices, c_data,
                                                 sums, slots, columns, weights, begins, ends, shares)
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


interpolate_long = interpolate                   # a GPU has another kernel for rows that are long or few


@parallel
def compact(most, from_indices, from_data, indptr, indices, data):
    """Rows that begin at i ``most``, side by side."""
    for i in prange(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            indices[k] = from_indices[i * most + k - indptr[i]]
            data[k] = from_data[i * most + k - indptr[i]]
