"""Which rank has which rows: consecutive block rows, as evenly as possible; or which cells of a mesh, by their graph.

Equation (12) of Ma, Hu, Yuan and Liu, Developing a multi-GPU-enabled preconditioned GMRES with inexact triangular
solves for block sparse matrices, 2021: of r block rows over l ranks, the first r mod l ranks get one more than the
others. (Printed there with r mod l + 1 such ranks.)
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError


def consecutive(n: int, ranks: int, block: int = 1) -> np.ndarray:
    """The first row of each rank, and n at the end: int64, shape (ranks + 1,).

    Parameters
    ----------
    n : int
        Rows of the matrix.
    block : int
        Rows that stay together.

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
    """The ranks that have these rows."""
    return np.searchsorted(starts, rows, side="right") - 1


def load_balance(shares) -> float:
    """The load balance factor, equation (13): the largest share (of time, or of entries) over the mean; 1 is even."""
    shares = np.asarray(shares, np.float64)
    return float(shares.max() / shares.mean()) if shares.any() else 1.0


def divided(count, parts, left, right) -> np.ndarray:
    """The part of each of so many cells, by a partition of their graph: cell left[k] is a neighbour of right[k].

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
    """The rank of each cell, `divided` by rank 0."""
    part = None
    with ranks.agreed():
        if ranks.rank == 0:
            part = divided(count, ranks.size, left, right)
    return ranks.alltoall([part] * ranks.size)[0]
