"""Matrix entries and rows on their way between ranks, through the host, in setups."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.distributed.partition import owners


def gathered(communicator, entries, starts):
    """This rank's rows as CSR, from entries that lie on any rank; a call of all ranks together.

    Parameters
    ----------
    entries : (values, (rows, columns))
        This rank's entries, in rows of any rank; entries in one place are summed. Zeros are kept: they say what is
        connected.
    starts : int array
        The first row of each rank, and n.
    """
    value, (row, column) = entries
    first, stop = starts[communicator.rank:communicator.rank + 2].astype(row.dtype)
    mine = (row >= first) & (row < stop)
    sent = [of[~mine] for of in (row, column, value)]
    owner, parts = owners(starts, sent[0]), []
    for k in range(communicator.size):
        parts.append([of[owner == k] for of in sent])
    others = zip(*communicator.alltoall(parts), strict=True)
    row, column, value = (np.concatenate([own if mine.all() else own[mine], *of])
                          for own, of in zip((row, column, value), others, strict=True))
    return sp.csr_array((value, (row - first, column)), shape=(int(stop - first), int(starts[-1])))


def fetched(space, values, rows) -> list:
    """``values[row]`` of other ranks' rows, by owner; a call of all ranks together.

    Parameters
    ----------
    space : DistributedSpace
    values : array of the host, or SciPy CSR
        One for each row of this rank.
    rows : int array
        The rows that this rank asks for, ascending.
    """
    communicator = space.communicator
    counts = np.bincount(owners(space.starts, rows), minlength=communicator.size)
    asked = communicator.alltoall(np.split(rows, np.cumsum(counts)[:-1]))
    return communicator.alltoall([values[of - space.first] for of in asked])


def compressed(rest):
    """(the rows that have entries, their CSR)."""
    counts = np.diff(rest.indptr)
    rows = np.flatnonzero(counts)
    indptr = np.concatenate([[0], np.cumsum(counts[rows])])
    return rows.astype(np.int32), sp.csr_array((rest.data, rest.indices, indptr), shape=(rows.size, rest.shape[1]))
