"""Runs of rows: consecutive rows of a CSR matrix with equal columns, such as the unknowns of one mesh point.

In a product C = A B the rows of a run of A have equal columns in C. A GPU finds them for the first row of each run, and
reads a row of B once for a whole run. A CPU does the same inside its loops (kernels/product.cpp). Both add the terms of
a sum in the same order as without runs, to the same bits.
"""
from __future__ import annotations

import numpy as np


class Runs:
    """The runs of at most eight rows of a CSR pattern on a GPU.

    Parameters
    ----------
    space : Space
    indptr, indices : int array
        The pattern, with indices of one type.
    join_rows : callable
        The kernel ``join_rows`` of product.cu.

    Attributes
    ----------
    indptr, indices : int array
        The pattern of the first rows of all runs.
    rows : int array
        The first row of each run, and the number of rows.
    """

    def __init__(self, space, indptr, indices, join_rows):
        m, index = indptr.size - 1, indices.dtype
        self._space, self._kernels = space, space.kernels("swell.formats", "runs", np.float64)
        same, first = space.empty(m, np.uint8), space.empty(m, np.uint8)
        lengths, self._numbers, starts = space.empty(m, index), space.empty(m + 1, index), space.empty(m + 1, index)
        self._kernels.same_columns(indptr, indices, same)
        self._kernels.first_rows(same, indptr, first, lengths)
        space.prefix_sums(first, self._numbers)
        space.prefix_sums(lengths, starts)
        count, entries = space.last_entries(self._numbers, starts)  # sync
        self.rows, self.indptr = space.empty(count + 1, index), space.empty(count + 1, index)
        self.indices, sources = space.empty(entries, index), space.empty(count, np.int64)
        self._kernels.place_runs(first, self._numbers, starts, indptr, self.rows, self.indptr, sources)
        join_rows(sources, indices, self.indptr, self.indices)

    def spread(self, counts, starts):
        """Return (the length of each row of C, where the columns of its run begin, the entries of each run's rows).

        ``counts``: the columns of each run in C; ``starts``: where they begin."""
        m = self._numbers.size - 1
        lengths, sources = self._space.empty(m, counts.dtype), self._space.empty(m, np.int64)
        sizes = self._space.empty(counts.size, counts.dtype)
        self._kernels.spread(self._numbers, self.rows, counts, starts, lengths, sources, sizes)
        return lengths, sources, sizes
