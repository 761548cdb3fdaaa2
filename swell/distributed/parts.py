"""Construction of a DistributedMatrix from each rank's rows, or from their diagonal block and rest as in PETSc."""
from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from swell.core.arrays import check_finite, checked_dtype, stored_size
from swell.core.errors import InputError
from swell.core.guests import canonical_csr
from swell.core.library import native_kernels
from swell.distributed.communicator import require_ranks
from swell.distributed.devices import on_device
from swell.distributed.entries import compressed
from swell.distributed.halo import Halo
from swell.distributed.matrix import DistributedMatrix
from swell.distributed.space import DistributedSpace
from swell.formats.blocks import checked_block_size
from swell.formats.csr import CSRMatrix

kernels = native_kernels("swell.distributed", "split")


def from_rows(communicator, rows, *, device="cpu", starts=None, order=None, block=None,
              overlap=True) -> DistributedMatrix:
    """Return a new matrix made from the rows that each rank passes. All ranks call it together.

    Parameters
    ----------
    communicator : Communicator
    rows : SciPy sparse, shape (rows of this rank, n)
        Consecutive rows with all columns of the matrix. Rank 0 has the first rows, rank 1 the next ones, and so on.
    device : str
        Where this rank's part is stored: "cpu", or "cuda" for one GPU a rank.
    starts : int64 array, shape (ranks + 1,), optional
        The first row of each rank, and n, if the caller knows them.
    order : int64 array, optional
        This rank's rows in the user's numbering, after a partition that reordered them.
    block : int, optional
        Number of rows that belong together, for example the unknowns of a mesh point; equal on every rank. Default: the
        block size of SciPy's BSR, or a size that all ranks detect in their rows.
    overlap : bool
        As in ``DistributedMatrix``.

    Raises
    ------
    InputError
        On every rank, if the ranks' rows do not form a square matrix, a rank has no rows, entries are not finite, a
        rank's rows begin or end inside a block, or there are fewer GPUs than ranks.
    """
    require_ranks(communicator)
    with communicator.agreed():
        block = stored_size(rows) if block is None else block
        rows = canonical(rows)
    shapes = communicator.allgather(rows.shape)
    with communicator.agreed():
        _check_shapes(shapes)
    if starts is None:
        starts = _starts(count for count, _ in shapes)
    parts = _split(rows, *starts[communicator.rank:communicator.rank + 2])
    return from_parts(communicator, *parts, device=device, starts=starts, order=order, block=block, overlap=overlap)


def from_parts(communicator, own, rest, ghosts, *, device="cpu", starts=None, order=None, block=None,
               overlap=True) -> DistributedMatrix:
    """Return a new matrix made from rows that each rank has split into diagonal block and rest, as PETSc stores them.
    All ranks call it together.

    Parameters
    ----------
    own : SciPy CSR, shape (k, k)
        The diagonal block of this rank's k rows, with sorted indices and without duplicates. With device="cpu" its
        arrays are kept, not copied. With device="cuda" it may be a CuPy matrix on the rank's GPU.
    rest : SciPy CSR, shape (k, m)
        The other entries of these rows; its column j is the global column ``ghosts[j]``.
    ghosts : int array, shape (m,)
        Global columns that other ranks own, ascending.
    communicator, device, starts, order, block, overlap
        As in ``from_rows``.

    Raises
    ------
    InputError
        On every rank, if a rank has no rows, its parts do not fit together, entries are not finite, a rank's rows begin
        or end inside a block, or there are fewer GPUs than ranks.
    """
    require_ranks(communicator)
    local, communicator = on_device(communicator, device)
    with communicator.agreed(), local.active():
        counts = communicator.allgather(own.shape[0])
        starts = _starts(counts) if starts is None else starts
        communicator.require_equal(block, "the size of blocks (block, or SciPy's BSR)")
        _check_counts(counts)
        _check_block(checked_block_size(block, int(starts[-1])), starts)
        _check_parts(own, rest, ghosts, starts[communicator.rank:communicator.rank + 2], starts[-1])
        check_finite("A", own.data, rest.data, where=" of this rank's")
    dtype = np.result_type(*communicator.allgather(own.dtype.str))
    space = DistributedSpace(local, communicator, starts)
    nnz = sum(communicator.allgather(int(own.nnz + rest.nnz)))
    with local.active():
        own = CSRMatrix.from_scipy(own.astype(dtype, copy=False), local, block)
        if block is None:
            _agree_on_blocks(communicator, own, starts)
        boundary, rest, ghosts = compressed(rest.astype(dtype, copy=False), ghosts, own.block_size)
        rest = CSRMatrix.from_scipy(rest, local)
        n = int(starts[-1])
        return DistributedMatrix(space, own, rest, space.from_host(boundary), Halo(space, ghosts, dtype), (n, n), nnz,
                                 order=order, overlap=overlap)


