"""The left null vector v of a sparse matrix, vᴴ A = 0, from a right one, A z = 0.

A differential operator on a stretched grid has A 1 = 0, but its left null vector holds the volumes of the cells. It is
found on the host, in two ways:

1. Volumes make such a matrix symmetric: vᵢ aᵢⱼ zⱼ = vⱼ aⱼᵢ zᵢ. From one unknown, v follows along a tree of A's graph.
   Time: a search of the graph, and O(n log n) for the products along the tree.
2. Otherwise, as with convection, one equation of Aᵀ v = 0 follows from the others: it is left out, v is set to 1 there,
   and a sparse LU gives the rest. Up to `MAX_UNKNOWNS` unknowns, since the factors fill.

v is zero on unknowns from which the graph of A leads away without return, as where convection is not balanced.
"""
import numpy as np

MAX_UNKNOWNS = 20_000   # unknowns up to which A may be factored: in three dimensions SuperLU takes seconds for these


def left_null_vector(A, z):
    """Return v with vᴴ A = 0 and ‖v‖₂ = 1, zero where z is zero; None if none is found.

    Parameters
    ----------
    A : SciPy CSR matrix or array
    z : array, shape (n,)
        A z = 0; z may be zero on parts of A that the others are not coupled with.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags_array([1.0, 0.5, 0.25]) @ sp.csr_array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> v = left_null_vector(A, np.ones(3))
    >>> (v / v[0]).round(12).tolist()
    [1.0, 2.0, 4.0]
    """
    import scipy.sparse as sp
    allowed = np.sqrt(np.finfo(A.dtype).eps)
    part = np.flatnonzero(abs(z) > allowed * abs(z).max())
    kind = np.result_type(A.dtype, z.dtype, np.float64)
    A = sp.csr_array(A, dtype=kind)
    C = A if part.size == A.shape[0] else A[part][:, part]
    C = sp.csr_array(C @ sp.diags_array(z[part].astype(kind)))   # its rows sum to zero
    closed = _closed(C)
    if closed is None:
        return None
    part, C = part[closed], C[closed][:, closed]
    with np.errstate(all="ignore"):                              # what overflows is refused below
        for find in (_along_a_tree, _by_factors):
            w = find(C)
            if w is None or not np.isfinite(w).all() or not w.any():
                continue
            w /= abs(w).max()
            if abs(C.T @ w).max() <= allowed * (abs(C).T @ abs(w)).max():
                v = np.zeros(A.shape[0], kind)               # Aᵀ v = 0 outside C too: no entry leads out of C
                v[part] = w.conj() / np.linalg.norm(w)
                return v
    return None


def _closed(C):
    """Return the unknowns of the one strongly connected part of C's graph that no entry leaves; None if there are more.
    """
    from scipy.sparse.csgraph import connected_components
    entries = (C != 0).tocoo()
    count, part = connected_components(entries, connection="strong")
    here, there = part[entries.row], part[entries.col]
    closed = np.setdiff1d(np.arange(count), here[here != there])
    return np.flatnonzero(part == closed[0]) if closed.size == 1 else None


def _along_a_tree(C):
    """Return w with wᵢ cᵢⱼ = wⱼ cⱼᵢ along a tree of C's graph, which is connected; not finite if a cⱼᵢ is missing."""
    from scipy.sparse.csgraph import breadth_first_order
    n = C.shape[0]
    order, parent = breadth_first_order(C != 0, 0, directed=False)
    child, parent[0] = order[1:], 0
    ratio, top = np.ones(n, C.dtype), parent[child]
    ratio[child] = np.asarray(C[top, child]).reshape(-1) / np.asarray(C[child, top]).reshape(-1)
    while parent.any():                                          # each round doubles the steps towards the root, 0
        ratio *= ratio[parent]
        parent = parent[parent]
    return ratio


def _by_factors(C):
    """Return w with wᵀ C = 0 by a sparse LU of C without one row and column; None if C is too large or singular."""
    from scipy.sparse.linalg import splu
    n = C.shape[0]
    if not 1 < n <= MAX_UNKNOWNS:
        return None
    k = int(np.argmax(abs(C.diagonal())))
    rest = np.delete(np.arange(n), k)
    try:
        factors = splu(C[rest][:, rest].T.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1)
    except RuntimeError:                                         # SuperLU met a zero pivot
        return None
    w = np.ones(n, C.dtype)
    w[rest] = factors.solve(-C[[k]].toarray().reshape(-1)[rest])
    return w
