"""The fronts of a factorisation: their dense matrices, and what each subtracts from the next (multifrontal method: Duff
and Reid 1983).

A front has its own rows, which it eliminates, and the rows below: later ones in which its columns of the factor have
entries. Its matrix has the entries of A in its own rows and columns, less the updates of its children. A front's parent
is the front that has the first of its rows below. On a CPU fronts form a `Tree`, from nested dissection. On a GPU they
are layers, a `Chain`: all of a layer's update is one block of the next one, so that nothing is scattered.
"""
from __future__ import annotations

from itertools import pairwise

import numpy as np

from swell.core.library import native_kernels
from swell.preconditioners.bddc.dissection import structure


def fronts_of(A, ends):
    """Return the fronts of a CSRMatrix whose rows are in their order; front k begins at row ends[k]."""
    return Tree(A, ends) if A.space.name == "cpu" else Chain(A, ends)


def subtract(space, F, rows, columns, update, lower=False):
    """Compute F[rows, columns] −= update, in place.

    ``rows`` and ``columns``: slices, or on a CPU int arrays, ascending; ``lower``: the lower triangle is enough."""
    if space.name == "cpu":
        native_kernels("swell.preconditioners.bddc", "fronts").subtract(F, rows, columns, update, lower)
    else:
        F[rows, columns] -= update


class Tree:
    """Fronts on a CPU.

    Attributes
    ----------
    ends : int array, shape (fronts + 1,)
        The first row of each front, and the number of rows.
    below : list of int arrays
        The rows below each front, ascending.
    children : list of lists of int
    into : list of int arrays
        The places of the rows below each front among its parent's own rows and rows below.
    """

    def __init__(self, A, ends):
        self.ends = ends
        self.below, parents = structure(A, ends)
        self._rows = [np.concatenate((np.arange(a, b), below)) for (a, b), below in
                      zip(pairwise(ends), self.below, strict=True)]
        self.children = [[] for _ in self.below]
        for k, parent in enumerate(parents):
            if parent >= 0:
                self.children[parent].append(k)
        self.into = [self._rows[p].searchsorted(below) for p, below in zip(parents, self.below, strict=True)]

    @property
    def entries(self):
        """Number of entries of the dense blocks of the factors."""
        return sum(int(size) * (int(size) + below.size) for size, below in
                   zip(np.diff(self.ends), self.below, strict=True))

    def matrices(self, A, definite):
        """Yield the matrix of each front, a new array, without updates. ``definite``: A is Hermitian, and the columns
        right of the front's own are left out."""
        fill = native_kernels("swell.preconditioners.bddc", "fronts").fill
        mirrored = A if definite else A.transpose()
        data = A.data.conj() if definite else mirrored.data
        for k, rows in enumerate(self._rows):
            F, (a, b) = np.zeros((rows.size, rows.size), A.dtype), self.ends[k:k + 2]
            fill(mirrored.indptr, mirrored.indices, data, a, b, rows, F, True)
            if not definite:
                fill(A.indptr, A.indices, A.data, a, b, rows, F, False)
            yield F

    def couplings(self, A, met):
        """Yield (W, columns, into) for each front, without updates. W, a new array, has its own rows and rows below,
        and ``columns``: the interface dofs that are coupled to it or to a front before it in the tree. ``into``: the
        places of these among its parent's.

        ``A`` is a CSRMatrix with the interface dofs last; ``met`` is not needed."""
        fill, n = native_kernels("swell.preconditioners.bddc", "fronts").fill, int(self.ends[-1])
        below, parents = structure(A, self.ends)
        columns = [rows[rows.searchsorted(n):] for rows in below]
        for k, (parent, some) in enumerate(zip(parents, columns, strict=True)):
            W, (a, b) = np.zeros((self._rows[k].size, some.size), A.dtype), self.ends[k:k + 2]
            fill(A.indptr, A.indices, A.data, a, b, some, W, False)
            yield W, some - n, columns[parent].searchsorted(some)


class Chain:
    """Layers on a GPU; attributes as of a `Tree`, with slices in place of int arrays."""

    def __init__(self, A, ends):
        self.ends = ends
        after = [*ends[2:].tolist(), int(ends[-1])]
        self.below = [slice(int(b), c) for b, c in zip(ends[1:], after, strict=True)]
        self.children = [[k - 1] if k else [] for k in range(len(self.below))]
        self.into = [slice(0, below.stop - below.start) for below in self.below]

    @property
    def entries(self):
        """As of a `Tree`, without the blocks beside the diagonal ones, which are not kept."""
        return int((np.diff(self.ends) ** 2).sum())

    def matrices(self, A, definite):
        """As `Tree.matrices`."""
        blocks = Blocks(A, self.ends)
        for k, below in enumerate(self.below):
            a, b, size = int(self.ends[k]), int(self.ends[k + 1]), below.stop - int(self.ends[k])
            F = A.space.xp.zeros((size, size), A.dtype)
            F[:b - a] = blocks.dense(k, a, below.stop)
            if b < below.stop:
                F[b - a:, :b - a] = F[:b - a, b - a:].conj().T if definite else blocks.dense(k + 1, a, b)
            yield F

    def couplings(self, A, met):
        """As `Tree.couplings`; interface dofs are ordered by ``met``, the first layer that is coupled to each."""
        blocks, n = Blocks(A, np.append(self.ends, A.shape[0])), int(self.ends[-1])
        active = np.searchsorted(met, np.arange(len(self.below)), side="right").tolist()
        for k, (below, count) in enumerate(zip(self.below, active, strict=True)):
            W = A.space.xp.zeros((below.stop - int(self.ends[k]), count), A.dtype)
            W[:int(self.ends[k + 1] - self.ends[k])] = blocks.dense(k, n, n + count)
            yield W, slice(0, count), slice(0, count)


class Blocks:
    """Access to the dense blocks of a matrix whose rows are in layers."""

    def __init__(self, A, ends):
        self.A, self.ends, self._rows = A, ends, A.rows()
        self._at = A.space.to_host(A.indptr[A.space.from_host(ends)]).tolist()  # sync

    def dense(self, k, first, last):
        """Return a new dense device array: the rows of layer k of the matrix, in the columns ``first`` to ``last`` − 1.
        """
        A, some = self.A, slice(*self._at[k:k + 2])
        block = A.space.xp.zeros((int(self.ends[k + 1] - self.ends[k]), int(last - first)), A.dtype)
        columns = A.indices[some]
        there = (columns >= first) & (columns < last)
        block[self._rows[some][there] - self.ends[k], columns[there] - first] = A.data[some][there]
        return block
