"""Windows: the numbers of a rank's own rows and of its ghosts, rows that other ranks own, in ascending order.

The columns of a rank's matrices are numbered by their places in a window. Places ascend as global numbers do, so every
kernel that takes entries in the order of columns adds in the same order as on one device. The setup of multigrid
therefore gives the same bits on any number of ranks.
"""
from __future__ import annotations

import math

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type


class Window:
    """A rank's own range of numbers, and ghosts around it.

    Parameters
    ----------
    space : DistributedSpace
        Its ``first`` and ``stop`` are the own range.
    ghosts : int64 array of the space
        Numbers that other ranks own, ascending.

    Attributes
    ----------
    below : int
        The number of ghosts below the own range; the place of the first own number.
    rows : int
        The number of own numbers.
    cuts : int array of the host, shape (ranks + 1,)
        Where each rank's ghosts begin, and the number of ghosts.
    """

    def __init__(self, space, ghosts):
        self.space, self.ghosts, self.rows = space, ghosts, space.ranks.stop - space.ranks.first
        bounds = space.from_host(space.ranks.starts)
        self.cuts = space.to_host(space.xp.searchsorted(ghosts, bounds))  # sync
        self.below = int(self.cuts[space.ranks.communicator.rank])

    @property
    def size(self) -> int:
        return self.rows + self.ghosts.size

    @property
    def own(self) -> slice:
        """The places of the own numbers."""
        return slice(self.below, self.below + self.rows)

    def places(self, numbers, index):
        """Return the place of each of the given global numbers, an array of type ``index``."""
        out, ranks = self.space.empty(numbers.size, index), self.space.ranks
        _kernels(self.space).places(numbers, ranks.first, ranks.stop, self.below, self.ghosts, out)
        return out

    def numbers(self, places):
        """Return the global number at each of the given places, an int64 array."""
        out, ranks = self.space.empty(places.size, np.int64), self.space.ranks
        _kernels(self.space).global_numbers(places, ranks.first, ranks.stop, self.below, self.ghosts, out)
        return out

    def around(self, local, ghosts):
        """Return an array of the window: the own rows' values with the ghosts' around them."""
        made = self.space.empty((self.size, *local.shape[1:]), local.dtype)
        made[self.own], made[:self.below], made[self.own.stop:] = local, ghosts[:self.below], ghosts[self.below:]
        return made

    def of_ghosts(self, values):
        """Return the ghosts' part of an array of the window."""
        return self.space.xp.concatenate([values[:self.below], values[self.own.stop:]])

    def pointers(self, indptr):
        """Return row pointers for the rows of the window; ``indptr``: for the own rows. Ghost rows are empty."""
        xp, above = self.space.xp, self.ghosts.size - self.below
        return xp.concatenate([xp.full(self.below, 0, indptr.dtype), indptr, xp.repeat(indptr[-1:], above)])

    def with_ghosts(self, numbers):
        """Return a Window with the same own range, and with the ``numbers`` outside it as further ghosts."""
        space, kernels = self.space, _kernels(self.space)
        marked = space.empty(numbers.size, np.uint8)
        kernels.mark_range(numbers, space.ranks.first, space.ranks.stop, False, marked)
        outside, = selected(space, marked, numbers)
        if not outside.size:
            return self
        every = space.xp.sort(space.xp.concatenate([self.ghosts, outside]))
        marked = space.empty(every.size, np.uint8)
        kernels.mark_first(every, marked)
        return Window(space, *selected(space, marked, every))


def selected(space, marked, *arrays):
    """Return the marked elements of each array, in a list of new arrays; ``marked``: uint8."""
    starts = space.empty(marked.size + 1, index_type(0, 0, marked.size))
    space.prefix_sums(marked, starts)
    count, = space.last_entries(starts)  # sync
    selection = [space.empty(count, values.dtype) for values in arrays]
    for values, out in zip(arrays, selection):
        _kernels(space).select(marked, starts, values, out)
    return selection


