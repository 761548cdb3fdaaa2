"""Partitions: consecutive block rows for each rank, as evenly as possible; or mesh cells, by their graph.

Equation (12) of Ma, Hu, Yuan and Liu, Developing a multi-GPU-enabled preconditioned GMRES with inexact triangular
solves for block sparse matrices, 2021: if l ranks divide r block rows, the first r mod l ranks get one more than the
others. (The paper prints r mod l + 1 such ranks.)
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError


def consecutive(n: int, ranks: int, block: int = 1) -> np.ndarray:
    """Divide n rows evenly; return the first row of each rank, and n at the end: int64, shape (ranks + 1,).

    Parameters
    ----------
    n : int
        Rows of the matrix.
    ranks : int
    block : int
        Number of consecutive rows that stay on one rank.

    Raises
    ------
    InputError
        If the block does not divide n, or a rank would be left without a row.
    """
    if n % block:
        raise InputError(f"blocks of {block} rows do not divide the {n} rows of A")
    rows = n // block
    if rows < ranks:
        what = "rows" if block == 1 else f"block rows of {block}"
        raise InputError(f"{rows} {what} cannot be shared by {ranks} ranks: start at most {rows}")
    share, more = divmod(rows, ranks)
    counts = np.full(ranks, share, np.int64)
    counts[:more] += 1
    return np.concatenate([[0], block * np.cumsum(counts)])


def owners(starts, rows) -> np.ndarray:
    """Return the rank that owns each of the given global rows, an int array; ``starts`` as ``consecutive`` returns."""
    return np.searchsorted(starts, rows, side="right") - 1


def load_balance(shares) -> float:
    """Return the load balance factor, equation (13): the largest of ``shares`` (time or entries of each rank) over the
    mean; 1 is balanced."""
    shares = np.asarray(shares, np.float64)
    return float(shares.max() / shares.mean()) if shares.any() else 1.0


def divided(count, parts, left, right) -> np.ndarray:
    """Partition the graph of cells with few cut edges; return the part of each cell.

    Parameters
    ----------
    count, parts : int
        Number of cells and of parts.
    left, right : int array
        Cell left[k] is a neighbour of cell right[k].

    Raises
    ------
    InputError
        If there are fewer cells than parts.
    """
    import scipy.sparse as sp

    from swell.core.devices import make_space
    from swell.formats.csr import CSRMatrix
    from swell.orderings.partition import of_matrix
    if parts > count:
        raise InputError(f"{count} cells cannot be shared by {parts} ranks: start at most {count}")
    links = sp.coo_array((np.ones(left.size, np.float32), (left, right)), shape=(count, count))
    return of_matrix(CSRMatrix.from_scipy(sp.csr_array(links + links.T), make_space("cpu")), parts)


def of_links(ranks, count, left, right) -> np.ndarray:
    """Return the rank of each of ``count`` cells: rank 0 calls ``divided``, and every rank gets its result. ``ranks``:
    a Communicator; ``left``, ``right`` as in ``divided``."""
    part = None
    with ranks.agreed():
        if ranks.rank == 0:
            part = divided(count, ranks.size, left, right)
    return ranks.alltoall([part] * ranks.size)[0]
