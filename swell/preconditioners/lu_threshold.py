"""ILUT: incomplete LU that keeps entries by their size. Saad 1994; Iterative Methods, section 10.4.

Row i is eliminated in full. Entries below ``drop`` ‖aᵢ‖₂ are dropped, entries of L before they are used. Then each side
of the diagonal keeps its largest entries, at most ``fill`` times half the entries of row i of A. ``drop`` = 0 with a
large ``fill`` is the LU factorisation without pivoting.

With blocks as entries, block rows keep blocks by their norms. These are Frobenius norms after each row of A is divided
by its largest entry. So equations of different scales in one block (flow in a well, and in a cell) count alike. A
product of two blocks takes 2 s³ operations, and one search of a list serves s² entries.

The pattern depends on the values, row by row. So the host factors: a matrix on a GPU is sent there, and the factors
back. Every call factors from the start.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from swell.core.devices import make_space
from swell.core.errors import OutOfMemory
from swell.core.library import native_kernels
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.fill import extended
from swell.preconditioners.incomplete import NONE
from swell.preconditioners.lu_factorisation import MIN_PIVOT

ENTRY_BYTES = 50            # host memory an entry of L and U, with room to grow and to copy


class Threshold(ABC):
    """Base of ILUT of entries and of blocks. A call makes a new ``factor`` from A's values and the largest modulus of
    each row, both on the pattern of ``T``, and the replacement of a tiny pivot, as a fraction of this modulus. It
    returns the first row with a tiny pivot, or None, and the number of tiny pivots.

    Parameters
    ----------
    T : CSRMatrix or BlockFactor
        The pattern of A in elimination order.
    threshold : tuple
        ``drop`` and ``fill``.
    name : str
        The preconditioner, for messages.
    """

    unit: str                                    # what a factor stores, for messages
    block: int
    change = 0.0

    def __init__(self, T, threshold, name):
        self.T, self.space, self.name, self.host = T, T.space, name, make_space("cpu")
        self.bounds = *map(float, threshold), MIN_PIVOT * float(np.finfo(T.dtype).eps)
        self.kernels = native_kernels("swell.preconditioners", "ilut")

    def __call__(self, data, scale, replacement):
        bad = np.array([NONE, 0])
        data, scale = (self.space.to_host(a) for a in (data, scale))                                     # sync
        limit = self.host.memory()[0] // (ENTRY_BYTES * self.block**2)
        self.factor = self.factorise(data, scale, *self.bounds, replacement, bad, limit)
        first, count = (int(v) for v in bad)
        return first if count else None, count

    @abstractmethod
    def factorise(self, data, scale, *rest):
        """Return the factor of A; ``rest`` are further arguments of the kernel, the last is ``limit``."""

    def check_memory(self, entries, limit, row, rows):
        """Raise OutOfMemory if the kernel stopped at ``row``, before the last of ``rows``, since ``entries``, their
        number so far, or of blocks, exceed ``limit``."""
        if limit < entries and row < rows:
            needed = entries * ENTRY_BYTES * self.block**2 * rows / max(row, 1)
            raise OutOfMemory(f"{self.name}: L and U have {entries:.2g} {self.unit} after {row} of {rows} rows, "
                              f"about {needed / 2**30:.2g} GiB in all, and {self.host.memory()[0] / 2**30:.2g} GiB "
                              "are free: choose a larger drop or a smaller fill")

    @property
    def nbytes(self):
        return self.T.nbytes


class EntryThreshold(Threshold):
    """ILUT of single entries."""

    unit, block = "entries", 1

    def __init__(self, T, threshold, name):
        super().__init__(T, threshold, name)
        self.pattern = [self.space.to_host(a) for a in (T.indptr, T.indices)]                            # sync

    def factorise(self, data, scale, *rest):
        n, row, shape = self.T.shape[0], 0, self.T.shape
        ptr, middle, inverse = np.zeros(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, data.dtype)
        columns, values = np.empty(data.size, np.int64), np.empty_like(data)
        while (row := self.kernels.factor(*self.pattern, data, scale, *rest, row, ptr, middle, inverse, columns,
                                          values)) < n:
            self.check_memory(ptr[row], rest[-1], row, n)
            columns, values = extended(columns), extended(values)
        columns, values = columns[:ptr[n]], values[:ptr[n]]
        index = index_type(*shape, values.size)
        arrays = (self.space.from_host(a) for a in (ptr.astype(index), columns.astype(index), values))
        return CSRMatrix(self.space, *arrays, shape)


class BlockThreshold(Threshold):
    """ILUT with dense blocks as entries."""

    unit = "blocks"

    def __init__(self, T, threshold, name):
        super().__init__(T, threshold, name)
        self.block = T.block
        self.pattern = [self.space.to_host(a) for a in (T.lower, T.upper, T.indices)]                    # sync

    def factorise(self, data, scale, *rest):
        T, space, s = self.T, self.space, self.block
        n, row, inverse = T.count, 0, np.empty((T.count, s, s), data.dtype)
        L, U = ([np.zeros(n + 1, np.int64), np.empty(size, np.int64), np.empty((size, s, s), data.dtype)]
                for size in (T.below, T.indices.size - T.below))
        while (row := self.kernels.factor_blocks(*self.pattern, data, T.below, scale, *rest, row, *L, inverse, *U)) < n:
            self.check_memory(L[0][row] + U[0][row], rest[-1], row, n)
            for side in (L, U):
                side[1:] = map(extended, side[1:])
        lower, upper, lower_columns, upper_columns = L[0], U[0], L[1][:L[0][n]], U[1][:U[0][n]]
        first = lower_columns.size + n             # the place of U
        indices = np.concatenate([lower_columns, np.arange(n), upper_columns])
        blocks = np.concatenate([L[2][:lower_columns.size], inverse, U[2][:upper_columns.size]])
        index = index_type(n * s, n * s, blocks.size)
        arrays = (space.from_host(a.astype(index)) for a in (lower, upper + first, indices))
        factor = BlockFactor(space, *arrays, space.from_host(blocks), T.n, lower_columns.size, n)
        factor.scale_columns()
        return factor
