"""BDDC subdomains distributed over ranks: A = Σ Rᵢᵀ Aᵢ Rᵢ over the subdomains of all ranks; no rank has the whole A.

    A, S = swell.distributed.from_subdomains(ranks, parts)       # parts: this rank's (matrix, dofs)
    r = swell.solve(A, b[A.rows], method="cg", precond=swell.BDDC(subdomains=S))

A dof inside a subdomain is a row of that subdomain's rank. A dof in subdomains of several ranks is a row of the lowest
of these ranks. The others have it as a ghost, so every ghost is on the interface. Local numbers count the rank's own
rows first, then its ghosts.

Setup: each rank keeps a directory of a range of dofs. From it the others learn the owner of each dof, by two
all-to-alls of lists of dofs. Matrix entries in rows of other ranks are sent there. Storage: the subdomains' matrices
and the rank's rows of A.
"""
from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from swell.core.errors import InputError, SwellError
from swell.distributed.communicator import require_ranks
from swell.distributed.entries import gathered
from swell.distributed.halo import Halo
from swell.distributed.partition import consecutive
from swell.distributed.parts import from_rows
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.bddc.subdomains import Pieces, Subdomains, checked_groups, entries


def from_subdomains(communicator, parts, *, device="cpu", groups=(), overlap=True):
    """Assemble a distributed matrix from subdomains that the ranks pass. All ranks call it together.

    Parameters
    ----------
    communicator : Communicator
    parts : list of (matrix, dofs)
        This rank's subdomains, at least one, as for ``swell.Subdomains``: dofs are rows of the whole A. Subdomains are
        numbered in the order of ranks.
    device : str
        Where this rank's part is stored: "cpu", or "cuda" for one GPU a rank.
    groups : sequence of int arrays
        As in ``swell.Subdomains``, for the subdomains of all ranks; equal on every rank.
    overlap : bool
        As in ``DistributedMatrix``.

    Returns
    -------
    (DistributedMatrix, RankSubdomains)
        A, whose ``rows`` are this rank's rows (inside its subdomains, and its part of the interface); and the
        subdomains, for ``swell.BDDC(subdomains=...)``.

    Raises
    ------
    InputError
        On every rank, if a rank has no subdomains, ``swell.Subdomains`` would refuse its subdomains, or lower ranks
        own all its rows.
    """
    require_ranks(communicator)
    with communicator.agreed():
        counts = communicator.allgather(len(parts))
        if not min(counts):
            raise InputError(f"rank {counts.index(0)} of {len(counts)} brings no subdomain, all together bring "
                             f"{sum(counts)}: give each rank one at least, or start fewer ranks")
        with naming_rank(communicator):
            pieces = Pieces.of(parts)
    dofs = np.unique(np.concatenate(pieces.dofs))
    owner, number, starts = numbered(communicator, dofs)
    number = number.astype(index_type(int(starts[-1]), 0, 0))
    numbers = [number[np.searchsorted(dofs, piece)] for piece in pieces.dofs]
    rows = gathered(communicator, entries(pieces.matrices, numbers), starts)
    A = from_rows(communicator, rows, device=device, starts=starts, order=dofs[owner == communicator.rank],
                  overlap=overlap)
    return A, RankSubdomains(A, pieces, numbers, len(parts), groups)


def numbered(communicator, dofs):
    """Number the dofs by rank. All ranks call it together.

    Parameters
    ----------
    dofs : int array
        The dofs in this rank's subdomains, ascending.

    Returns
    -------
    (owner, number, starts)
        For each dof the rank that owns it, and its row number after the dofs are ordered by rank; then the first row of
        each rank, and n.

    Raises
    ------
    InputError
        On every rank, if a dof below the largest is in no subdomain, or a rank owns no dof.
    """
    rank, size = communicator.rank, communicator.size
    n = max(communicator.allgather(int(dofs[-1]))) + 1
    with communicator.agreed():
        blocks = consecutive(n, size)
    asked = communicator.alltoall(np.split(dofs, np.searchsorted(dofs, blocks[1:-1])))
    known = np.full(blocks[rank + 1] - blocks[rank], -1)         # the lowest rank that has each dof of this directory
    for k in reversed(range(size)):
        known[asked[k] - blocks[rank]] = k
    with communicator.agreed():
        missing = blocks[rank] + np.flatnonzero(known < 0)
        if missing.size:
            raise InputError(f"row {missing[0]} is in no subdomain of any rank: every row up to the last, {n - 1}, "
                             "needs one")
    owner = np.concatenate(communicator.alltoall([known[wanted - blocks[rank]] for wanted in asked]))
    local_dofs = dofs[owner == rank]
    counts = communicator.allgather(local_dofs.size)
    with communicator.agreed():
        if not min(counts):
            raise InputError(f"all dofs of rank {counts.index(0)}'s subdomains are lower ranks', so that it has no "
                             "row: give it another subdomain, or start fewer ranks")
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    number = np.empty(dofs.size, np.int64)
    asked = communicator.alltoall([dofs[owner == k] for k in range(size)])
    answers = communicator.alltoall([starts[rank] + np.searchsorted(local_dofs, wanted) for wanted in asked])
    for k, answer in enumerate(answers):
        number[owner == k] = answer
    return owner, number, starts


