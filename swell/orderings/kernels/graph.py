"""Graphs on the CPU."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def turned(indptr, neighbours, visit, out_indptr, out):
    """The same edges from their other ends, the lists of the ends in the order of ``visit``: vertex v of ``visit`` is
    appended to the list of each of its neighbours."""
    at = out_indptr[:-1].copy()
    for v in visit:
        for k in range(indptr[v], indptr[v + 1]):
            u = neighbours[k]
            out[at[u]] = v
            at[u] += 1
