"""Ordering: a numbering of the rows of a matrix, found from its pattern alone, and the graph that it is found on."""
from __future__ import annotations

from abc import ABC, abstractmethod

from swell.formats.matrix import index_type
from swell.transforms.permutation import Permutation


class Ordering(ABC):
    """What every ordering has: settings with an ``order``, from which ``build`` makes the transform.

    Attributes
    ----------
    problem, cost : str
        What it is for, and what it costs, in a line each.
    """

    problem: str
    cost: str

    @abstractmethod
    def order(self, A):
        """Row i of the reordered matrix is row ``order(A)[i]`` of the CSRMatrix A, n × n: an int array of its space,
        shape (n,)."""

    def build(self, A):
        """The permutation for a CSRMatrix."""
        return Permutation(A, self.order(A))


def adjacency(A):
    """The graph of a square CSRMatrix: the pattern of A + Aᵀ without its diagonal.

    Returns
    -------
    indptr, neighbours : int arrays of A's space, shapes (n + 1,) and (edges, both ways,)
        The neighbours of vertex i, ascending, are ``neighbours[indptr[i]:indptr[i + 1]]``.
    """
    xp, n = A.space.xp, A.shape[0]
    rows = A.rows()
    off = rows != A.indices
    rows, columns = rows[off].astype("int64"), A.indices[off].astype("int64")
    there, back = rows * n + columns, xp.sort(columns * n + rows)
    if not bool((there == back).all()):  # sync
        both = xp.unique(xp.concatenate((there, back)))
        rows, columns = both // n, both % n
    index = index_type(n, n, rows.size)
    indptr = xp.zeros(n + 1, index)
    xp.cumsum(xp.bincount(rows, minlength=n), out=indptr[1:])
    return indptr, columns.astype(index)
