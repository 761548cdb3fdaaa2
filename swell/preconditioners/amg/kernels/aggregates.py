"""Aggregates of nodes on the CPU; see aggregates.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.preconditioners.amg.kernels.pmis import scattered
from swell.preconditioners.amg.slots import State

UNDECIDED, FINE = np.uint8(State.UNDECIDED), np.uint8(State.FINE)
COARSE, ISOLATED = np.uint8(State.COARSE), np.uint8(State.ISOLATED)


@parallel
def unit_rows(indptr, data):
    """Write the row pointers and values of a matrix whose rows have a single entry 1 each."""
    for i in prange(data.size):
        indptr[i], data[i] = i, 1.0
    indptr[data.size] = data.size


@parallel
def squares(data, factor, out):
    """Write out[k] = (``factor`` · data[k])²."""
    for k in prange(data.size):
        out[k] = (factor * data[k]) * (factor * data[k])


@parallel
def strong_pairs(indptr, indices, data, diagonal, bound, strong, state):
    """Write strong[k] = 1 if entry k links two different nodes strongly: gᵢⱼ > bound √(gᵢᵢ gⱼⱼ), else 0.

    ``data``: the entries g of the graph, squares of norms. diagonal[i] = gᵢᵢ. state[i]: ISOLATED for a node without
    strong links, else UNDECIDED."""
    for i in prange(state.size):
        linked, own = False, bound * np.sqrt(diagonal[i])
        for k in range(indptr[i], indptr[i + 1]):
            j, value = indices[k], data[k]
            found = (j != i) & (value > 0) & (value > own * np.sqrt(diagonal[j]))
            strong[k] = found
            linked |= found
        state[i] = UNDECIDED if linked else ISOLATED


def choose_roots(indptr, indices, strong, first, cursors, state):
    """Make each undecided node COARSE, a root, unless a root lies within two strong links; then it is FINE.

    Nodes are asked in the order of their keys, the hashes of their row numbers, from the greatest. ``first``: the
    number of row 0 in the whole matrix. The CPU does not use ``cursors``, a GPU's work space."""
    keys = np.empty(state.size, np.int64)
    hashes(first, keys)
    take_in_order(np.argsort(-keys), indptr, indices, strong, state)


@parallel
def hashes(first, keys):
    """Write keys[i] = the hash of row number first + i."""
    for i in prange(keys.size):
        keys[i] = scattered(first + i)


@njit(cache=True)
def take_in_order(order, indptr, indices, strong, state):
    """Decide the undecided nodes one after the other; see `choose_roots`."""
    for i in order:
        if state[i] == UNDECIDED:
            state[i] = FINE if root_within_two(i, indptr, indices, strong, state) else COARSE


@njit(cache=True)
def root_within_two(i, indptr, indices, strong, state):
    """True if a root lies within two strong links of node i."""
    for k in range(indptr[i], indptr[i + 1]):
        if strong[k]:
            j = indices[k]
            if state[j] == COARSE:
                return True
            for l in range(indptr[j], indptr[j + 1]):
                if strong[l] and state[indices[l]] == COARSE:
                    return True
    return False


@parallel
def join_roots(indptr, indices, data, strong, state, numbers, joined):
    """Write joined[i]: the aggregate of node i if it is a root or a root's strong neighbour, else −1.

    numbers[i] is the number of root i. Among several roots the one with the largest entry counts, then the first."""
    for i in prange(state.size):
        own, largest = -1, 0.0
        if state[i] == COARSE:
            own = numbers[i]
        else:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if strong[k] and state[j] == COARSE and data[k] > largest:
                    own, largest = numbers[j], data[k]
        joined[i] = own


@parallel
def join_neighbours(indptr, indices, data, strong, joined, aggregates):
    """Write aggregates[i]: joined[i], or, where that is −1, the aggregate of the strong neighbour with the largest
    entry that has one; else −1."""
    for i in prange(joined.size):
        own, largest = joined[i], 0.0
        if own < 0:
            for k in range(indptr[i], indptr[i + 1]):
                at = joined[indices[k]]
                if strong[k] and at >= 0 and data[k] > largest:
                    own, largest = at, data[k]
        aggregates[i] = own


@parallel
def of_unknowns(nodes, aggregates, count, members):
    """Write members[d]: the aggregate of unknown d; ``count`` if it has none. nodes[d] is its node; if ``nodes`` is
    empty, each unknown is a node."""
    for d in prange(members.size):
        own = aggregates[np.int64(nodes[d]) if nodes.size else np.int64(d)]
        members[d] = own if own >= 0 else count
