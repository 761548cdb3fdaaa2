"""PMIS across ranks: the same coarse rows as on one device, bit for bit.

Keys are hashes of row numbers in the whole matrix (preconditioners/amg/pmis.py). A row's state depends on rows with
greater keys alone, so the order of decisions changes nothing. Each rank decides as many of its rows as it can from
the ghosts' states; then the ranks exchange states, until no row is undecided on any rank. Cost: one exchange of a byte
a ghost, and one sum over ranks, for each round; some five to ten rounds.
"""
from __future__ import annotations

import numpy as np


STEPS = 4               # steps of a rank between two exchanges


def states(A, window, border, strong, forced):
    """Return the `State` of each row of a window, a uint8 array of the space.

    Parameters
    ----------
    A : CSRMatrix
        Square, of the window's rows; the rows of ghosts within one link are present.
    window : Window
    border : Border
        Of the window's ghosts.
    strong : uint8 array, shape (nnz,)
        1 for a strong link.
    forced : uint8 array, shape (own rows,) or (0,)
        1 for a row that must be coarse.
    """
    space, xp, rows = A.space, A.space.xp, window.own
    kernels = space.kernels("swell.preconditioners.amg", "pmis", A.dtype)
    counts, keys = xp.zeros(window.size, np.int32), space.empty(window.rows, np.int64)
    state, pending = space.empty(window.rows, np.uint8), space.empty(window.rows, np.uint8)
    indptr = A.indptr[rows.start:rows.stop + 1]
    space.kernels("swell.preconditioners.amg", "independent_set", A.dtype).influences(A.indices, strong, counts)
    kernels.begin(indptr, strong, counts[rows], forced, window.space.ranks.first, keys, state)
    keys = window.around(keys, border.values(keys))
    state = window.around(state, border.values(state))
    while True:
        for _ in range(STEPS):
            kernels.advance(indptr, A.indices, strong, keys, state, rows.start, pending)
        undecided = space.find_true(pending)[1] if pending.size else 0  # sync
        others = border.values(state[rows])
        state = window.around(state[rows], others)
        if not sum(window.space.ranks.allgather(undecided)):
            return state
