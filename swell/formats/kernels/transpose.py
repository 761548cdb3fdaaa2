"""The transpose of a CSR matrix on the CPU; ``transpose.cu`` is for GPUs."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit

GPU_ONLY = ("count_columns", "place", "sort")


@njit(cache=True)
def transpose(indptr, indices, data, new_indptr, new_indices, new_data, order):
    """Write the CSR arrays of Mᵀ (``new_…``) and, unless ``order`` is empty, the index in M of each of its values.

    The first three arguments are M in CSR. Its rows are visited in order, so columns ascend in each row of Mᵀ."""
    new_indptr[:] = 0
    for k in range(indices.size):
        new_indptr[np.uint64(indices[np.uint64(k)]) + np.uint64(1)] += 1
    for j in range(1, new_indptr.size):
        new_indptr[j] += new_indptr[j - 1]
    places = new_indptr[:-1].copy()
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            column = np.uint64(indices[np.uint64(k)])
            place = np.uint64(places[column])
            places[column] += 1
            new_indices[place] = i
            new_data[place] = data[np.uint64(k)]
            if order.size:
                order[place] = k
