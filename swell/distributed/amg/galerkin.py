"""The Galerkin product R A P of this rank's coarse rows, in chunks: a large A P is never stored whole.

A chunk of coarse rows needs the rows of A P at its columns of R. These rows are computed, used and dropped. Neighbouring
chunks share some of these rows, which are computed twice. A small A P is one chunk, and its patterns are kept: new
values then need numeric products alone. Each sum takes its terms in one order, so the bits of the result do not depend
on the number of chunks.
"""
from __future__ import annotations

import math

import numpy as np

from swell.distributed.amg.window import selected
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.formats.product import Product

SHARE = 1 / 16          # of the device's memory that a chunk of A P may take, by an upper bound of its entries


class Galerkin:
    """C = R A P.

    Parameters
    ----------
    R, A, P : CSRMatrix
        In one local space; R's columns are A's rows, and A's columns are P's rows.

    Attributes
    ----------
    C : CSRMatrix
    chunks : int
    """

    def __init__(self, R, A, P):
        self._R, self._A, self._P = R, A, P
        entry = P.dtype.itemsize + P.indices.itemsize
        bound = entry * A.nnz * max(P.nnz / max(P.shape[0], 1), 1)
        self.chunks = min(math.ceil(bound / (SHARE * A.space.memory()[1])), R.shape[0]) or 1
        self._whole = Chunk(R, A, P) if self.chunks == 1 else None
        self.C = self._stacked() if self._whole is None else self._whole.C

    def update(self):
        """Recompute C, in place, for new values of R, A and P."""
        if self._whole is None:
            self.C.data[...] = self._stacked().data
        else:
            self._whole.update(self._R, self._A, self._P)
        self.C.discard_adjoint()

    def _stacked(self):
        """Return C, computed by chunks."""
        space, (n, _) = self._R.space, self._R.shape
        bounds = [n * k // self.chunks for k in range(self.chunks + 1)]
        ends = [int(k) for k in space.to_host(self._R.indptr[bounds])]  # sync
        parts = [Chunk(self._part(*rows, *entries), self._A, self._P).C
                 for *rows, entries in zip(bounds, bounds[1:], zip(ends, ends[1:]))]
        index = index_type(n, self._P.shape[1], sum(part.nnz for part in parts))
        lengths = space.xp.concatenate([part.row_lengths() for part in parts])
        indptr = space.empty(n + 1, index)
        space.prefix_sums(lengths, indptr)
        indices = space.xp.concatenate([part.indices.astype(index, copy=False) for part in parts])
        return CSRMatrix(space, indptr, indices, space.xp.concatenate([part.data for part in parts]),
                         (n, self._P.shape[1]))

    def _part(self, first, stop, begin, end):
        """Return rows first … stop − 1 of R, which are its entries begin … end − 1."""
        R = self._R
        return CSRMatrix(R.space, R.indptr[first:stop + 1] - begin, R.indices[begin:end], R.data[begin:end],
                         (stop - first, R.shape[1]))

    @property
    def nbytes(self):
        return self.C.nbytes if self._whole is None else self._whole.nbytes


class Chunk:
    """C = R A P for some rows of R: A P has the rows at R's columns alone.

    Parameters
    ----------
    R, A, P : CSRMatrix
    """

    def __init__(self, R, A, P):
        space, index = A.space, A.indices.dtype
        marked = space.xp.zeros(A.shape[0], np.uint8)
        marked[R.indices] = 1
        self._rows, = selected(space, marked, space.xp.arange(A.shape[0], dtype=index))
        lengths, starts = A.row_lengths()[self._rows], space.empty(self._rows.size + 1, index)
        space.prefix_sums(lengths, starts)
        count, = space.last_entries(starts)  # sync
        self._A = CSRMatrix(space, starts, space.empty(count, index), space.empty(count, A.dtype),
                            (self._rows.size, A.shape[1]))
        self._gather(A)
        places = space.empty(A.shape[0] + 1, index)              # of the rows of A P among A's rows
        space.prefix_sums(marked, places)
        self._R = CSRMatrix(space, R.indptr, places[R.indices], R.data, (R.shape[0], self._rows.size))
        self._AP = Product(self._A, P)
        self._RAP = Product(self._R, self._AP.C)

    def _gather(self, A):
        A.space.kernels("swell.distributed", "window", A.dtype).copy_rows(
            self._rows, A.indptr, A.indices, A.data, self._A.indptr, self._A.indices, self._A.data)

    @property
    def C(self):
        return self._RAP.C

    def update(self, R, A, P):
        """Recompute C, in place, for new values of the three matrices."""
        self._gather(A)
        self._AP.update(self._A, P)
        self._RAP.update(self._R.with_values(R.data), self._AP.C)

    @property
    def nbytes(self):
        return sum(M.nbytes for M in (self._A, self._R, self._AP.C, self._RAP.C))
