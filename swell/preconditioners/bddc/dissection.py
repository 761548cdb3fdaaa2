"""Nested dissection of an interior by level sets, and the structure of its factors.

A. George and J. Liu 1978 (automatic nested dissection). Distances in the graph, from each face of the subdomain and
from one dof, cut it into level sets; a level is coupled to the two beside it only, so it separates those before from
those after. A part is cut by the level, of all distances, with the least rows for its sides' balance; rows of the level
that are not coupled to the far side join the near side. Parts of up to `SMALL` rows are not cut: they are fronts, and
each separator is one, after the two parts (elimination.py). For a box with a face on the interface the separators are
its sections.

Distances from faces are found anyway, and there are few, so a dissection costs less than METIS', which takes as long as
the factorisation of a subdomain of 16³.
"""
from __future__ import annotations

import numpy as np

from swell.core.library import native_kernels

SMALL = 100             # rows of a part that is not cut: fewer cost more calls than they save operations


def dissect(A, distances, small=SMALL):
    """Return (order, ends), int arrays: the rows of A by front; front k is order[ends[k]:ends[k + 1]].

    Parameters
    ----------
    A : scipy.sparse.csr_array
        With a symmetric pattern.
    distances : list of int arrays
        For each row its distance to a set of rows.
    small : int
        A part of no more rows is a front.
    """
    n, kernels = A.shape[0], native_kernels("swell.preconditioners.bddc", "dissection")
    order, ends = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    count = kernels.dissect(A.indptr, A.indices, np.array(distances, np.int64), small, order, ends)
    return order, ends[:count + 1].copy()


def structure(A, ends):
    """Return (below, parents) of the factors of a matrix with rows in fronts: a list with an int array for each front,
    the columns right of it that have entries in it, ascending; and the number of the front that has the first of them,
    −1 without one.

    A : CSRMatrix of a CPU
        Its first ``ends[-1]`` rows are in fronts; it may have more columns.
    """
    kernels, count, below = native_kernels("swell.preconditioners.bddc", "dissection"), len(ends) - 1, np.empty(0, int)
    ptr, parents = np.empty(count + 1, np.int64), np.empty(count, np.int64)
    for _ in range(2):
        size = kernels.structure(A.indptr, A.indices, ends, A.shape[1], ptr, below, parents)
        if size <= below.size:
            break
        below = np.empty(size, np.int64)
    return np.split(below, ptr[1:-1]), parents.tolist()