def _starts(counts):
    """Return the first row of each rank, and n at the end; ``counts``: the number of rows of each rank."""
    return np.concatenate([[0], np.cumsum([*counts])]).astype(np.int64)


def canonical(rows):
    """Return a SciPy sparse matrix as CSR with sorted indices, no duplicates, and float32, float64, complex64 or
    complex128. The argument is not changed."""
    if getattr(rows, "ndim", 0) != 2:
        raise InputError(f"{type(rows).__name__}: expected this rank's rows as a SciPy sparse matrix with the columns "
                         "of the whole one")
    rows = sp.csr_array(canonical_csr(rows))
    return rows.astype(checked_dtype(rows.dtype, "A"), copy=False)


def _check_shapes(shapes):
    total = sum(count for count, _ in shapes)
    for rank, (count, columns) in enumerate(shapes):
        if columns != total:
            raise InputError(f"rank {rank} brings {count} rows of {columns} columns, and all ranks together {total} "
                             "rows: expected a square matrix, with all its columns on every rank")


def _check_counts(counts):
    for rank, count in enumerate(counts):
        if not count:
            raise InputError(f"rank {rank} has no row of the {sum(counts)}: start fewer ranks, or share the rows "
                             "evenly")


def _check_block(block, starts):
    for rank, first in enumerate(starts):
        if block and first % block:
            raise InputError(f"rank {rank} begins at row {first}, inside a block of {block} rows: share whole blocks, "
                             f"as scatter and read do with block={block}")


def _agree_on_blocks(communicator, block, starts):
    """Set ``block_size`` of every rank's diagonal ``block`` to the greatest common divisor of the sizes that the ranks
    detect; add a note if rows of ranks begin inside larger blocks. ``starts``: the first row of each rank, and n.

    If blocks of size s have hardly any fill, blocks whose size divides s have no more.
    """
    sizes = communicator.allgather(block.block_size)
    block.block_size, most = math.gcd(*sizes), max(sizes)
    cut = starts % most > 0
    uncut = {size % most for size, *ends in zip(sizes, cut, cut[1:]) if not any(ends)}
    if block.block_size < most and uncut == {0} and not cut[-1]:
        block.notes = (f"rows of ranks begin inside blocks of {most}, so that all ranks take blocks of "
                       f"{block.block_size}: share whole blocks, as scatter and read do with block={most}",)


def _check_parts(own, rest, ghosts, ours, n):
    if own.shape[0] != own.shape[1]:
        raise InputError(f"own has shape {own.shape}: expected a square diagonal block, of this rank's rows and their "
                         "columns")
    if rest.shape != (own.shape[0], ghosts.size):
        raise InputError(f"rest has shape {rest.shape}: expected {(own.shape[0], ghosts.size)}, a row for each of own "
                         "and a column of rest for each ghost")
    first, stop = ours
    if ghosts.size and (ghosts[0] < 0 or ghosts[-1] >= n or (np.diff(ghosts) <= 0).any()
                        or ((ghosts >= first) & (ghosts < stop)).any()):
        raise InputError(f"ghosts of the rank with rows {first} to {stop - 1} of {n}: expected ascending columns of "
                         "other ranks")


def _split(rows, first, stop):
    """Split one rank's rows (CSR, rows first … stop − 1 of A). Return (diagonal block, rest, ghosts): both parts as
    CSR, and the global columns of the rest, ascending."""
    size, inside = rows.shape[0], kernels.count_inside(rows.indices, first, stop)
    outside, index = rows.nnz - inside, np.int32 if max(size, rows.nnz) < 2**31 else np.int64
    own_indptr, own_columns, own_data = np.zeros(size + 1, index), np.empty(inside, index), np.empty(inside, rows.dtype)
    indptr, columns, data = np.zeros(size + 1, index), np.empty(outside, np.int64), np.empty(outside, rows.dtype)
    kernels.split(rows.indptr, rows.indices, rows.data, first, stop, own_indptr, own_columns, own_data, indptr, columns,
                  data)
    ghosts, columns = np.unique(columns, return_inverse=True)
    return (sp.csr_array((own_data, own_columns, own_indptr), shape=(size, size)),
            sp.csr_array((data, columns, indptr), shape=(size, ghosts.size)), ghosts)
