"""This rank's rows of a distributed matrix in one CSRMatrix, its columns numbered in a window."""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.window import Border, Window, selected
from swell.distributed.space import DistributedSpace
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.amg.smoother import radius


class RankRows:
    """This rank's rows of a matrix.

    Attributes
    ----------
    csr : CSRMatrix, shape (own rows, window.size), or None
        None after `forget`.
    space : DistributedSpace
        Of the rows.
    window : Window
        Of the columns.
    shape, nnz : of the whole matrix.
    """

    def __init__(self, csr, window, space):
        self.csr, self.space, self.window, self._border, self._radius = csr, space, window, None, None
        self.shape = int(space.ranks.starts[-1]), int(window.space.ranks.starts[-1])
        self.nnz = sum(space.ranks.allgather(csr.nnz))

    @classmethod
    def of(cls, A, dtype):
        """Return the rows of a DistributedMatrix, with values of type ``dtype``."""
        window = Window(A.space, A.space.from_host(A.halo.ghosts))
        local, count = A.space.local, A.own.nnz + A.rest.nnz
        index = index_type(window.rows, window.size, count)
        indptr = local.empty(window.rows + 1, index)
        local.prefix_sums(A.row_lengths(), indptr)
        made = CSRMatrix(local, indptr, local.empty(count, index), local.empty(count, dtype),
                         (window.rows, window.size))
        block, rest = (part if part.dtype == dtype else part.astype(dtype) for part in (A.own, A.rest))
        at = local.xp.full(window.rows, -1, np.int32)
        at[A.boundary] = local.xp.arange(A.boundary.size, dtype=np.int32)
        local.kernels("swell.distributed", "window", dtype).join(
            block.indptr.astype(index, copy=False), block.indices.astype(index, copy=False), block.data, at,
            rest.indptr, rest.indices, rest.data, window.below, made.indptr, made.indices, made.data)
        return cls(made, window, A.space)

    def forget(self):
        """Drop the entries: another matrix holds them."""
        self.csr = None

    def renewed(self):
        """Drop what followed from values that were overwritten."""
        self.csr.discard_adjoint()
        self._radius = None

    def diagonal(self):
        """Return the diagonal entries of this rank's rows of a square matrix."""
        csr, window = self.csr, self.window
        square = CSRMatrix(csr.space, window.pointers(csr.indptr), csr.indices, csr.data, (window.size, window.size))
        return square.diagonal()[window.own].copy()

    def apply(self, x, out):
        """Write this rank's rows of ``out = A x``. For setups: the ghost values are exchanged by a `Border`."""
        if self._border is None:
            self._border = Border(self.window)
        self.csr.apply(self.window.around(x, self._border.values(x)), out)

    # No cached_property: Python 3.11 computes it under one lock, and threads that are ranks wait for one another here.
    @property
    def radius(self):
        """The estimate of the largest eigenvalue of D⁻¹A with the diagonal D of A (amg/smoother.py)."""
        if self._radius is None:
            self._radius = radius(self, "point")
        return self._radius

    @property
    def nbytes(self):
        return 0 if self.csr is None else self.csr.nbytes


def parted(csr, window):
    """Split this rank's rows into own columns and used ghost columns.

    Returns
    -------
    local : CSRMatrix, shape (rows, own columns)
    boundary : int32 array of the space
        The rows with entries in ghost columns.
    rest : CSRMatrix, shape (boundary rows, used ghosts)
    ghosts : int64 array of the space
        The used ghosts: those with an entry.
    """
    space, rows, index = csr.space, window.own, csr.indices.dtype
    kernels, n = space.kernels("swell.distributed", "window", csr.dtype), csr.shape[0]
    counts, touched = space.empty(n, index), space.empty(n, np.uint8)
    kernels.outside(csr.indptr, csr.indices, rows.start, rows.stop, counts, touched)
    outs, places = space.empty(n + 1, index), space.empty(n + 1, index)
    space.prefix_sums(counts, outs)
    space.prefix_sums(touched, places)
    outer, edge = space.last_entries(outs, places)  # sync
    local = csr.indptr - outs, space.empty(csr.nnz - outer, index), space.empty(csr.nnz - outer, csr.dtype)
    boundary, indptr = space.empty(edge, np.int32), space.xp.zeros(edge + 1, np.int32)
    rest = indptr, space.empty(outer, np.int32), space.empty(outer, csr.dtype)
    kernels.split(csr.indptr, csr.indices, csr.data, rows.start, rows.stop, outs, places, *local, boundary, *rest)
    marked = space.xp.zeros(window.ghosts.size, np.uint8)
    kernels.mark_ghosts(rest[1], 0, 0, marked)
    places, (ghosts,) = space.empty(marked.size + 1, np.int32), selected(window.space, marked, window.ghosts)
    space.prefix_sums(marked, places)
    rest = CSRMatrix(space, indptr, places[rest[1]], rest[2], (edge, ghosts.size))
    return CSRMatrix(space, *local, (n, window.rows)), boundary, rest, ghosts


def trimmed(csr, window):
    """Return (csr, window) without the ghost columns that have no entry. The new CSRMatrix shares the values."""
    space, index = window.space, csr.indices.dtype
    kernels, local = space.kernels("swell.distributed", "window", csr.dtype), window.own
    marked = space.xp.zeros(window.ghosts.size, np.uint8)
    kernels.mark_ghosts(csr.indices, local.start, local.stop, marked)
    kept, = selected(space, marked, window.ghosts)
    if kept.size == window.ghosts.size:
        return csr, window
    fewer, indices = Window(space, kept), space.empty(csr.nnz, index)
    moved = fewer.places(window.ghosts, index)                   # unused ghosts go to any place
    kernels.renumber(csr.indices, local.start, local.stop, fewer.below - window.below, moved, indices)
    return CSRMatrix(csr.space, csr.indptr, indices, csr.data, (csr.shape[0], fewer.size)), fewer


def coarse_space(space, count):
    """Return the DistributedSpace of the next level's rows; ``count``: this rank's number of them."""
    starts = np.concatenate([[0], np.cumsum(space.ranks.allgather(count))]).astype(np.int64)
    return DistributedSpace(space.local, space.ranks.communicator, starts)


def together(space, values):
    """Return an array of all ranks' values; ``values``: this rank's."""
    communicator = space.ranks.communicator
    return space.xp.concatenate(communicator.alltoall_arrays(space.local, [values] * communicator.size))
