"""Elimination of a subdomain's interior in layers: a block tridiagonal Cholesky factorisation, dense in its blocks.

The interior is cut into layers by the distance in its graph from one face of the subdomain (or from one dof). So a
layer is coupled only to its two neighbours. Thin layers are joined. They are eliminated one after the other,

    D = L Lᵀ,   E = L⁻¹ Cᵀ,   D ← A_next − Eᵀ E

where D is the layer's matrix and C couples the next layer to it. The layers start at the face that gives the least
work: for a box its smallest face, with as many layers as the box is long.

Cost: 7/3 Σ s³ for layers of s dofs, at the speed of dense products; storage: 2 Σ s². For a cube of m³ dofs this is
7/3 m⁷ and 2 m⁵; nested dissection takes about m⁶ and m⁴ log m. It is more work, but in few large blocks, on any device.
It pays if many subdomains have the same interior, which is then factored once.
"""
from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from swell.core.errors import FactorisationError
from swell.dense.products import subtract_product

THIN = 200              # a layer of fewer dofs is joined with the next, so that products are worth their launch
INDEFINITE = "BDDC: the interior of a subdomain is not positive definite, and so A is not"


class Elimination:
    """The factors of one interior.

    Parameters
    ----------
    A : CSRMatrix
        A_II, its rows in the order of the layers.
    ends : int host array, shape (layers + 1,)
        The first row of each layer, and the number of rows.

    Attributes
    ----------
    L, E : lists of device arrays, shapes (s, s) and (s, next s)
        The factors of each layer, in double precision; the last layer has no E.

    Raises
    ------
    FactorisationError
        If A_II is not positive definite.
    """

    def __init__(self, A, ends):
        self.space, self.A, self.ends, self.L, self.E = A.space, A, ends, [], []
        blocks = Blocks(A, ends)
        D = blocks.dense(0, ends[0], ends[1]) if len(self) else None
        for k in range(len(self)):
            self.L.append(cholesky(self.space, D))
            if k + 1 < len(self):
                E = solve_lower(self.space, self.L[k], blocks.dense(k + 1, *ends[k:k + 2]).T)
                D = blocks.dense(k + 1, *ends[k + 1:k + 3])
                subtract_product(self.space, D[None], E.T[None], E[None])
                self.E.append(E)

    def __len__(self):
        return len(self.ends) - 1


class Blocks:
    """Access to the dense blocks of a matrix whose rows are in layers."""

    def __init__(self, A, ends):
        self.A, self.ends, self._rows = A, ends, A.rows()
        self._at = A.space.to_host(A.indptr[A.space.from_host(ends)]).tolist()  # sync

    def dense(self, k, first, last):
        """Return a new dense device array: the rows of layer k of the matrix, in the columns ``first`` to ``last`` − 1.
        """
        A, some = self.A, slice(*self._at[k:k + 2])
        block = A.space.xp.zeros((int(self.ends[k + 1] - self.ends[k]), int(last - first)))
        columns = A.indices[some]
        there = (columns >= first) & (columns < last)
        block[self._rows[some][there] - self.ends[k], columns[there] - first] = A.data[some][there]
        return block


def cholesky(space, D):
    """Return L with D = L Lᵀ, a new array, column-major for BLAS. D is a dense array of ``space``.

    Raises
    ------
    FactorisationError
        If D is not positive definite.
    """
    if space.name == "cpu":
        watched = nullcontext()
    else:
        from cupyx import errstate
        watched = errstate(linalg="raise")       # else CuPy returns a wrong L without an error
    try:
        with watched:
            return space.xp.asfortranarray(space.xp.linalg.cholesky(D))
    except np.linalg.LinAlgError:
        raise FactorisationError(INDEFINITE) from None


def solve_lower(space, L, B):
    """Return L⁻¹ B for a dense lower triangular L; B may be overwritten. L and B are arrays of ``space``."""
    if not B.size:
        return B
    if space.name == "cpu":
        from scipy.linalg import solve_triangular
    else:
        from cupyx.scipy.linalg import solve_triangular
    return solve_triangular(L, B, lower=True, overwrite_b=True, check_finite=False)


def layers(A, sides):
    """Cut the rows of A into layers, each coupled only to the two beside it, with the least work for `Elimination`.

    Returns (order, ends), int arrays: the rows of A sorted by layer; layer k is order[ends[k]:ends[k + 1]].

    Parameters
    ----------
    A : scipy.sparse.csr_array
        With a symmetric pattern.
    sides : iterable of int arrays
        Rows that may be the first layer.
    """
    best = None
    for side in ([], *sides):
        block = _distances(A, side)
        sizes, joined, size = np.bincount(block), np.empty(block.max() + 1, np.int64), 0
        for k, more in enumerate(sizes.tolist()):
            joined[k] = joined[k - 1] + (size >= THIN) if k else 0
            size = size + more if k and joined[k] == joined[k - 1] else more
        sizes = np.bincount(joined[block])
        work = int((sizes ** 3).sum())
        if best is None or work < best[0]:
            best = work, np.argsort(joined[block], kind="stable"), np.concatenate(([0], np.cumsum(sizes)))
    return best[1:]


def _distances(A, side):
    """Return each row's distance in the graph of A to the nearest row of ``side``, an int array. In connected
    components without rows of ``side``: the distance to their first row."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import breadth_first_order, connected_components
    n = A.shape[0]
    count, piece = connected_components(A, directed=False)
    first = np.unique(piece, return_index=True)[1]
    starts = np.concatenate((np.asarray(side, np.int64), first[np.setdiff1d(np.arange(count), piece[side])]))
    # An additional row, n, leads to all starts.
    links = sp.csr_array((np.ones(A.nnz + starts.size, np.int8), np.concatenate((A.indices, starts)),
                          np.concatenate((A.indptr, [A.nnz + starts.size]))), shape=(n + 1, n + 1))
    order, before = breadth_first_order(links, n)
    place = np.empty(n + 1, np.int64)
    place[order] = np.arange(n + 1)
    reached_from = place[before[order[1:]]]      # ascends: a level is reached from the preceding level
    distance, begin, end, level = np.empty(n + 1, np.int64), 1, 1, 0
    while begin <= n:
        end = 1 + int(np.searchsorted(reached_from, end, side="left"))
        distance[order[begin:end]] = level
        begin, level = end, level + 1
    return distance[:n]
