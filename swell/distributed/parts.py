"""Making a DistributedMatrix of what every rank brings: its rows, or their two parts as PETSc keeps them."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.distributed.devices import on_device
from swell.distributed.halo import Halo
from swell.distributed.kernels import split as kernels
from swell.distributed.matrix import DistributedMatrix, check_finite
from swell.distributed.space import DistributedSpace
from swell.formats.csr import CSRMatrix
from swell.inputs import checked_dtype


def from_rows(communicator, rows, *, device="cpu", starts=None, order=None, overlap=True) -> DistributedMatrix:
    """The matrix of which every rank brings its own rows; a call of all ranks together.

    Parameters
    ----------
    communicator : Communicator
    rows : SciPy sparse, shape (rows of this rank, n)
        Consecutive rows, with the columns of the whole matrix. The ranks have them in the order of their numbers.
    device : str
        Where this rank's part shall live: "cpu", or "cuda", a GPU for each rank.
    starts, order : optional
        Known from a partition.
    overlap : bool
        As in ``DistributedMatrix``.

    Raises
    ------
    InputError
        On every rank, if the ranks' rows do not make a square matrix, a rank has none, entries are not finite, or there
        are fewer GPUs than ranks.
    """
    with communicator.agreed():
        rows = _canonical(rows)
    shapes = communicator.allgather(rows.shape)
    with communicator.agreed():
        _check_shapes(shapes)
    if starts is None:
        starts = _starts(count for count, _ in shapes)
    parts = _split(rows, *starts[communicator.rank:communicator.rank + 2])
    return from_parts(communicator, *parts, device=device, starts=starts, order=order, overlap=overlap)


def from_parts(communicator, own, rest, ghosts, *, device="cpu", starts=None, order=None,
               overlap=True) -> DistributedMatrix:
    """The same where every rank's rows are split already, as PETSc keeps them.

    Parameters
    ----------
    own : SciPy CSR, shape (k, k)
        The diagonal block of this rank's k rows, its indices sorted and summed. Arrays of the host are kept, not
        copied, for device="cpu"; for device="cuda" it may be CuPy's, on the rank's GPU.
    rest : SciPy CSR, shape (k, m)
        The other entries of these rows; column j is ``ghosts[j]`` of the whole matrix.
    ghosts : int array, shape (m,)
        Columns of other ranks, ascending.
    communicator, device, starts, order, overlap
        As in ``from_rows``.

    Raises
    ------
    InputError
        On every rank, if a rank has no row, its parts do not fit, entries are not finite, or there are fewer GPUs than
        ranks.
    """
    local, communicator = on_device(communicator, device)
    counts = communicator.allgather(own.shape[0])
    starts = _starts(counts) if starts is None else starts
    with communicator.agreed(), local.active():
        _check_counts(counts)
        _check_parts(own, rest, ghosts, starts[communicator.rank:communicator.rank + 2], starts[-1])
        check_finite(own.data, rest.data)
    dtype = np.result_type(*communicator.allgather(own.dtype.str))
    space = DistributedSpace(local, communicator, starts)
    nnz = sum(communicator.allgather(int(own.nnz + rest.nnz)))
    with local.active():
        boundary, rest = compressed(rest.astype(dtype, copy=False))
        own, rest = (CSRMatrix.from_scipy(part, local) for part in (own.astype(dtype, copy=False), rest))
        ghosts = ghosts.astype(np.int64, copy=False)
        n = int(starts[-1])
        return DistributedMatrix(space, own, rest, space.from_host(boundary), Halo(space, ghosts, dtype), (n, n), nnz,
                                 order=order, overlap=overlap)


def _starts(counts):
    """The first row of each rank, and n."""
    return np.concatenate([[0], np.cumsum([*counts])]).astype(np.int64)


def _canonical(rows):
    """CSR with sorted, summed indices, of one of the four types."""
    if getattr(rows, "ndim", 0) != 2:
        raise InputError(f"{type(rows).__name__}: expected this rank's rows as a SciPy sparse matrix with the columns "
                         "of the whole one")
    rows = sp.csr_array(rows)
    rows = rows.astype(checked_dtype(rows.dtype, "A"), copy=False)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


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
    """(diagonal block, rest, columns that it needs) of the rows of one rank."""
    size, inside = rows.shape[0], kernels.count_inside(rows.indices, first, stop)
    outside, index = rows.nnz - inside, np.int32 if max(size, rows.nnz) < 2**31 else np.int64
    own_indptr, own_columns, own_data = np.zeros(size + 1, index), np.empty(inside, index), np.empty(inside, rows.dtype)
    indptr, columns, data = np.zeros(size + 1, index), np.empty(outside, np.int64), np.empty(outside, rows.dtype)
    kernels.split(rows.indptr, rows.indices, rows.data, first, stop, own_indptr, own_columns, own_data, indptr, columns,
                  data)
    ghosts, columns = np.unique(columns, return_inverse=True)
    return (sp.csr_array((own_data, own_columns, own_indptr), shape=(size, size)),
            sp.csr_array((data, columns, indptr), shape=(size, ghosts.size)), ghosts)


def compressed(rest):
    """(rows that have entries, their CSR)."""
    counts = np.diff(rest.indptr)
    rows = np.flatnonzero(counts)
    indptr = np.concatenate([[0], np.cumsum(counts[rows])])
    return rows.astype(np.int32), sp.csr_array((rest.data, rest.indices, indptr), shape=(rows.size, rest.shape[1]))
