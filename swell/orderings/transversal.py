"""Maximum transversal: an order of the rows that brings large entries onto the diagonal. Duff and Koster 2001.

Of all orders that leave no zero on the diagonal, the one whose diagonal has the greatest product of |aᵢⱼ| / maxₖ |aₖⱼ|,
the matching that MC64 computes; here by SciPy's algorithm for sparse assignment, on the host. It is not an ordering in
the sense of ``ordering=``, since only rows change places: A[order] x = b[order] has the same x.
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
    from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching
    moduli = sp.csc_array(abs(sp.csc_array(A)))
    if moduli.shape[0] != moduli.shape[1]:
        raise InputError(f"transversal: A has shape {moduli.shape}, expected a square matrix")
    moduli.sum_duplicates()
    moduli.eliminate_zeros()
    matched = maximum_bipartite_matching(sp.csr_array(moduli), perm_type="column")
    if (matched < 0).any():
        missing = np.flatnonzero(matched < 0)
        raise InputError(f"transversal: A is structurally singular, {missing.size} of {matched.size} rows can have no "
                         f"diagonal entry of their own (row {missing[0]} among them): no order of rows helps")
    largest = moduli.max(axis=0).toarray().reshape(-1)
    costs = moduli.copy()
    best = np.repeat(largest, np.diff(moduli.indptr))
    costs.data = np.log(best) - np.log(moduli.data) + 1                        # a cost of zero would be no edge
    rows, columns = min_weight_full_bipartite_matching(sp.csr_array(costs))
    order = np.empty(rows.size, np.int64)
    order[columns] = rows
    return order
