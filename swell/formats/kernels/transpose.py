"""The transpose of a CSR matrix on the CPU; ``transpose.cu`` is for GPUs."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

GPU_ONLY = ("count_columns", "place", "sort")


@njit(cache=True)
def transpose(indptr, indices, data, new_indptr, new_indices, new_data, order):
    """Mᵀ, and where each of its values was unless ``order`` is empty. Rows of M are taken in their order, so columns
    ascend in each row of Mᵀ."""
    places = np.zeros((1, new_indptr.size - 1), indices.dtype)
    _count(indptr, indices, 0, indptr.size - 1, places[0])
    _begin(places, new_indptr)
    _place(indptr, indices, data, 0, indptr.size - 1, places[0], new_indices, new_data, order)


@njit(parallel=True, cache=True)
def transpose_in_chunks(indptr, indices, data, bounds, new_indptr, new_indices, new_data, order):
    """The same on several threads: chunk c has the rows of M from bounds[c] on, and counters of its own."""
    chunks = bounds.size - 1
    places = np.zeros((chunks, new_indptr.size - 1), indices.dtype)
    for c in prange(chunks):
        _count(indptr, indices, bounds[c], bounds[c + 1], places[c])
    _begin(places, new_indptr)
    for c in prange(chunks):
        _place(indptr, indices, data, bounds[c], bounds[c + 1], places[c], new_indices, new_data, order)


@njit(cache=True)
def _count(indptr, indices, first, last, places):
    """How many entries of each column the rows from first to last have."""
    for k in range(indptr[first], indptr[last]):
        places[np.uint64(indices[np.uint64(k)])] += 1


@njit(cache=True)
def _begin(places, new_indptr):
    """Where each chunk's entries of each column begin, in place of their number."""
    at = 0
    for j in range(places.shape[1]):
        new_indptr[j] = at
        for c in range(places.shape[0]):
            count = places[c, j]
            places[c, j] = at
            at += count
    new_indptr[-1] = at


@njit(cache=True)
def _place(indptr, indices, data, first, last, places, new_indices, new_data, order):
    """Each entry of the rows from first to last at the next place of its column."""
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            column = np.uint64(indices[np.uint64(k)])
            place = np.uint64(places[column])
            places[column] += 1
            new_indices[place] = i
            new_data[place] = data[np.uint64(k)]
            if order.size:
                order[place] = k
