"""Maximum transversal: an order of the rows that brings large entries onto the diagonal. Duff and Koster 2001.

Among all orders without a zero on the diagonal, it maximises the diagonal's product of |aᵢⱼ| / maxₖ |aₖⱼ|. MC64
computes this matching too. The method is shortest augmenting paths, on the host (kernels/transversal.py). It is not an
ordering in the sense of ``ordering=``, since only rows move: A[order] x = b[order] has the solution x of A x = b.

Time: one pass over A if the largest entries of all columns lie in different rows. Each column without a row of its own
takes one search by Dijkstra's algorithm, at most O(nnz log n). (SciPy's ``maximum_bipartite_matching``, and functions
built on it, may take time exponential in n, its issue 26147; shuffled rows of a system in blocks caused this.)
"""
from __future__ import annotations

from swell.core.errors import InputError


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
    import numpy as np
    import scipy.sparse as sp

    from swell.orderings.kernels.transversal import assign
    moduli = abs(sp.csc_array(A)).astype(np.float64)
    if moduli.shape[0] != moduli.shape[1]:
        raise InputError(f"transversal: A has shape {moduli.shape}, expected a square matrix")
    moduli.sum_duplicates()
    moduli.eliminate_zeros()
    largest = moduli.max(axis=0).toarray().reshape(-1)
    costs = np.log(np.repeat(largest, np.diff(moduli.indptr))) - np.log(moduli.data)
    order = assign(moduli.indptr.astype(np.int64), moduli.indices.astype(np.int64), costs)
    if (order < 0).any():
        missing = np.setdiff1d(np.arange(order.size), order)
        raise InputError(f"transversal: A is structurally singular, {missing.size} of {order.size} rows can have no "
                         f"diagonal entry of their own (row {missing[0]} among them), and no order of rows helps: take "
                         "such rows out with their unknowns, or give them an entry on the diagonal")
    return order
