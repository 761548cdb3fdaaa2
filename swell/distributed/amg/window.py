"""Windows: the numbers of a rank's own rows and of its ghosts, rows that other ranks own, in ascending order.

The columns of a rank's matrices are numbered by their places in a window. Places ascend as global numbers do, so every
kernel that takes entries in the order of columns adds in the same order as on one device. The setup of multigrid
therefore gives the same bits on any number of ranks.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.partition import owners
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type


class Window:
    """A rank's own range of numbers, and ghosts around it.

    Parameters
    ----------
    space : DistributedSpace
        Its ``first`` and ``stop`` are the own range.
    ghosts : int64 array of the host
        Numbers that other ranks own, ascending.

    Attributes
    ----------
    below : int
        The number of ghosts below the own range; the place of the first own number.
    rows : int
        The number of own numbers.
    """

    def __init__(self, space, ghosts):
        self.space, self.ghosts = space, ghosts
        self.rows, self.below = space.stop - space.first, int(np.searchsorted(ghosts, space.first))

    @property
    def size(self) -> int:
        return self.rows + self.ghosts.size

    @property
    def own(self) -> slice:
        """The places of the own numbers."""
        return slice(self.below, self.below + self.rows)

    def places(self, numbers):
        """Return the place of each of the given global numbers, an int64 array of the host."""
        first, stop = self.space.first, self.space.stop
        at = np.searchsorted(self.ghosts, numbers)
        inside = (numbers >= first) & (numbers < stop)
        return np.where(inside, numbers - first + self.below, np.where(numbers < first, at, at + self.rows))

    def numbers(self, places):
        """Return the global number at each of the given places, an int64 array of the host."""
        places = np.asarray(places, np.int64)
        ghost = np.where(places < self.below, places, places - self.rows)
        inside = (places >= self.below) & (places < self.below + self.rows)
        ghosts = self.ghosts if self.ghosts.size else np.zeros(1, np.int64)
        return np.where(inside, self.space.first + places - self.below, ghosts[np.where(inside, 0, ghost)])

    def around(self, own, ghosts):
        """Return an array of the window: ``own``, of the space, with ``ghosts``, of the host, around it."""
        space, made = self.space, self.space.empty(self.size, own.dtype)
        made[self.own] = own
        if self.ghosts.size:
            others = space.from_host(np.ascontiguousarray(ghosts, own.dtype))
            made[:self.below], made[self.below + self.rows:] = others[:self.below], others[self.below:]
        return made

    def pointers(self, indptr):
        """Return row pointers for the rows of the window from ``indptr``, those of the own rows: ghost rows are empty.
        """
        xp = self.space.xp
        above = self.ghosts.size - self.below
        return xp.concatenate([xp.full(self.below, 0, indptr.dtype), indptr, xp.repeat(indptr[-1:], above)])

    def with_ghosts(self, numbers):
        """Return a Window with the same own range and, as ghosts, those of ``numbers`` that lie outside it."""
        numbers = np.unique(numbers)
        outside = (numbers < self.space.first) | (numbers >= self.space.stop)
        return Window(self.space, np.union1d(self.ghosts, numbers[outside]))


class Border:
    """Exchange of values and of matrix rows between a rank and the owners of its ghosts, in setups, through the host.

    Parameters
    ----------
    space : DistributedSpace
    ghosts : int64 array of the host
        Rows of other ranks, ascending. All ranks make their Border together.
    """

    def __init__(self, space, ghosts):
        self.space, self.ghosts, communicator = space, ghosts, space.communicator
        counts = np.bincount(owners(space.starts, ghosts), minlength=communicator.size)
        asked = communicator.alltoall(np.split(ghosts, np.cumsum(counts)[:-1]))
        self._ends = np.cumsum([part.size for part in asked])
        self._index = space.from_host(np.concatenate(asked) - space.first)       # own rows that others need

    def values(self, x):
        """Return the ghosts' values, an array of the host; x: this rank's values, an array of the space."""
        packed = self.space.to_host(x[self._index])
        return np.concatenate(self.space.communicator.alltoall(np.split(packed, self._ends[:-1])))

    def rows(self, M, columns):
        """Return the ghosts' rows of a matrix, a `Rows`. ``M``: CSRMatrix of this rank's rows, its columns numbered by
        the Window ``columns``."""
        space, kernels = self.space, M.space.kernels("swell.distributed", "window", M.dtype)
        index = self._index.astype(M.indices.dtype)
        lengths = M.indptr[1:][index] - M.indptr[:-1][index]
        starts = space.empty(index.size + 1, M.indices.dtype)
        space.prefix_sums(lengths, starts)
        count, = space.local.last_entries(starts)  # sync
        places, data = space.empty(count, M.indices.dtype), space.empty(count, M.dtype)
        kernels.copy_rows(index, M.indptr, M.indices, M.data, starts, places, data)
        lengths, starts = space.to_host(lengths), space.to_host(starts)
        numbers, cuts = columns.numbers(space.to_host(places)), starts[self._ends[:-1]]
        parts = zip(np.split(lengths, self._ends[:-1]), np.split(numbers, cuts), np.split(space.to_host(data), cuts))
        found = zip(*space.communicator.alltoall([*parts]), strict=True)
        return Rows(*(np.concatenate(part) for part in found))


class Rows:
    """Matrix rows of other ranks on the host, in CSR.

    Attributes
    ----------
    lengths : int array
        The number of entries of each row.
    columns : int64 array
        Global columns.
    data : array
    """

    def __init__(self, lengths, columns, data):
        self.lengths, self.columns, self.data = lengths, columns, data

    def within(self, first, stop):
        """Return these rows with only the entries in columns first … stop − 1."""
        kept = (self.columns >= first) & (self.columns < stop)
        rows = np.repeat(np.arange(self.lengths.size), self.lengths)
        return Rows(np.bincount(rows[kept], minlength=self.lengths.size), self.columns[kept], self.data[kept])


class Stacked:
    """Own rows of a matrix and rows of other ranks around them, as one CSRMatrix, in the order of a window.

    Parameters
    ----------
    own : CSRMatrix
        This rank's rows; columns numbered by the Window ``columns``.
    columns : Window
    others : Rows
        The rows of some ghosts of ``rows``: those with the numbers ``present``.
    present : int64 array of the host
    rows, target : Window
        The new matrix's rows, and its columns.

    Attributes
    ----------
    matrix : CSRMatrix
        Ghost rows that are not present are empty.
    own : slice
        The entries of this rank's rows in the matrix.
    """

    def __init__(self, own, columns, others, present, rows, target):
        space, local = rows.space, own.space
        lengths = np.zeros(rows.ghosts.size, np.int64)
        lengths[np.searchsorted(rows.ghosts, present)] = others.lengths
        self._below = int(lengths[:rows.below].sum())
        count = own.nnz + others.data.size
        index, self.own = index_type(rows.size, target.size, count), slice(self._below, self._below + own.nnz)
        ends = np.cumsum(lengths)
        indptr, indices = space.empty(rows.size + 1, index), space.empty(count, index)
        place = space.from_host(target.places(others.columns).astype(index))
        indptr[:rows.below + 1] = space.from_host(np.r_[0, ends[:rows.below]].astype(index))
        indptr[rows.below:rows.below + rows.rows + 1] = own.indptr + self._below
        indptr[rows.below + rows.rows + 1:] = space.from_host((ends[rows.below:] + own.nnz).astype(index))
        indices[:self._below], indices[self.own.stop:] = place[:self._below], place[self._below:]
        moved = space.from_host(target.places(columns.ghosts).astype(index))
        local.kernels("swell.distributed", "window", own.dtype).renumber(
            own.indices.astype(index, copy=False), columns.below, columns.below + columns.rows, target.below - columns.below, moved,
            indices[self.own])
        self.matrix = CSRMatrix(local, indptr, indices, space.empty(count, own.dtype), (rows.size, target.size))
        self.fill(own.data, others.data)

    def fill(self, own, others):
        """Write the matrix's values: ``own``, of this rank's rows, and ``others``, of the host."""
        data, ghosts = self.matrix.data, self.matrix.space.from_host(others)
        data[:self._below], data[self.own], data[self.own.stop:] = ghosts[:self._below], own, ghosts[self._below:]
        self.matrix.discard_adjoint()

    @property
    def nbytes(self):
        return self.matrix.nbytes


def own_rows(matrix, rows, extent):
    """Return this rank's rows of a CSRMatrix whose rows are a Window ``rows``; values and columns are views.

    ``extent``: a slice, the entries of these rows in the matrix."""
    indptr = matrix.indptr[rows.below:rows.below + rows.rows + 1] - extent.start
    return CSRMatrix(matrix.space, indptr, matrix.indices[extent], matrix.data[extent], (rows.rows, matrix.shape[1]))
