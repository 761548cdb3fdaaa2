"""Minimum degree with good pivots on the diagonal, for a factorisation that leaves them there.

A pivot is weak if it is much smaller than another entry of its row. Two cures:

- Where all weak pivots are zeros, and the pattern is symmetric or nearly so, as in Stokes problems, they wait in the
  elimination until neighbours have been eliminated, which fills in their diagonal entries. Rows and columns are scaled
  alike. A count of ranks tells if there are enough neighbours before each of them (`unready`). In mixed finite elements
  often there are not: the fluxes between some cells are eliminated, and none out of them, which leaves these cells a
  Neumann problem.
- Otherwise rows are exchanged and scaled so that large entries come onto the diagonal (transversal.py). This destroys
  the symmetry of the pattern: factors of a saddle point have two to five times the entries.

Beside weak pivots, entries that are zero but for rounding are left out of the factors. Finite elements store such
entries: a mass matrix of right-angled triangles couples fluxes by 1e-17. They hide which pivots can wait, and they fill
the factors with rounding errors.

An A that some order of its rows and columns makes lower triangular needs no elimination: its factors are A. Its graph
has no cycle, so each strongly connected component is one vertex (Tarjan 1972).
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.orderings.minimum_degree import Elimination, FactorisationCost, eliminate, unready
from swell.orderings.transversal import Matching, largest_of_rows, matching, power_of_two

WEAK = 1e-3             # a pivot is weak if it is less than this fraction of the largest entry of its row
ROUNDING = 8            # an entry is negligible up to ROUNDING eps times the largest of its row, and of its column
MAX_UNMATCHED = 0.05    # share of entries without a mirror image up to which a pattern is nearly symmetric


def weak_pivots(indptr, indices, moduli):
    """Return (a bool array of the rows with weak pivots, True if all weak pivots are zero).

    ``indptr``, ``indices``: a square pattern in CSR, in any order of columns. ``moduli``: |aᵢⱼ|."""
    n = indptr.size - 1
    on = np.flatnonzero(np.repeat(np.arange(n, dtype=indices.dtype), np.diff(indptr)) == indices)
    diagonal = np.zeros(n, moduli.dtype)
    diagonal[indices[on]] = moduli[on]
    weak = diagonal < WEAK * largest_of_rows(indptr, moduli)
    return weak, not diagonal[weak].any()


def negligible(indptr, indices, moduli):
    """Return a bool array of the entries that are zero, or would be but for rounding, in their row and their column.

    Leaving them out changes A by no more than the rounding errors of a product with A. For the arguments see
    `weak_pivots`."""
    columns = np.zeros(indptr.size - 1, moduli.dtype)
    np.maximum.at(columns, indices, moduli)
    of_row = np.repeat(largest_of_rows(indptr, moduli), np.diff(indptr))
    return moduli <= ROUNDING * np.finfo(moduli.dtype).eps * np.minimum(of_row, columns[indices])


def eliminate_with_pivots(A, entries=math.inf, flops=math.inf, visits=math.inf):
    """Return (the `Elimination` of A or of A with its rows exchanged, the exchange and the scaling as a `Matching`).

    The second result is None without weak pivots, and where zeros wait and the elimination has met a limit. A is a
    square CSRMatrix, sorted, without duplicates; for the limits see `factorisation_cost`. A complete result is kept in
    ``A.pivots`` until the values of A change.

    Raises
    ------
    FactorisationError
        If A is structurally singular.
    """
    kept = A.pivots                              # read once: another thread may discard it
    if kept is None or kept[0].cost.entries > entries or kept[0].cost.flops > flops:
        kept = _eliminate_with_pivots(A, entries, flops, visits)
        A.pivots = kept if kept[0].cost.complete else None
    return kept


def _eliminate_with_pivots(A, entries, flops, visits):
    host, facts = A.space.to_host, A.facts()
    indptr, indices = host(A.indptr), host(A.indices)
    if not facts.zero_diagonal and facts.unmatched == A.nnz - facts.n:   # no entry but the diagonal has a mirror image
        elimination = substitution(indptr, indices)
        if elimination:
            return elimination, None
    moduli = abs(host(A.data))
    if not weak_pivots(indptr, indices, moduli)[0].any():
        return eliminate(A, entries, flops, visits), None
    kept = np.flatnonzero(~negligible(indptr, indices, moduli))
    if kept.size < A.nnz:
        try:
            found, match = _eliminate_weak(_part(A, kept), entries, flops, visits)
            return found, match and match._replace(entries=kept)
        except FactorisationError:               # the matrix may be regular with all of its entries
            pass
    return _eliminate_weak(A, entries, flops, visits)


def _part(A, kept):
    """Return the CSRMatrix that has the entries of A at the increasing positions ``kept``."""
    host, put = A.space.to_host, A.space.from_host
    indptr = host(A.indptr)
    ends = np.searchsorted(kept, indptr).astype(indptr.dtype)
    return CSRMatrix(A.space, put(ends), put(host(A.indices)[kept]), put(host(A.data)[kept]), A.shape)


def _eliminate_weak(A, entries, flops, visits):
    """Return what `eliminate_with_pivots` does, for an A with weak pivots all of whose entries count."""
    host, facts = A.space.to_host, A.facts()
    indptr, indices, moduli = host(A.indptr), host(A.indices), abs(host(A.data))
    weak, zeros = weak_pivots(indptr, indices, moduli)
    if zeros and facts.unmatched <= MAX_UNMATCHED * A.nnz:
        elimination = eliminate(A, entries, flops, visits, weak)
        if not elimination.cost.complete:
            return elimination, None
        lacking, sets = unready(A, elimination, weak)
        if lacking <= sets:                      # one of each set may be the constant, which nothing helps
            factors = symmetric_scaling(indptr, indices, moduli, weak)
            return elimination, Matching(np.arange(A.shape[0]), factors, factors)
    match = matching(indptr, indices, moduli)
    moved = exchanged(A, indptr, indices, match)
    elimination = substitution(host(moved.indptr), host(moved.indices)) or eliminate(moved, entries, flops, visits)
    return elimination, match


def substitution(indptr, indices) -> Elimination | None:
    """Return the Elimination without fill of a matrix that an order makes lower triangular; None for any other matrix.

    ``indptr``, ``indices``: a square pattern in CSR with a full diagonal. Rows and columns have the same order."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    n, nnz = indptr.size - 1, indices.size
    if nnz > n * (n + 1) // 2:
        return None
    count, place = connected_components(csr_array((np.ones(nnz, np.int8), indices, indptr), shape=(n, n)),
                                        connection="strong")
    if count < n or (place[indices] > np.repeat(place, np.diff(indptr))).any():
        return None
    return Elimination(FactorisationCost(float(nnz), float(nnz)), np.argsort(place), np.arange(n))


