"""Distribution of a matrix to ranks: from rank 0, or from a file of which each rank reads its own rows; by consecutive
rows or by a graph partition."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from swell.core.arrays import stored_size
from swell.core.errors import InputError
from swell.core.devices import make_space
from swell.distributed.communicator import require_ranks
from swell.distributed.entries import gathered
from swell.distributed.matrix import DistributedMatrix
from swell.distributed.partition import consecutive
from swell.distributed.parts import canonical, from_rows
from swell.formats.blocks import BlockPattern, checked_block_size, detect, divisors
from swell.formats.csr import CSRMatrix

PARTITIONS = ("rows", "graph")


def scatter(communicator, A=None, *, device="cpu", partition="rows", block=None, overlap=True) -> DistributedMatrix:
    """Give every rank its rows of a matrix that rank 0 has. All ranks call it together.

    Parameters
    ----------
    communicator : Communicator
    A : SciPy sparse matrix, square
        On rank 0; ignored on the other ranks.
    device : str
        Where the parts are stored: "cpu", or "cuda" for one GPU a rank.
    partition : {"rows", "graph"}
        Consecutive rows, equation (12) in ``partition.py``; or parts of the graph of A's blocks with few edges between
        them (pymetis). The returned matrix's ``rows`` are this rank's rows in the user's numbering.
    block : int, optional
        Number of consecutive rows that belong together, for example the unknowns of a mesh point; they stay on one
        rank. Default: the block size of SciPy's BSR, or the size of dense blocks that swell detects.
    overlap : bool
        As in ``DistributedMatrix``.

    Raises
    ------
    InputError
        On every rank, if rank 0 passes no square sparse matrix, the block size does not divide it, there are more ranks
        than blocks or than GPUs, or the ranks pass different arguments.
    """
    _check_partition(communicator, partition, block)
    parts = [None] * communicator.size
    with communicator.agreed():
        if communicator.rank == 0:
            if not sp.issparse(A) or A.ndim != 2 or A.shape[0] != A.shape[1]:
                raise InputError(f"rank 0 gave {type(A).__name__} of shape {getattr(A, 'shape', None)}: expected a "
                                 "square SciPy sparse matrix, as scipy.sparse.csr_array(A) makes")
            block = checked_block_size(stored_size(A) if block is None else block, A.shape[0])
            A = canonical(A)
            block = block or _detected(A, communicator.size)
            starts = consecutive(A.shape[0], communicator.size, block)
            parts = [(A[first:stop], block) for first, stop in zip(starts, starts[1:])]
    rows, block = communicator.alltoall(parts)[0]
    return _built(communicator, rows, device, partition, block, overlap)


def read(communicator, path, *, device="cpu", partition="rows", block=None, overlap=True) -> DistributedMatrix:
    """Read a matrix from a file; each rank reads only a part of it. All ranks call it together.

    Parameters
    ----------
    communicator : Communicator
    path : str or path-like
        A Matrix Market file, of which each rank parses a part of the text; or a PETSc binary file or a SciPy ``.npz``
        in CSR, of which each rank reads its rows. Every rank must be able to read it.
    device, partition, overlap
        As in ``scatter``.
    block : int, optional
        As in ``scatter``. Default: the size that the file names (`swell.io.block_size`), or the detected one.

    Raises
    ------
    InputError
        On every rank, if any rank cannot read the file, or the ranks read different files or pass different arguments.
    """
    from swell.io import block_size
    from swell.io import rows as reader
    _check_partition(communicator, partition, block)
    with communicator.agreed():
        source = reader.open_rows(path)
        n, columns = source.shape
        if n != columns:
            raise InputError(f"{path} holds a matrix of shape {source.shape}: expected a square one")
        block = checked_block_size(block_size(path) if block is None else block, n)
        starts = consecutive(n, communicator.size, block or 1)
    communicator.require_equal((Path(path).name, source.shape, source.nnz), "the file")
    with communicator.agreed():
        entries = source.share(communicator.rank, communicator.size, starts)
    stored = sum(communicator.allgather(source.found))
    if stored != source.nnz:
        raise InputError(f"{path} holds {stored} entries and announces {source.nnz}: it is truncated, or its header is "
                         "wrong; fetch or write it again")
    with communicator.agreed():                  # rows that each rank has read need no memory for messages
        rows = canonical(entries) if source.by_rows else None
    if rows is None:
        rows = gathered(communicator, (entries.data, entries.coords), starts)
    if not block:
        rows, block = _in_blocks(communicator, rows, starts)
    return _built(communicator, rows, device, partition, block, overlap)


def _check_partition(communicator, partition, block):
    require_ranks(communicator)
    with communicator.agreed():
        if partition not in PARTITIONS:
            raise InputError(f"partition={partition!r}: expected 'rows' or 'graph'")
        checked_block_size(block, 0)
    communicator.require_equal((partition, block), "partition and block")


def _detected(rows, ranks) -> int:
    """Detect the size of dense blocks in some rows of a square matrix (SciPy's CSR) and return it; 1 if there are none.
    Only sizes are tried with at least one block for each of ``ranks``."""
    n = rows.shape[1]
    return detect(_on_cpu(rows), sizes=[size for size in divisors(n) if size * ranks <= n])


def _on_cpu(rows):
    return CSRMatrix(make_space("cpu"), rows.indptr, rows.indices, rows.data, rows.shape)


def _in_blocks(communicator, rows, starts):
    """Detect a block size that all ranks use, and exchange rows so that each block is on one rank. Return (this rank's
    rows, block size). ``rows``: this rank's rows as CSR; ``starts``: the first row of each rank, and n."""
    rank, size, n = communicator.rank, communicator.size, rows.shape[1]
    with communicator.agreed():
        rows = canonical(rows)
    # Rank 0 detects alone first, since the rows of other ranks may begin inside a block.
    block = communicator.allgather(_detected(rows, size) if rank == 0 else None)[0]
    if block > 1:
        aligned = consecutive(n, size, block)
        if (aligned != starts).any():
            rows = canonical(gathered(communicator, _triplets(rows, starts[rank]), aligned))
        block = math.gcd(*communicator.allgather(_detected(rows, size)))
    return rows, block


def _triplets(rows, first):
    """Return (values, (row numbers, column numbers)) of ``rows``, a CSR matrix of consecutive rows of the whole matrix,
    the first of them row ``first``."""
    return rows.data, (np.repeat(np.arange(first, first + rows.shape[0]), np.diff(rows.indptr)), rows.indices)


def _built(communicator, rows, device, partition, block, overlap):
    starts = order = None
    if partition == "graph" and communicator.size > 1:
        rows, starts, order = _repartitioned(communicator, canonical(rows), block)
    return from_rows(communicator, rows, device=device, starts=starts, order=order, block=block, overlap=overlap)


def _repartitioned(communicator, rows, block):
    """Move the rows of a matrix to the ranks by a partition of its graph of blocks. Return (this rank's new rows, first
    row of each rank, old row numbers of this rank's new rows). ``rows``: this rank's rows as CSR; ``block``: the block
    size.

    Rank 0 partitions the block pattern of the whole matrix, 4 bytes a block; values go straight to their ranks.
    """
    rank, size, n = communicator.rank, communicator.size, rows.shape[1]
    graph = BlockPattern(_on_cpu(rows), block)
    pattern = sp.csr_array((np.ones(graph.indices.size, np.int8), graph.indices, graph.indptr),
                           shape=(graph.rows, graph.columns))
    patterns = communicator.alltoall([pattern if other == 0 else None for other in range(size)])
    part = None
    with communicator.agreed():
        if rank == 0:
            from swell.orderings.partition import of_matrix
            part = of_matrix(_on_cpu(sp.vstack(patterns, format="csr")), size)
            if np.bincount(part, minlength=size).min() == 0:
                raise InputError(f"the graph partition left one of {size} ranks without rows: start fewer ranks, or "
                                 "use partition='rows'")
    part = np.repeat(communicator.alltoall([part] * size)[0], block)
    order = np.argsort(part, kind="stable")                      # old number of each new row
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=size))]).astype(np.int64)
    first = sum(communicator.allgather(rows.shape[0])[:rank])
    values, (row, column) = _triplets(rows, first)
    moved = gathered(communicator, (values, (number[row], number[column])), starts)
    return moved, starts, order[starts[rank]:starts[rank + 1]]
