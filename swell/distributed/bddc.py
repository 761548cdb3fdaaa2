"""BDDC across ranks: the setup and the application of one device (preconditioners/bddc/) on subdomains that are spread
over the ranks; here is what is different, the split of an assembled matrix.

Each rank cuts its own rows into subdomains, which are counted in the order of ranks. As on one device, every pair aᵢⱼ
is an element of the lower numbered subdomain, so that of pairs between two ranks the lower one gets the elements, and
with them copies of the other's rows (splitting.py). An application: three all-reduces, two of as many numbers as there
are dofs on the interface and one of the coarse unknowns; nothing else.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.distributed.entries import fetched
from swell.distributed.partition import owners
from swell.distributed.subdomains import RankSubdomains, said_of
from swell.preconditioners.bddc.settings import BDDCOperator
from swell.preconditioners.bddc.splitting import elements, summed
from swell.preconditioners.bddc.subdomains import Pieces
from swell.preconditioners.schwarz import Schwarz, subdomains


class RankBDDC(BDDCOperator):
    """z = M r on the parts of a DistributedMatrix."""

    def update(self, A):
        with said_of(A.space.communicator):
            super().update(A)

    def _split(self, A):
        space, communicator = A.space, A.space.communicator
        if self._owner is None:
            self._owner = subdomains(A.own, Schwarz(domains=self._share(communicator),
                                                    partition=self.settings.partition))
        counts = communicator.allgather(int(self._owner.max()) + 1)
        starts = np.concatenate(([0], np.cumsum(counts)))
        owner, ghosts = self._owner + starts[communicator.rank], A.halo.ghosts
        every = np.concatenate((owner, *fetched(space, owner, ghosts)))
        numbers = np.concatenate((np.arange(space.first, space.stop), ghosts))
        of, *entries = elements(_columns(A), every, numbers)
        to, parts = owners(starts, of), []
        for rank in range(communicator.size):
            some = to == rank
            parts.append([part[some] for part in (of, *entries)])
        of, *entries = (np.concatenate(part) for part in zip(*communicator.alltoall(parts), strict=True))
        pieces = Pieces.of(summed(of - starts[communicator.rank], *entries))
        return RankSubdomains(A, pieces, pieces.dofs, counts[communicator.rank])

    def _share(self, communicator):
        """How many subdomains this rank makes; 0: by its rows."""
        count, ranks = self.settings.domains, communicator.size
        if 0 < count < ranks:
            raise InputError(f"BDDC(domains={count}) on {ranks} ranks: each needs a subdomain; take more, or start "
                             "fewer ranks")
        return count // ranks + (communicator.rank < count % ranks)


def _columns(A):
    """The rank's rows as SciPy's CSR, the rank's columns and then the halo's."""
    import scipy.sparse as sp
    own, rest, rows = A.own.to_scipy().tocoo(), A.rest.to_scipy().tocoo(), A.space.to_host(A.boundary)
    n = own.shape[0]
    row, column = np.concatenate((own.row, rows[rest.row])), np.concatenate((own.col, n + rest.col))
    return sp.csr_array((np.concatenate((own.data, rest.data)), (row, column)), shape=(n, n + rest.shape[1]))
