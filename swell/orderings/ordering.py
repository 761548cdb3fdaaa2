"""Ordering: a numbering of the rows of a matrix, from its pattern alone; and the graph of a matrix."""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.core.library import native_kernels
from swell.formats.matrix import index_type, rows_of
from swell.transforms.permutation import Permutation


class Ordering(ABC):
    """Base class of the orderings: settings with a method ``order``, from which ``build`` makes the permutation.

    Attributes
    ----------
    problem, cost : str
        The matrices that the ordering is for, and its cost; one line each.
    """

    problem: str
    cost: str

    @abstractmethod
    def order(self, A):
        """The order for a CSRMatrix A, n × n: an int array of its space, shape (n,).

        Row ``order(A)[i]`` of A becomes row i of the reordered matrix."""

    def build(self, A):
        """Return the `Permutation` transform of this ordering for a CSRMatrix."""
        return Permutation(A, self.order(A))


def adjacency(A):
    """The graph of a square CSRMatrix: the pattern of A + Aᵀ without its diagonal.

    Returns
    -------
    indptr, neighbours : int arrays of A's space, shapes (n + 1,) and (2 × edges,)
        The neighbours of vertex i, ascending, are ``neighbours[indptr[i]:indptr[i + 1]]``.
    """
    space, xp, n = A.space, A.space.xp, A.shape[0]
    rows = A.rows()
    off = rows != A.indices
    rows, columns = rows[off], A.indices[off]
    indptr = space.row_pointers(rows, n, index_type(n, n, rows.size))
    if not _symmetric(indptr, rows, columns, n, space):
        rows, columns = rows.astype(np.int64), columns.astype(np.int64)
        both = xp.unique(xp.concatenate((rows * n + columns, columns * n + rows)))
        rows, columns = both // n, both % n
        indptr = space.row_pointers(rows, n, index_type(n, n, rows.size))
    return indptr, columns.astype(indptr.dtype)


def by_rank(indptr, neighbours, ranked, rank, xp):
    """Return new ``neighbours`` of a symmetric graph: each vertex's neighbours by ascending ``rank``.

    rank[v] is a distinct number of each vertex, 0 to n − 1, and ranked[rank[v]] = v. ``xp`` is NumPy or CuPy."""
    if xp is np:                                 # counting is five times faster than sorting
        out = np.empty_like(neighbours)
        native_kernels("swell.orderings", "graph").transpose_graph(indptr, neighbours, ranked, indptr, out)
        return out
    first = rows_of(indptr, neighbours.size, xp).astype(np.int64) * rank.size
    return ranked[xp.sort(first + rank[neighbours]) - first]


def _symmetric(indptr, rows, columns, n, space):
    """True if a pattern without diagonal is symmetric. ``indptr`` and ``columns`` are its CSR form; ``rows`` has the
    row of each entry."""
    if space.name == "cpu":
        if not (np.bincount(columns, minlength=n) == np.diff(indptr)).all():
            return False
        transpose = np.empty(columns.size, indptr.dtype)
        native_kernels("swell.orderings", "graph").transpose_graph(
            indptr, columns.astype(indptr.dtype, copy=False), np.arange(n, dtype=indptr.dtype), indptr, transpose)
        return bool((transpose == columns).all())
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    return not space.find_true(space.xp.sort(columns * n + rows) != rows * n + columns)[1]  # sync