@contextmanager
def naming_rank(communicator):
    """Context manager: add this rank to the text of swell's errors raised in the block, since these count subdomains
    and rows on the rank."""
    try:
        yield
    except SwellError as error:
        if communicator.size > 1 and not getattr(error, "told", False):
            error.args = (f"on rank {communicator.rank}: {error}",)
        raise


class RankSubdomains(Subdomains):
    """A rank's subdomains; made by ``from_subdomains``, or by splitting a DistributedMatrix.

    Parameters
    ----------
    A : DistributedMatrix
    pieces : Pieces
        The connected pieces of this rank's subdomains.
    numbers : list of int arrays
        For each piece, the rows of A that are its dofs.
    count : int
        Number of this rank's subdomains before they were cut into pieces.
    groups : sequence of int arrays
        For the subdomains of all ranks.

    Attributes
    ----------
    matrices : list of scipy.sparse.csr_array
        The pieces' matrices.
    dofs : list of int arrays
        The pieces' dofs in local numbers: this rank's rows from 0, then its ghosts.
    n : int
        Number of this rank's rows and ghosts.
    ghosts : int array
        Rows of other ranks in this rank's subdomains, ascending.
    """

    def __init__(self, A, pieces, numbers, count, groups=()):
        self.space, self._named = A.space, A.rows
        communicator, first, stop = A.space.ranks.communicator, A.space.ranks.first, A.space.ranks.stop
        self.matrices, self.notes = pieces.matrices, pieces.notes
        every = np.unique(np.concatenate(numbers))
        self.ghosts = every[(every < first) | (every >= stop)].astype(np.int64)
        self.n = stop - first + self.ghosts.size
        self.dofs = [np.where((piece >= first) & (piece < stop), piece - first,
                              stop - first + np.searchsorted(self.ghosts, piece)).astype(np.int64) for piece in numbers]
        shares = communicator.allgather((count, pieces.origin))
        before = np.cumsum([0] + [share for share, _ in shares])
        origin = np.concatenate([start + origins for start, (_, origins) in zip(before[:-1], shares, strict=True)])
        communicator.require_equal([np.asarray(group).tolist() for group in groups], "groups")
        with communicator.agreed():
            self.groups = checked_groups(groups, int(before[-1]), origin)
        self.all, self._halo = origin.size, None

    def check(self, A):
        if A.space.ranks.single or not np.array_equal(A.space.ranks.starts, self.space.ranks.starts):
            raise InputError("BDDC: the subdomains are spread over ranks in another way than A: take the matrix that "
                             "from_subdomains made with them")

    def part(self, A):
        xp, block, rest, rows = A.space.xp, A.own, A.rest, A.own.shape[0]
        ours = np.isin(A.halo.ghosts, self.ghosts)               # the others are inside other ranks' subdomains
        place = np.where(ours, rows + np.searchsorted(self.ghosts, A.halo.ghosts), -1)
        columns = A.space.from_host(place)[rest.indices]
        there = columns >= 0
        row = xp.concatenate((block.rows(), A.boundary[rest.rows()][there]))
        order = xp.argsort(row, kind="stable")   # in each row, own columns come before ghosts
        column, data = (xp.concatenate((values, others[there]))[order]
                        for values, others in ((block.indices, columns), (block.data, rest.data)))
        indptr = xp.searchsorted(row[order], xp.arange(rows + 1, dtype=row.dtype))
        return CSRMatrix(A.space.local, indptr, column, data, (rows, self.n))

    def name_of(self, row):
        named = self._named
        return named.start + row if isinstance(named, slice) else named[row]

    def names(self, rows):
        first, stop, named = self.space.ranks.first, self.space.ranks.stop, self._named
        local = rows[(rows >= first) & (rows < stop)] - first
        return np.concatenate(self.from_all_ranks([named.start + local if isinstance(named, slice) else named[local]]))

    def times(self, x):
        """Return this rank's rows of Σ Rᵢᵀ Aᵢ Rᵢ x; ``x``: this rank's rows of x. Both are arrays of the host. All
        ranks call it together."""
        space, rows = self.space, x.size
        if self._halo is None:
            self._halo = Halo(space, self.ghosts, self.dtype)
        halo = self._halo
        halo.start(space.from_host(x))
        halo.finish()
        y = super().times(np.concatenate((x, space.to_host(halo.values))))
        out = space.from_host(y[:rows].copy())
        halo.values[...] = space.from_host(y[rows:])
        halo.give_back(out)
        return space.to_host(out)

    def shared(self):
        space, rows = self.space, self.n - self.ghosts.size
        counts = np.bincount(np.concatenate(self.dofs), minlength=self.n)
        candidates = np.concatenate((space.ranks.first + np.flatnonzero(counts[:rows] > 1), self.ghosts))
        every = np.unique(np.concatenate(self.from_all_ranks([candidates])))
        number = np.full(self.n, -1, index_type(self.n, every.size, 0))
        local = every[(every >= space.ranks.first) & (every < space.ranks.stop)]
        number[local - space.ranks.first] = np.searchsorted(every, local)
        number[rows:] = np.searchsorted(every, self.ghosts)
        return every, number

    def from_all_ranks(self, values):
        return [value for values in self.space.ranks.allgather(values) for value in values]

    def sum(self, numbers):
        self.space.ranks.allreduce(numbers)

    def describe(self):
        return f"{self.all} subdomains, {len(self)} on each rank" if self.space.ranks.communicator.size > 1 else \
            super().describe()