class Border:
    """Exchange of values and of matrix rows between a rank and the owners of its ghosts, in setups.

    Parameters
    ----------
    window : Window
        All ranks make their Border together.
    """

    def __init__(self, window):
        self.window, self.space, communicator = window, window.space, window.space.ranks.communicator
        asked = communicator.alltoall_arrays(self.space.local, cut(window.ghosts, window.cuts))
        self._cuts = np.concatenate([[0], np.cumsum([part.size for part in asked])])
        self._index = self.space.xp.concatenate(asked) - self.space.ranks.first  # own rows that others need

    def _exchanged(self, packed, cuts):
        received = self.space.ranks.communicator.alltoall_arrays(self.space.local, cut(packed, cuts))
        return self.space.xp.concatenate(received)

    def values(self, x):
        """Return the ghosts' values; x: this rank's values, an array of the space of shape (rows,) or (rows, k)."""
        shape = x.shape[1:]
        return self._exchanged(x[self._index].reshape(-1), self._cuts * math.prod(shape)).reshape(-1, *shape)

    def sums(self, values):
        """Return x, an array of this rank's rows: each is the sum of other ranks' ``values`` of it, integers of their
        ghosts. The sums are formed on the host."""
        space, communicator = self.space, self.space.ranks.communicator
        received = communicator.alltoall_arrays(space.local, cut(values, self.window.cuts))
        received, index = (space.to_host(array) for array in (space.xp.concatenate(received), self._index))
        sums = np.zeros(self.window.rows, values.dtype)
        np.add.at(sums, index, received)
        return space.from_host(sums)

    def returned(self, M, places, first):
        """Send the rows ``places`` of a CSRMatrix M, one for each ghost, to the ghosts' owners. Return the rows that
        this rank gets, in the order of the ranks that send them, a `Rows`. ``first``: the number of column 0."""
        lengths, columns, data, cuts = self._picked(M, places, self.window.cuts)
        return self._rows_exchanged((lengths, self.window.cuts), (columns.astype(np.int64) + first, data, cuts),
                                    np.diff(self._cuts))

    def rows(self, M, columns):
        """Return the ghosts' rows of a matrix, a `Rows`. ``M``: CSRMatrix of this rank's rows, its columns numbered by
        the Window ``columns``."""
        lengths, places, data, cuts = self._picked(M, self._index, self._cuts)
        return self._rows_exchanged((lengths, self._cuts), (columns.numbers(places), data, cuts),
                                    np.diff(self.window.cuts))

    def columns(self, M, columns):
        """Return the columns of the ghosts' rows, an int64 array of global numbers. Arguments as for `rows`."""
        _, places, _, cuts = self._picked(M, self._index, self._cuts)
        return self._exchanged(columns.numbers(places), cuts)

    def entries(self, M):
        """Return the values of the ghosts' rows of a CSRMatrix M of this rank's rows."""
        _, _, data, cuts = self._picked(M, self._index, self._cuts)
        return self._exchanged(data, cuts)

    def _picked(self, M, places, cuts):
        """Return the rows ``places`` of a CSRMatrix: (lengths, columns, values, where the entries for each rank begin);
        ``cuts``: where the rows for each rank begin."""
        space, places = self.space, places.astype(M.indices.dtype)
        lengths = (M.indptr[1:][places] - M.indptr[:-1][places]).astype(np.int32)
        starts = space.empty(places.size + 1, M.indices.dtype)
        space.prefix_sums(lengths, starts)
        ends = space.to_host(starts[space.from_host(cuts)])  # sync
        columns, data = space.empty(int(ends[-1]), M.indices.dtype), space.empty(int(ends[-1]), M.dtype)
        space.kernels("swell.distributed", "window", M.dtype).copy_rows(places, M.indptr, M.indices, M.data, starts,
                                                                        columns, data)
        return lengths, columns, data, ends

    def _rows_exchanged(self, of_rows, of_entries, counts):
        """Exchange rows, all three arrays of a rank in one message; return the rows that arrive, a `Rows`.

        ``of_rows``: (lengths, where each rank's rows begin); ``of_entries``: (columns, values, where each rank's
        entries begin); ``counts``: the numbers of rows that arrive from each rank."""
        (lengths, cuts), (columns, data, ends), xp = of_rows, of_entries, self.space.xp
        parts = zip(cut(columns, ends), cut(data, ends), cut(lengths, cuts))     # the widest first: all lie aligned
        packed = [xp.concatenate([array.view(np.uint8) for array in part]) for part in parts]
        received = self.space.ranks.communicator.alltoall_arrays(self.space.local, packed)
        lengths, columns, values, entry = [], [], [], 8 + data.dtype.itemsize
        for part, rows in zip(received, counts.tolist()):
            n = (part.size - 4 * rows) // entry
            columns.append(part[:8 * n].view(np.int64))
            values.append(part[8 * n:entry * n].view(data.dtype))
            lengths.append(part[entry * n:].view(np.int32))
        return Rows(*map(xp.concatenate, (lengths, columns, values)))