def symmetric_scaling(indptr, indices, moduli, weak):
    """Return powers of two for rows and columns that bring strong diagonal entries, and the largest entry of each weak
    row, near 1. The Schur complement of the weak rows is then near 1, too."""
    n, rows = indptr.size - 1, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    on, size = rows == indices, np.ones(n)
    size[rows[on]] = np.sqrt(moduli[on], dtype=np.float64)
    size[weak] = 1
    size[weak] = largest_of_rows(indptr, moduli / size[indices])[weak]
    return power_of_two(np.where(size > 0, 1 / np.where(size > 0, size, 1), 1))


def exchanged(A, indptr, indices, match):
    """Return the pattern of A with its rows exchanged by a `Matching`, as a CSRMatrix; its values mean nothing.

    ``indptr``, ``indices``: A's, on the host."""
    missing = np.flatnonzero(match.column < 0)
    if missing.size:
        raise FactorisationError(f"A is structurally singular: {missing.size} of {A.shape[0]} rows can have no pivot "
                                 f"of their own, row {missing[0]} among them", singular=True)
    order = np.argsort(match.column)
    lengths = np.diff(indptr)[order]
    ends = np.zeros_like(indptr)
    np.cumsum(lengths, out=ends[1:])
    source = np.repeat(indptr[:-1][order] - ends[:-1], lengths) + np.arange(indices.size)
    put = A.space.from_host
    return CSRMatrix(A.space, put(ends), put(indices[source]), A.data, A.shape)
