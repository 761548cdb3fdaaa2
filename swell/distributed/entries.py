"""Exchange of matrix entries and rows between ranks, through the host, in setups."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.distributed.partition import owners


def gathered(communicator, entries, starts):
    """Send matrix entries to the ranks that own their rows; return this rank's rows as CSR. All ranks call it together.

    Parameters
    ----------
    entries : (values, (rows, columns))
        Entries that this rank has, in rows of any rank; duplicates are summed. Explicit zeros are kept, as part of the
        pattern.
    starts : int array, shape (ranks + 1,)
        The first row of each rank, and n.

    Returns
    -------
    scipy.sparse.csr_array, shape (local rows, n)
    """
    value, (row, column) = entries
    first, stop = starts[communicator.rank:communicator.rank + 2].astype(row.dtype)
    local = (row >= first) & (row < stop)
    sent = [part[~local] for part in (row, column, value)]
    owner, parts = owners(starts, sent[0]), []
    for k in range(communicator.size):
        parts.append([part[owner == k] for part in sent])
    others = zip(*communicator.alltoall(parts), strict=True)
    row, column, value = (np.concatenate([values if local.all() else values[local], *received])
                          for values, received in zip((row, column, value), others, strict=True))
    return sp.csr_array((value, (row - first, column)), shape=(int(stop - first), int(starts[-1])))


def fetched(space, values, rows) -> list:
    """Fetch values of rows that other ranks own. All ranks call it together.

    Parameters
    ----------
    space : DistributedSpace
    values : array of the host, or SciPy CSR
        A value, or a matrix row, for each row of this rank.
    rows : int array
        The global rows that this rank asks for, ascending.

    Returns
    -------
    list
        For each rank, its values for the rows in ``rows`` that it owns.
    """
    communicator = space.ranks.communicator
    counts = np.bincount(owners(space.ranks.starts, rows), minlength=communicator.size)
    asked = communicator.alltoall(np.split(rows, np.cumsum(counts)[:-1]))
    return communicator.alltoall([values[wanted - space.ranks.first] for wanted in asked])


def whole_blocks(numbers, block):
    """Return all numbers in the blocks of ``block`` consecutive numbers that ``numbers`` touch, ascending, as int64."""
    touched = np.unique(numbers.astype(np.int64, copy=False) // block)
    return (touched[:, None] * block + np.arange(block)).reshape(-1)


def compressed(rest, ghosts, block):
    """Drop the empty block rows of a matrix, and complete its columns to whole blocks.

    Parameters
    ----------
    rest : SciPy CSR, shape (rows, m)
    ghosts : int array, shape (m,)
        The global number of each column, ascending.
    block : int
        Rows of a block; the blocks of ``rows`` and of global columns begin at multiples of it.

    Returns
    -------
    rows : int32 array
        The kept rows.
    rest : scipy.sparse.csr_array, shape (kept rows, columns)
        The same entries in the same order.
    columns : int64 array
        The global number of each column of the new matrix, ascending.
    """
    counts = np.diff(rest.indptr)
    rows, columns = whole_blocks(np.flatnonzero(counts), block), whole_blocks(ghosts, block)
    places = np.searchsorted(columns, ghosts).astype(rest.indices.dtype)
    indptr = np.concatenate([[0], np.cumsum(counts[rows])])
    rest = sp.csr_array((rest.data, places[rest.indices], indptr), shape=(rows.size, columns.size))
    return rows.astype(np.int32), rest, columns
