"""Split of a rank's rows into the diagonal block and the rest, on the host, before they are sent to a GPU."""
from __future__ import annotations

from swell.core.compiled import njit



@njit(cache=True)
def count_inside(indices, first, stop):
    """Return the number of entries of ``indices`` in first … stop − 1."""
    count = 0
    for j in indices:
        count += first <= j < stop
    return count


@njit(cache=True)
def split(indptr, indices, data, first, stop, own_indptr, own_indices, own_data, rest_indptr, rest_indices, rest_data):
    """Split a CSR matrix (indptr, indices, data) into two: ``own`` with the columns first … stop − 1, renumbered from
    0, and ``rest`` with the other columns, unchanged.

    Writes the six arrays own_… and rest_…. The caller allocates them, with own_indptr[0] = rest_indptr[0] = 0.
    """
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
