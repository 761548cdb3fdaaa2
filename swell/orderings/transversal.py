"""Maximum transversal: an order of the rows that brings large entries onto the diagonal. Duff and Koster 2001.

Among all orders without a zero on the diagonal, it maximises the diagonal's product of |aᵢⱼ| / maxₖ |aₖⱼ|. MC64
computes this matching too. The method is shortest augmenting paths, on the host (kernels/transversal.cpp). It is not an
ordering in the sense of ``ordering=``, since only rows move: A[order] x = b[order] has the solution x of A x = b.

The potentials of the matching scale rows and columns so that the entries on the diagonal are 1 in modulus, to a factor
of two, and no other is larger, to a factor of four. Then pivots may stay there (pivots.py).

Time: one pass over A if the largest entries of all columns lie in different rows. Each column without a row of its own
takes one search by Dijkstra's algorithm, at most O(nnz log n). (SciPy's ``maximum_bipartite_matching``, and functions
built on it, may take time exponential in n, its issue 26147; shuffled rows of a system in blocks caused this.)
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swell.core.library import native_kernels
from swell.core.errors import InputError
from swell.core.guests import canonical_csr

LARGEST_POWER = 500     # of two, in a scaling factor: a product of two factors is then in double precision's range


class Matching(NamedTuple):
    """An assignment of each row of a matrix in CSR to a column of its own.

    Attributes
    ----------
    column : int64 array, shape (n,)
        The column of each row; −1 for a row without one.
    row_factors, column_factors : arrays of float64, shape (n,)
        Powers of two that bring the matched entries near 1, and all others to at most about 1; if each row has one.
    entries : int array, or None
        Increasing positions of the entries that factors have; None: all.
    """

    column: np.ndarray
    row_factors: np.ndarray
    column_factors: np.ndarray
    entries: np.ndarray | None = None


def matching(indptr, indices, moduli) -> Matching:
    """Return the `Matching` with the largest product of |aᵢⱼ|/maxₖ |aᵢₖ|.

    ``indptr``, ``indices``: a square pattern in CSR, without duplicates. ``moduli``: |aᵢⱼ|; zeros are ignored."""
    n, moduli = indptr.size - 1, moduli.astype(np.float64, copy=False)
    largest = largest_of_rows(indptr, moduli)
    with np.errstate(divide="ignore", invalid="ignore"):         # a row of zeros has no finite cost
        costs = np.repeat(np.log(largest), np.diff(indptr)) - np.log(moduli)
    column, u, v = np.empty(n, np.int64), np.empty(n), np.empty(n)
    native_kernels("swell.orderings", "transversal").assign(
        indptr.astype(np.int64), indices.astype(np.int64), np.where(moduli > 0, costs, np.inf), column, u, v)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return Matching(column, power_of_two(np.exp(v - np.log(largest))), power_of_two(np.exp(u)))


def power_of_two(factors):
    """Return the powers of two nearest to positive factors; 1 for a NaN."""
    with np.errstate(divide="ignore"):
        return np.exp2(np.clip(np.nan_to_num(np.rint(np.log2(factors))), -LARGEST_POWER, LARGEST_POWER))


def largest_of_rows(indptr, moduli):
    """Return the largest of each row of ``moduli``, the values of a matrix in CSR; 0 for an empty row."""
    largest, filled = np.zeros(indptr.size - 1, moduli.dtype), np.diff(indptr) > 0
    if moduli.size:
        largest[filled] = np.maximum.reduceat(moduli, indptr[:-1][filled])
    return largest


def transversal(A):
    """The order of rows that puts the entries with the largest product onto the diagonal.

    Parameters
    ----------
    A : SciPy sparse matrix or array, shape (n, n)
        Real or complex; stored zeros are ignored.

    Returns
    -------
    order : int array, shape (n,)
        Row ``order[i]`` of A becomes row i. ``A[order] x = b[order]`` has the solution of A x = b.

    Raises
    ------
    InputError
        If A is not square, or structurally singular: no order has a diagonal without zeros.

    Examples
    --------
    >>> import scipy.sparse as sp, swell
    >>> swell.transversal(sp.csr_array([[0.0, 2.0], [3.0, 1.0]])).tolist()
    [1, 0]
    """
    moduli = abs(canonical_csr(A)).tocsc()
    if moduli.shape[0] != moduli.shape[1]:
        raise InputError(f"transversal: A has shape {moduli.shape}, expected a square matrix")
    order = matching(moduli.indptr, moduli.indices, moduli.data).column        # of Aᵀ in CSR: the row of each column
    if (order < 0).any():
        missing = np.setdiff1d(np.arange(order.size), order)
        raise InputError(f"transversal: A is structurally singular, {missing.size} of {order.size} rows can have no "
                         f"diagonal entry of their own (row {missing[0]} among them), and no order of rows helps: take "
                         "such rows out with their unknowns, or give them an entry on the diagonal")
    return order
