"""A graph kernel on the CPU."""
from __future__ import annotations

from swell.core.compiled import njit



@njit(cache=True)
def transpose_graph(indptr, neighbours, visit, out_indptr, out):
    """Write the lists of the transposed graph to ``out``; the list of vertex u begins at out_indptr[u].

    Each vertex v, in the order of ``visit``, is appended to the list of each of its neighbours,
    neighbours[indptr[v]:indptr[v + 1]]. So every list of ``out`` is in the order of ``visit``."""
    at = out_indptr[:-1].copy()
    for v in visit:
        for k in range(indptr[v], indptr[v + 1]):
            u = neighbours[k]
            out[at[u]] = v
            at[u] += 1
