"""Maximum transversal: an order of the rows that brings large entries onto the diagonal. Duff and Koster 2001.

Of all orders that leave no zero on the diagonal, the one whose diagonal has the greatest product of |aᵢⱼ| / maxₖ |aₖⱼ|,
the matching that MC64 computes, by shortest augmenting paths on the host (kernels/transversal.py). It is not an
ordering in the sense of ``ordering=``, since only rows change places: A[order] x = b[order] has the same x.

Time: that of reading A where every column has a row to itself for its largest entry; a search of Dijkstra's for each
column that has not, of nnz log n at the most. (SciPy's ``maximum_bipartite_matching``, and what is built on it, may
take time that is exponential in n, its issue 26147: rows of a system in blocks, shuffled, met that.)
"""
from __future__ import annotations

from swell.core.errors import InputError


def transversal(A):
    """The order of rows that puts the largest product of entries onto the diagonal.

    Parameters
    ----------
    A : SciPy sparse matrix or array, shape (n, n)
        Real or complex; stored zeros count as nothing.

    Returns
    -------
    order : int array, shape (n,)
        Row ``order[i]`` of A becomes row i: solve ``A[order] x = b[order]``, whose solution is that of A x = b.

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
                         f"diagonal entry of their own (row {missing[0]} among them): no order of rows helps")
    return order
