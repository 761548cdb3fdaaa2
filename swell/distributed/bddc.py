"""BDDC across ranks: subdomains distributed over the ranks, with the setup and application of preconditioners/bddc/.

This module only splits an assembled, distributed matrix into subdomains. Each rank cuts its own rows into subdomains,
numbered in the order of ranks. As on one device, every pair aᵢⱼ becomes an element of the lower numbered subdomain. So
for a pair between two ranks the lower rank gets the element, and with it copies of the other's rows (splitting.py). An
application takes three all-reduces: two of one number for each interface dof and one of the coarse unknowns.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.distributed.entries import fetched
from swell.distributed.partition import owners
from swell.distributed.subdomains import RankSubdomains, naming_rank
from swell.preconditioners.bddc.settings import BDDCOperator
from swell.preconditioners.bddc.splitting import elements, summed
from swell.preconditioners.bddc.subdomains import Pieces
from swell.preconditioners.schwarz import Schwarz, subdomains


class RankBDDC(BDDCOperator):
    """z = M r by BDDC, for a DistributedMatrix."""

    def update(self, A):
        with naming_rank(A.space.ranks.communicator):
            super().update(A)

    def _split(self, A):
        space, communicator = A.space, A.space.ranks.communicator
        if self._owner is None:
            self._owner = subdomains(A.own, Schwarz(domains=self._share(communicator),
                                                    partition=self.settings.partition))
        counts = communicator.allgather(int(self._owner.max()) + 1)
        starts = np.concatenate(([0], np.cumsum(counts)))
        owner, ghosts = self._owner + starts[communicator.rank], A.halo.ghosts
        every = np.concatenate((owner, *fetched(space, owner, ghosts)))
        numbers = np.concatenate((np.arange(space.ranks.first, space.ranks.stop), ghosts))
        subdomain, *entries = elements(_columns(A), every, numbers)
        to, parts = owners(starts, subdomain), []
        for rank in range(communicator.size):
            some = to == rank
            parts.append([part[some] for part in (subdomain, *entries)])
        subdomain, *entries = (np.concatenate(part) for part in zip(*communicator.alltoall(parts), strict=True))
        pieces = Pieces.of(summed(subdomain - starts[communicator.rank], *entries))
        return RankSubdomains(A, pieces, pieces.dofs, counts[communicator.rank])

    def _share(self, communicator):
        """Return the number of subdomains on this rank, from ``settings.domains``; None: it is chosen later by
        the number of the rank's rows."""
        count, ranks = self.settings.domains, communicator.size
        if count is None:
            return None
        if count < ranks:
            raise InputError(f"BDDC(domains={count}) on {ranks} ranks: each needs a subdomain; take more, or start "
                             "fewer ranks")
        return count // ranks + (communicator.rank < count % ranks)


def _columns(A):
    """Return the rank's rows of the DistributedMatrix A as SciPy CSR; its own columns come first, then the ghost
    columns (columns that other ranks own)."""
    import scipy.sparse as sp
    block, rest, rows = A.own.to_scipy().tocoo(), A.rest.to_scipy().tocoo(), A.space.to_host(A.boundary)
    n = block.shape[0]
    row, column = np.concatenate((block.row, rows[rest.row])), np.concatenate((block.col, n + rest.col))
    return sp.csr_array((np.concatenate((block.data, rest.data)), (row, column)), shape=(n, n + rest.shape[1]))
