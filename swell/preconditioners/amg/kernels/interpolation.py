"""Interpolation weights on the CPU, threads sharing the rows; see interpolation.py one folder up.

A thread gathers the weights of a row by coarse column, in ``slots`` (where a column's weight is, −1: nowhere), and
keeps the largest. Sums run in the order of the entries, so results do not depend on the number of threads.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.preconditioners.amg.slots import State

FINE, COARSE = np.uint8(State.FINE), np.uint8(State.COARSE)
CHUNKS = 16             # of the rows; each has its own ``slots``
CANCELLED = 1e-8        # of the sum of a row's moduli: a smaller divisor is rounding
LARGEST = 10.0          # weights beyond this come from cancellation
RESCALED = 10.0         # what truncation may multiply a row by


@njit(parallel=True, cache=True)
def coarse_lengths(indptr, indices, strong, state, lengths):
    """lengths[i] = how many strong coarse columns fine row i has; 0 for other rows."""
    for i in prange(state.size):
        count = 0
        if state[i] == FINE:
            for k in range(indptr[i], indptr[i + 1]):
                count += strong[k] and state[indices[k]] == COARSE
        lengths[i] = count


@njit(parallel=True, cache=True)
def coarse_entries(indptr, indices, data, strong, state, numbers, c_indptr, c_indices, c_data, sums):
    """The strong coarse columns of fine rows, by their numbers on the next level, and sums[i] = βᵢ, their sum."""
    for i in prange(state.size):
        at, total = c_indptr[i], 0.0
        if at < c_indptr[i + 1]:
            for k in range(indptr[i], indptr[i + 1]):
                if strong[k] and state[indices[k]] == COARSE:
                    c_indices[at], c_data[at] = numbers[indices[k]], data[k]
                    total += data[k]
                    at += 1
        sums[i] = total


@njit(cache=True)
def add(slots, columns, weights, count, column, value):
    """Add to a column's weight; returns how many columns there are."""
    at = slots[column]
    if at < 0:
        slots[column] = at = count
        columns[at], weights[at] = column, 0.0
        count += 1
    weights[at] += value
    return count


@njit(cache=True)
def extended_row(i, indptr, indices, data, strong, state, c_indptr, c_indices, c_data, sums, slots, columns, weights):
    """Extended+i: the weights of fine row i. Returns (how many, 1 if they can be used)."""
    count, total, moduli = 0, 0.0, 0.0
    for at in range(c_indptr[i], c_indptr[i + 1]):
        count = add(slots, columns, weights, count, c_indices[at], c_data[at])
    for k in range(indptr[i], indptr[i + 1]):
        j, value = indices[k], data[k]
        moduli += abs(value)
        if not strong[k]:                                        # aᵢᵢ, and γᵢ: weak links are lumped
            total += value
        elif state[j] != COARSE:
            share = value / (sums[j] + value)                    # aᵢⱼ / dᵢⱼ: neither term is positive, aⱼᵢ = aᵢⱼ
            total += share * value
            for at in range(c_indptr[j], c_indptr[j + 1]):
                count = add(slots, columns, weights, count, c_indices[at], share * c_data[at])
    if not total > CANCELLED * moduli:
        return count, 0
    usable = 1
    for c in range(count):
        weights[c] /= -total
        if not abs(weights[c]) <= LARGEST:
            usable = 0
    return count, usable


@njit(cache=True)
def direct_row(i, indptr, indices, data, c_indptr, c_indices, c_data, sums, slots, columns, weights):
    """Direct interpolation: the weights of fine row i, from its strong coarse columns alone. Returns how many."""
    count, diagonal, negative = 0, 0.0, 0.0
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != i and data[k] < 0:
            negative += data[k]
        else:
            diagonal += data[k]                                  # positive links are lumped
    if diagonal > 0:                                             # else nothing is interpolated
        for at in range(c_indptr[i], c_indptr[i + 1]):
            count = add(slots, columns, weights, count, c_indices[at], -negative / sums[i] / diagonal * c_data[at])
    return count


@njit(cache=True)
def before(columns, weights, c, other):
    """True if weight c is kept sooner than another: it is larger, or as large and of a lesser column."""
    a, b = abs(weights[c]), abs(weights[other])
    return a > b or (a == b and columns[c] < columns[other])


@njit(cache=True)
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


@njit(parallel=True, cache=True)
def interpolate(indptr, indices, data, strong, state, numbers, c_indptr, c_indices, c_data, sums, extended, most, known,
                p_indptr, p_indices, p_data, lengths):
    """The rows of P. Unless ``known``, row i begins at i ``most``, and its columns and lengths[i] are written; else the
    pattern is given, and the values alone are written."""
    n, coarse = state.size, numbers[state.size]
    for chunk in prange(CHUNKS):
        slots = np.full(coarse, -1, np.int32)
        columns, weights = np.empty(coarse, np.int32), np.empty(coarse)         # few are touched
        chosen = np.empty(most, np.int64)
        for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            begin = p_indptr[i] if known else i * most
            if state[i] == COARSE:
                p_data[begin] = 1
                if not known:
                    p_indices[begin], lengths[i] = numbers[i], 1
                continue
            count = 0
            if state[i] == FINE:
                usable = 0
                if extended:
                    count, usable = extended_row(i, indptr, indices, data, strong, state, c_indptr, c_indices, c_data,
                                                 sums, slots, columns, weights)
                if not usable:
                    for c in range(count):
                        slots[columns[c]] = -1
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
            for c in range(count):
                slots[columns[c]] = -1


@njit(parallel=True, cache=True)
def compact(most, from_indices, from_data, indptr, indices, data):
    """Rows that begin at i ``most``, side by side."""
    for i in prange(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            indices[k] = from_indices[i * most + k - indptr[i]]
            data[k] = from_data[i * most + k - indptr[i]]
