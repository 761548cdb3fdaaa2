"""PMIS on the CPU, threads sharing the rows; see pmis.py one folder up.

Several threads may write the same byte of ``beaten``; all write 1, so their order does not matter.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.preconditioners.amg.slots import State

UNDECIDED, FINE = np.uint8(State.UNDECIDED), np.uint8(State.FINE)
COARSE, ISOLATED = np.uint8(State.COARSE), np.uint8(State.ISOLATED)


@njit(cache=True)
def influences(indices, strong, counts):
    """counts[j] += how many rows depend strongly on row j. Integers: the same in any order."""
    for k in range(indices.size):
        if strong[k]:
            counts[indices[k]] += 1


@njit(cache=True)
def scattered(row):
    """32 bits that follow from a row's number, different for different rows: MurmurHash3's last step."""
    h = np.uint32(row)
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))          # Numba multiplies in 64 bits
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@njit(parallel=True, cache=True)
def begin(indptr, strong, counts, forced, first, keys, state):
    """Each row's key, its count before its number's hash, and what is known from the start. ``first``: the number of
    row 0 in the whole matrix."""
    for i in prange(state.size):
        linked = False
        for k in range(indptr[i], indptr[i + 1]):
            linked |= strong[k] != 0
        keys[i] = (np.int64(counts[i]) << np.int64(32)) | np.int64(scattered(first + i))
        if forced.size and forced[i]:
            state[i] = COARSE
        elif not linked:
            state[i] = ISOLATED
        elif counts[i] == 0:
            state[i] = FINE
        else:
            state[i] = UNDECIDED


@njit(parallel=True, cache=True)
def contest(indptr, indices, strong, keys, state, beaten):
    """beaten = 1 for the lesser key of every strong link between two undecided rows."""
    for i in prange(state.size):
        if state[i] == UNDECIDED:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if strong[k] and state[j] == UNDECIDED:
                    if keys[i] < keys[j]:
                        beaten[i] = 1
                    else:
                        beaten[j] = 1


@njit(parallel=True, cache=True)
def promote(state, beaten):
    """Undecided rows that nobody has beaten become coarse."""
    for i in prange(state.size):
        if state[i] == UNDECIDED and beaten[i] == 0:
            state[i] = COARSE
        beaten[i] = 0


@njit(parallel=True, cache=True)
def cover(indptr, indices, strong, state):
    """Undecided rows that depend strongly on a coarse row become fine. Returns how many stay undecided."""
    remaining = 0
    for i in prange(state.size):
        if state[i] == UNDECIDED:
            covered = False
            for k in range(indptr[i], indptr[i + 1]):
                covered |= strong[k] != 0 and state[indices[k]] == COARSE
            if covered:
                state[i] = FINE
            else:
                remaining += 1
    return remaining


@njit(cache=True)
def rounds(indptr, indices, strong, keys, state, beaten, record):
    """Rounds until every row is decided. ``beaten`` is 0 before and after; ``record`` is for a GPU's blocks."""
    while cover(indptr, indices, strong, state):                 # first: forced rows are coarse already
        contest(indptr, indices, strong, keys, state, beaten)
        promote(state, beaten)


@njit(parallel=True, cache=True)
def mark_coarse(state, marked):
    """marked[i] = 1 for a coarse row."""
    for i in prange(state.size):
        marked[i] = state[i] == COARSE


@njit(parallel=True, cache=True)
def carry(state, numbers, marked, kept):
    """kept[numbers[i]] = marked[i] of each coarse row i."""
    for i in prange(state.size):
        if state[i] == COARSE:
            kept[numbers[i]] = marked[i]
