"""PMIS across ranks: the same coarse rows as on one device, bit for bit.

Keys are hashes of row numbers in the whole matrix (preconditioners/amg/pmis.py). A row's state depends on rows with
greater keys alone, so the order of decisions changes nothing. Each rank decides as many of its rows as it can from
the ghosts' states; then the ranks exchange states, until no row is undecided on any rank. Cost: one exchange of a byte
a ghost, and one sum over ranks, for each round; some five to ten rounds.
"""
from __future__ import annotations

import numpy as np


STEPS = 4               # steps of a rank between two exchanges


def states(A, window, border, strong, forced, counts=None):
    """Return the `State` of each row of a window, a uint8 array of the space.

    Parameters
    ----------
    A : CSRMatrix
        Square, of the window's rows; this rank's rows are needed, and without ``counts`` those of ghosts within a link.
    window : Window
    border : Border
        Of the window's ghosts.
    strong : uint8 array, shape (nnz,)
        1 for a strong link.
    forced : uint8 array, shape (own rows,) or (0,)
        1 for a row that must be coarse.
    counts : int32 array, shape (own rows,), optional
        The number of rows that depend strongly on each row. None: of ``strong``, if it is a link both ways or none.
    """
    space, rows = A.space, window.own
    kernels = space.kernels("swell.preconditioners.amg", "pmis", A.dtype)
    keys, state = space.empty(window.rows, np.int64), space.empty(window.rows, np.uint8)
    indptr = A.indptr[rows.start:rows.stop + 1]
    counts = influences(window, A.indices, strong)[rows] if counts is None else counts
    kernels.begin(indptr, strong, counts, forced, window.space.ranks.first, keys, state)
    return decided(window, border, indptr, A.indices, strong, keys, state)


def decided(window, border, indptr, indices, strong, keys, state):
    """Return the `State` of each row of a window when no row of any rank is undecided.

    ``indptr``: of this rank's rows; ``keys``, ``state``: theirs at the beginning."""
    space, rows = window.space, window.own
    kernels = space.kernels("swell.preconditioners.amg", "pmis", np.float64)
    pending = space.empty(window.rows, np.uint8)
    keys = window.around(keys, border.values(keys))
    state = window.around(state, border.values(state))
    while True:
        for _ in range(STEPS):
            kernels.advance(indptr, indices, strong, keys, state, rows.start, pending)
        undecided = space.find_true(pending)[1] if pending.size else 0  # sync
        others = border.values(state[rows])
        state = window.around(state[rows], others)
        if not sum(window.space.ranks.allgather(undecided)):
            return state


def influences(window, indices, strong):
    """Return the number of strong entries in each column of a window, a new int32 array.

    ``indices``, ``strong``: column and flag of each entry."""
    counts = window.space.xp.zeros(window.size, np.int32)
    window.space.kernels("swell.preconditioners.amg", "independent_set", np.float64).influences(indices, strong, counts)
    return counts