def cut(array, cuts):
    """Return the parts of an array between the places ``cuts``, in a list of views."""
    return [array[begin:end] for begin, end in zip(cuts.tolist(), cuts[1:].tolist())]


class Rows:
    """Matrix rows of other ranks, in CSR.

    Attributes
    ----------
    lengths : int32 array
        The number of entries of each row.
    columns : int64 array
        Global columns.
    data : array
    """

    def __init__(self, lengths, columns, data):
        self.lengths, self.columns, self.data = lengths, columns, data

    def within(self, space):
        """Return these rows with only the entries in columns that this rank owns; ``space``: of the columns."""
        marked = space.empty(self.columns.size, np.uint8)
        _kernels(space).mark_range(self.columns, space.ranks.first, space.ranks.stop, True, marked)
        starts, ends = space.empty(marked.size + 1, np.int64), space.empty(self.lengths.size + 1, np.int64)
        space.prefix_sums(marked, starts)
        space.prefix_sums(self.lengths, ends)
        kept = starts[ends]
        return Rows((kept[1:] - kept[:-1]).astype(np.int32), *selected(space, marked, self.columns, self.data))


class Stacked:
    """This rank's rows of a matrix and rows of other ranks around them, as one CSRMatrix, in the order of a window.

    Parameters
    ----------
    block : CSRMatrix
        This rank's rows; columns numbered by the Window ``columns``.
    columns : Window
    others : Rows
        The rows of the ghosts of the Window ``present``.
    present, rows : Window
        ``rows`` are the new matrix's rows; ghosts that are not in ``present`` have empty rows.
    target : Window
        The new matrix's columns.

    Attributes
    ----------
    matrix : CSRMatrix
    own : slice
        The entries of this rank's rows in the matrix.
    """

    def __init__(self, block, columns, others, present, rows, target):
        space, local = rows.space, block.space
        lengths = space.xp.zeros(rows.size, np.int32)
        lengths[rows.own] = block.row_lengths()
        lengths[rows.places(present.ghosts, np.int64)] = others.lengths
        count = block.nnz + others.data.size
        index = index_type(rows.size, target.size, count)
        indptr, indices = space.empty(rows.size + 1, index), space.empty(count, index)
        space.prefix_sums(lengths, indptr)
        begin = int(space.to_host(indptr[rows.below:rows.below + 1])[0])  # sync
        self.own, place = slice(begin, begin + block.nnz), target.places(others.columns, index)
        indices[:begin], indices[self.own.stop:] = place[:begin], place[begin:]
        space.kernels("swell.distributed", "window", block.dtype).renumber(
            block.indices.astype(index, copy=False), columns.below, columns.own.stop, target.below - columns.below,
            target.places(columns.ghosts, index), indices[self.own])
        self.matrix = CSRMatrix(local, indptr, indices, space.empty(count, block.dtype), (rows.size, target.size))
        self.fill(block.data, others.data)

    def fill(self, local, others):
        """Write the values: ``local``, of this rank's rows, and ``others``, of the other rows in their order."""
        data, begin = self.matrix.data, self.own.start
        data[:begin], data[self.own], data[self.own.stop:] = others[:begin], local, others[begin:]
        self.matrix.discard_adjoint()

    @property
    def nbytes(self):
        return self.matrix.nbytes


def own_rows(matrix, rows, extent):
    """Return this rank's rows of a CSRMatrix whose rows are a Window ``rows``; values and columns are views.

    ``extent``: a slice, the entries of these rows in the matrix."""
    indptr = matrix.indptr[rows.below:rows.below + rows.rows + 1] - extent.start
    return CSRMatrix(matrix.space, indptr, matrix.indices[extent], matrix.data[extent], (rows.rows, matrix.shape[1]))


def _kernels(space):
    return space.kernels("swell.distributed", "window", np.float64)
