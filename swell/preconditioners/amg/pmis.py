"""PMIS, parallel modified independent sets: the choice of the next level's rows. De Sterck, Yang and Heys 2006.

Coarse rows are a maximal independent set of the graph of strong links. A row's key is the number of rows that depend on
it, with ties broken by a hash of its row number. In each round an undecided row becomes coarse if its key exceeds the
keys of all its undecided neighbours. Undecided rows that depend strongly on a coarse row become fine. Rows on which no
row depends are fine at once.

The keys depend on row numbers in the whole matrix, so the result is equal on every device, for every number of threads
and ranks. A CPU needs some five to ten rounds, each two passes over the strong links of undecided rows. A GPU needs no
rounds but one launch: each row waits for the rows on which it depends strongly and whose keys are greater.
"""
from __future__ import annotations

import numpy as np


def pmis(A, strong, forced, first=0):
    """Return the `State` of each row, a uint8 array of shape (n,).

    Parameters
    ----------
    A : CSRMatrix
        Only its pattern is used.
    strong : uint8 array, shape (nnz,)
        1 for a strong link.
    forced : uint8 array, shape (n,) or (0,)
        1 for a row that must be coarse.
    first : int
        The number of row 0 in the whole matrix.
    """
    space, n = A.space, A.shape[0]
    kernels, deciding = (space.kernels("swell.preconditioners.amg", stem, A.dtype)
                         for stem in ("pmis", "independent_set"))
    counts, keys, state = space.xp.zeros(n, np.int32), space.empty(n, np.int64), space.empty(n, np.uint8)
    rivals, lengths, rows = (space.empty(size, A.indices.dtype) for size in (A.nnz, n, n))
    deciding.influences(A.indices, strong, counts)
    kernels.begin(A.indptr, strong, counts, forced, first, keys, state)
    deciding.decide(A.indptr, A.indices, strong, keys, state, rivals, lengths, rows)
    return state


def coarse_numbers(A, state):
    """Return an int array, shape (n + 1,): the number of each coarse row on the next level; the last entry is their
    count. ``state`` is the result of `pmis`."""
    numbers, marked = A.space.empty(state.size + 1, A.indices.dtype), A.space.empty(state.size, np.uint8)
    A.space.kernels("swell.preconditioners.amg", "pmis", A.dtype).mark_coarse(state, marked)
    A.space.prefix_sums(marked, numbers)
    return numbers


def carried(A, state, numbers, marked, coarse):
    """Return the flags ``marked`` of the coarse rows, a new array numbered as on the next level; empty if ``marked`` is
    empty.

    ``state`` and ``numbers`` are the results of `pmis` and `coarse_numbers`; ``coarse`` is the number of coarse rows.
    """
    kept = A.space.empty(coarse if marked.size else 0, np.uint8)
    if marked.size:
        A.space.kernels("swell.preconditioners.amg", "pmis", A.dtype).carry(state, numbers, marked, kept)
    return kept
