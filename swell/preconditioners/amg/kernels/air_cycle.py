"""The matrices of AIR's cycle on the CPU, threads sharing the rows; see air_cycle.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.preconditioners.amg.slots import State

COARSE = np.uint8(State.COARSE)


@parallel
def relaxed_diagonal(indptr, indices, data, least, diagonal):
    """Write diagonal[i] = aᵢᵢ, in modulus at least ``least`` times the row's largest |aᵢⱼ|; 1 for a row without a
    non-zero entry."""
    for i in prange(diagonal.size):
        largest = own = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[k]))
            own = data[k] if indices[k] == i else own
        if largest == 0:
            own = 1.0
        elif abs(own) < least * largest:
            own = -least * largest if own < 0 else least * largest
        diagonal[i] = own


@parallel
def places(state, numbers, coarse_places, begin, own_places, rows):
    """Write the place of each row in the order of the cycle, and the row at each place: fine rows first, in their
    order, then from ``begin`` on the coarse rows, each ``coarse_places`` of its number further on.

    ``rows`` must hold −1 beforehand: a place may stay empty."""
    for i in prange(state.size):
        at = begin + coarse_places[numbers[i]] if state[i] == COARSE else i - numbers[i]
        own_places[i], rows[at] = at, i


@parallel
def picked_lengths(indptr, rows, lengths):
    """Write lengths[r] = the number of entries of row rows[r] of a CSR matrix; 0 for −1."""
    for r in prange(rows.size):
        lengths[r] = indptr[rows[r] + 1] - indptr[rows[r]] if rows[r] >= 0 else 0


@parallel
def pick_columns(indptr, indices, rows, columns, to_indptr, to_indices):
    """Write row r of a new CSR pattern: row rows[r] of the given one, its columns renumbered by ``columns``."""
    for r in prange(rows.size):
        if rows[r] >= 0:
            for k in range(to_indptr[r], to_indptr[r + 1]):
                to_indices[k] = columns[indices[indptr[rows[r]] + k - to_indptr[r]]]


@parallel
def pick_complement(indptr, indices, data, rows, diagonal, parents, to_indptr, to_data):
    """Write the values of row r of a new matrix: eⱼ − row i of the given one divided by diagonal[i], with i = rows[r]
    and eⱼ the unit vector of column j = parents[i], nothing for −1."""
    for r in prange(rows.size):
        i = rows[r]
        if i >= 0:
            for k in range(to_indptr[r], to_indptr[r + 1]):
                at = indptr[i] + k - to_indptr[r]
                to_data[k] = (1.0 if indices[at] == parents[i] else 0.0) - data[at] / diagonal[i]


@parallel
def pick_balanced(indptr, indices, data, rows, fine, coarse, to_indptr, to_data):
    """Write the values of row r of a new matrix: row i = rows[r] of the given one, its columns multiplied by ``fine``
    and divided by coarse[i]."""
    for r in prange(rows.size):
        i = rows[r]
        if i >= 0:
            for k in range(to_indptr[r], to_indptr[r + 1]):
                at = indptr[i] + k - to_indptr[r]
                to_data[k] = data[at] * fine[indices[at]] / coarse[i]


@parallel
def enter(x, places, diagonal, divide, factor, y):
    """Write y[places[i]] = factor[0] x[i], divided by diagonal[i] if ``divide``, in the type of y."""
    for i in prange(places.size):
        y[places[i]] = (factor[0] / diagonal[i] if divide else factor[0]) * x[i]


@parallel
def leave(y, places, diagonal, divide, factor, out, alpha, beta):
    """Write out[i] = alpha y[places[i]] / factor[0] + beta out[i], y divided by diagonal[i] too if ``divide``; beta = 0
    never reads out."""
    for i in prange(places.size):
        inverse = 1 / factor[0] / diagonal[i] if divide else 1 / factor[0]
        value = alpha * out.dtype.type(inverse * y[places[i]])
        out[i] = value if beta == 0 else value + beta * out[i]
