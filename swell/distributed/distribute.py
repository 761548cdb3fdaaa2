"""Bringing a matrix to its ranks: from one that has it, from files of which each reads its own rows, or moved to the
parts of a graph partition."""
from __future__ import annotations

import numbers
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.core.space import make_space
from swell.distributed.matrix import DistributedMatrix
from swell.distributed.partition import consecutive, owners
from swell.distributed.parts import from_rows
from swell.formats.csr import CSRMatrix

PARTITIONS = ("rows", "graph")


def scatter(communicator, A=None, *, device="cpu", partition="rows", block=1, overlap=True) -> DistributedMatrix:
    """Give every rank its rows of a matrix; a call of all ranks together.

    Parameters
    ----------
    communicator : Communicator
    A : SciPy sparse matrix, square
        On rank 0; whatever the others give is not looked at.
    device : str
        Where the parts shall live: "cpu", or "cuda", a GPU for each rank.
    partition : {"rows", "graph"}
        Consecutive rows, equation (12); or parts of the matrix' graph with few edges between them (pymetis), whose
        reordering the user need not see: ``A.rows`` says which rows a rank has.
    block : int
        Rows that stay together, of consecutive ones.
    overlap : bool
        As in ``DistributedMatrix``.

    Raises
    ------
    InputError
        On every rank, if rank 0 has no such matrix, there are more ranks than rows or than GPUs, or the ranks disagree.
    """
    parts = [None] * communicator.size
    _check_partition(communicator, partition, block)
    with communicator.agreed():
        if communicator.rank == 0:
            if not sp.issparse(A) or A.ndim != 2 or A.shape[0] != A.shape[1]:
                raise InputError(f"rank 0 gave {type(A).__name__} of shape {getattr(A, 'shape', None)}: expected a "
                                 "square SciPy sparse matrix, as scipy.sparse.csr_array(A) makes")
            A = sp.csr_array(A)
            starts = consecutive(A.shape[0], communicator.size, block)
            parts = [A[first:stop] for first, stop in zip(starts, starts[1:])]
    return _built(communicator, communicator.alltoall(parts)[0], device, partition, overlap)


def read(communicator, path, *, device="cpu", partition="rows", block=1, overlap=True) -> DistributedMatrix:
    """Read a matrix, every rank its own rows and no more than a piece of the file beyond them; a call of all ranks
    together.

    Parameters
    ----------
    communicator : Communicator
    path : str or path-like
        Matrix Market, of which each rank turns a part of the text into numbers; a PETSc binary file or a SciPy
        ``.npz`` in CSR, of which each rank reads its rows. Every rank must be able to read it.
    device, partition, block, overlap
        As in ``scatter``.

    Raises
    ------
    InputError
        On every rank, if one of them cannot read the file, or they disagree.
    """
    from swell.io import rows as reader
    _check_partition(communicator, partition, block)
    with communicator.agreed():
        source = reader.open_rows(path)
        n, columns = source.shape
        if n != columns:
            raise InputError(f"{path} holds a matrix of shape {source.shape}: expected a square one")
        starts = consecutive(n, communicator.size, block)
    communicator.same((Path(path).name, source.shape, source.nnz), "the file")
    with communicator.agreed():
        entries = source.share(communicator.rank, communicator.size, starts)
    found = sum(communicator.allgather(source.found))
    if found != source.nnz:
        raise InputError(f"{path} holds {found} entries and announces {source.nnz}: it is truncated, or its header is "
                         "wrong; fetch or write it again")
    return _built(communicator, _sorted_out(communicator, entries, starts, n), device, partition, overlap)


def _check_partition(communicator, partition, block):
    with communicator.agreed():
        if partition not in PARTITIONS:
            raise InputError(f"partition={partition!r}: expected 'rows' or 'graph'")
        if not isinstance(block, numbers.Integral) or block < 1:
            raise InputError(f"block={block!r}: expected a number of rows that stay together, 1 or more")
        if partition == "graph" and block != 1:
            raise InputError("a graph partition keeps no blocks together: use partition='rows' with block")
    communicator.same((partition, block), "partition and block")


def _sorted_out(communicator, entries, starts, n):
    """The rows of this rank as CSR, of entries (a COO matrix of the whole shape) that lie anywhere on the ranks."""
    owner = owners(starts, entries.row)
    parts = []
    for rank in range(communicator.size):
        mine = owner == rank
        parts.append((entries.row[mine], entries.col[mine], entries.data[mine]))
    row, column, value = (np.concatenate(arrays) for arrays in zip(*communicator.alltoall(parts)))
    first, stop = starts[communicator.rank], starts[communicator.rank + 1]
    return sp.csr_array((value, (row - first, column)), shape=(stop - first, n))


def _built(communicator, rows, device, partition, overlap):
    if partition == "rows" or communicator.size == 1:
        return from_rows(communicator, rows, device=device, overlap=overlap)
    rows, starts, order = _repartitioned(communicator, rows)
    return from_rows(communicator, rows, device=device, starts=starts, order=order, overlap=overlap)


def _repartitioned(communicator, rows):
    """(rows of this rank, first rows of all, their numbers before) after a partition of the graph.

    Rank 0 partitions the pattern of the whole matrix, 4 bytes an entry; values go straight to their ranks.
    """
    rank, size, n = communicator.rank, communicator.size, rows.shape[1]
    pattern = sp.csr_array((np.ones(rows.nnz, np.int8), rows.indices, rows.indptr), shape=rows.shape)
    patterns = communicator.alltoall([pattern if other == 0 else None for other in range(size)])
    part = None
    with communicator.agreed():
        if rank == 0:
            from swell.orderings.partition import of_matrix
            whole = sp.vstack(patterns, format="csr")
            part = of_matrix(CSRMatrix(make_space("cpu"), whole.indptr, whole.indices, whole.data, whole.shape), size)
            if np.bincount(part, minlength=size).min() == 0:
                raise InputError(f"the graph partition left one of {size} ranks without rows: start fewer ranks, or "
                                 "use partition='rows'")
    part = communicator.alltoall([part] * size)[0]
    order = np.argsort(part, kind="stable")                      # old number of each new row
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=size))]).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(communicator.allgather(rows.shape[0]))])
    row = np.repeat(np.arange(before[rank], before[rank + 1]), np.diff(rows.indptr))
    moved = sp.coo_array((rows.data, (number[row], number[rows.indices])), shape=(n, n))
    return _sorted_out(communicator, moved, starts, n), starts, order[starts[rank]:starts[rank + 1]]
