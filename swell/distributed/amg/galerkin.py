"""The Galerkin product R A P of this rank's coarse rows, in chunks: a large A P is never stored whole.

A chunk of coarse rows needs the rows of A P at its columns of R. These rows are computed, used and dropped; rows that
two chunks need are computed twice. A small A P is one chunk, and is kept: new values then need
numeric products alone. Each sum takes its terms in one order, so the bits of the result do not depend on the number of
chunks.
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
        if self.chunks == 1:
            self._AP = Product(A, P)
            self._RAP = Product(R, self._AP.C)
        self.C = self._RAP.C if self.chunks == 1 else self._stacked()

    def update(self):
        """Recompute C, in place, for new values of R, A and P."""
        if self.chunks == 1:
            self._AP.update(self._A, self._P)
            self._RAP.update(self._R, self._AP.C)
        else:
            self.C.data[...] = self._stacked().data
            self.C.discard_adjoint()

    def _stacked(self):
        """Return C, computed by chunks."""
        space, n = self._R.space, self._R.shape[0]
        bounds = [n * k // self.chunks for k in range(self.chunks + 1)]
        ends = [int(k) for k in space.to_host(self._R.indptr[bounds])]  # sync
        parts = [self._rows(*rows, *entries) for *rows, entries in zip(bounds, bounds[1:], zip(ends, ends[1:]))]
        lengths, columns, values = ([*arrays] for arrays in zip(*parts))
        parts.clear()                            # frees the joined parts before the next arrays are allocated
        shape = n, self._P.shape[1]
        indptr = space.empty(n + 1, index_type(*shape, sum(part.size for part in values)))
        space.prefix_sums(space.xp.concatenate(lengths), indptr)
        indices = space.xp.concatenate(columns)
        columns.clear()
        return CSRMatrix(space, indptr, indices, space.xp.concatenate(values), shape)

    def _rows(self, first, stop, begin, end):
        """Return (row lengths, columns, values) of rows first … stop − 1 of C; R has entries begin … end − 1 there."""
        R, A, space = self._R, self._A, self._R.space
        marked, index = space.xp.zeros(A.shape[0], np.uint8), A.indices.dtype
        marked[R.indices[begin:end]] = 1
        rows, = selected(space, marked, space.xp.arange(A.shape[0], dtype=index))        # of A P that are needed
        starts, places = space.empty(rows.size + 1, index), space.empty(A.shape[0] + 1, index)
        space.prefix_sums(A.row_lengths()[rows], starts)
        space.prefix_sums(marked, places)
        count, = space.last_entries(starts)  # sync
        indices, data = space.empty(count, index), space.empty(count, A.dtype)
        space.kernels("swell.distributed", "window", A.dtype).copy_rows(rows, A.indptr, A.indices, A.data, starts,
                                                                        indices, data)
        AP = Product(CSRMatrix(space, starts, indices, data, (rows.size, A.shape[1])), self._P).C
        part = CSRMatrix(space, R.indptr[first:stop + 1] - begin, places[R.indices[begin:end]], R.data[begin:end],
                         (stop - first, rows.size))
        C = Product(part, AP).C
        return C.row_lengths(), C.indices, C.data

    @property
    def AP(self):
        """A P if it is kept, a CSRMatrix; else None."""
        return self._AP.C if self.chunks == 1 else None

    @property
    def nbytes(self):
        return self.C.nbytes + (self._AP.C.nbytes if self.chunks == 1 else 0)
