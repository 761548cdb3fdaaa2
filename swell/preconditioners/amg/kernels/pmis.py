"""PMIS on the CPU, threads sharing the rows; see pmis.py one folder up.

Each round shortens the list of undecided rows. A processor cannot predict the outcome of a comparison of keys: so each
link makes one write without a branch, to an unused byte if it decides nothing. Several threads may write one byte; all
write 1, so their order does not matter.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.preconditioners.amg.slots import State

UNDECIDED, FINE = np.uint8(State.UNDECIDED), np.uint8(State.FINE)
COARSE, ISOLATED = np.uint8(State.COARSE), np.uint8(State.ISOLATED)
CHUNKS = 64             # chunks of undecided rows
LINE = 64               # bytes of a cache line


@njit(cache=True)
def influences(indices, strong, counts):
    """Add to counts[j] the number of rows that depend strongly on row j. strong[k] is 1 if entry k, in column
    indices[k], is a strong link, else 0."""
    for k in range(indices.size):
        counts[np.uint64(indices[k])] += strong[k]


@njit(cache=True)
def scattered(row):
    """Return a 32-bit hash of a row's number, different for different rows: MurmurHash3's last step."""
    h = np.uint32(row)
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))          # Numba multiplies in 64 bits
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@parallel
def begin(indptr, strong, counts, forced, first, keys, state):
    """Write each row's key, (counts[i], then a hash of its row number), and its first ``state``.

    counts[i]: the number of rows that depend strongly on row i. forced[i]: 1 for a row that must be coarse; may be
    empty. ``first``: the number of row 0 in the whole matrix, if these are local rows."""
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


@parallel
def contest(rows, indptr, indices, strong, keys, beaten):
    """Compare the undecided ``rows`` with their strong neighbours: set beaten[i] = 1 for the row with the smaller key
    of each pair.

    A decided row has the key −1, and may be marked too. ``beaten`` has unused bytes behind the rows' flags."""
    for c in prange(CHUNKS):
        unused = np.uint64(keys.size + c * LINE)
        for r in range(c * rows.size // CHUNKS, (c + 1) * rows.size // CHUNKS):
            i = np.uint64(rows[r])
            lost = False
            for k in range(indptr[i], indptr[i + np.uint64(1)]):
                j, linked = np.uint64(indices[np.uint64(k)]), strong[np.uint64(k)] != 0
                lost |= linked & (keys[i] < keys[j])
                beaten[j if linked & (keys[j] < keys[i]) else unused] = 1
            if lost:
                beaten[i] = 1


@parallel
def promote(rows, state, keys, beaten):
    """Make each of the undecided ``rows`` coarse that is not beaten: write ``state`` and keys[i] = −1. Resets
    ``beaten`` to 0."""
    for r in prange(rows.size):
        i = np.uint64(rows[r])
        if beaten[i] == 0:
            state[i], keys[i] = COARSE, -1
        beaten[i] = 0


@parallel
def cover(rows, indptr, indices, strong, state, keys):
    """Make each of the undecided ``rows`` fine that depends strongly on a coarse row: write ``state`` and keys[i] = −1.
    """
    for r in prange(rows.size):
        i = np.uint64(rows[r])
        covered = False
        for k in range(indptr[i], indptr[i + np.uint64(1)]):
            covered |= (strong[np.uint64(k)] != 0) & (state[np.uint64(indices[np.uint64(k)])] == COARSE)
        if covered & (state[i] == UNDECIDED):
            state[i], keys[i] = FINE, -1


@njit(cache=True)
def undecided(rows, state):
    """Move the undecided rows to the front of ``rows``, and return this part. The result is a view."""
    count = 0
    for r in range(rows.size):
        rows[count] = rows[r]
        count += state[np.uint64(rows[r])] == UNDECIDED
    return rows[:count]


def decide(indptr, indices, strong, keys, state, rivals, lengths, rows):
    """Run rounds of `cover`, `contest` and `promote` until every row is coarse, fine or isolated. Writes ``state`` and
    overwrites ``keys``, both from `begin`. The CPU does not use ``rivals``, ``lengths`` and the given ``rows``; they
    are a GPU's work space."""
    beaten = np.zeros(state.size + CHUNKS * LINE, np.uint8)                    # a cache line of idle writes a chunk
    keys[state != UNDECIDED] = -1
    rows = np.flatnonzero(state == UNDECIDED).astype(indices.dtype)
    while True:
        cover(rows, indptr, indices, strong, state, keys)        # first: forced rows are coarse already
        rows = undecided(rows, state)
        if not rows.size:
            return
        contest(rows, indptr, indices, strong, keys, beaten)
        promote(rows, state, keys, beaten)


@parallel
def advance(indptr, indices, strong, keys, state, first, left):
    """Decide the undecided rows whose rivals are decided: one step of PMIS across ranks. Changes ``state`` in place,
    and writes left[r] = 1 for a row that stays undecided, else 0.

    Row r of ``indptr`` and ``left`` is row first + r of ``keys`` and ``state``. A rival of a row is a row with a
    greater key on which it depends strongly. A row is fine if a rival is coarse, and coarse if all rivals are decided
    otherwise; so a step may use rows that it has just decided, and the result is the same for any order."""
    for r in prange(left.size):
        i, covered, open_ = first + r, False, False
        if state[i] == UNDECIDED:
            for k in range(indptr[r], indptr[r + 1]):
                j = np.uint64(indices[np.uint64(k)])
                if (strong[np.uint64(k)] != 0) & (keys[j] > keys[i]):
                    covered |= state[j] == COARSE
                    open_ |= state[j] == UNDECIDED
            if covered:
                state[i] = FINE
            elif not open_:
                state[i] = COARSE
        left[r] = state[i] == UNDECIDED


@parallel
def mark_coarse(state, marked):
    """Write marked[i] = 1 for a coarse row, else 0."""
    for i in prange(state.size):
        marked[i] = state[i] == COARSE


@parallel
def carry(state, numbers, marked, kept):
    """Write kept[numbers[i]] = marked[i] for each coarse row i: flags of rows, renumbered as on the next level."""
    for i in prange(state.size):
        if state[i] == COARSE:
            kept[numbers[i]] = marked[i]
