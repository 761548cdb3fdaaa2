"""The rows of a rank in two parts; on the host, before they are sent to a GPU."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def count_inside(indices, first, stop):
    """How many columns are among first to stop − 1."""
    count = 0
    for j in indices:
        count += first <= j < stop
    return count


@njit(cache=True)
def split(indptr, indices, data, first, stop, own_indptr, own_indices, own_data, rest_indptr, rest_indices, rest_data):
    """Columns first to stop − 1, counted from first, and the others, each in CSR; both begin at 0."""
    own = rest = 0
    for i in range(indptr.size - 1):
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            if first <= j < stop:
                own_indices[own], own_data[own] = j - first, data[at]
                own += 1
            else:
                rest_indices[rest], rest_data[rest] = j, data[at]
                rest += 1
        own_indptr[i + 1], rest_indptr[i + 1] = own, rest
