"""Helmholtz across ranks: each assembles its own dofs' rows of K, M and B, and all solve together.

Every rank has the whole mesh. A partition of the graph of cells assigns each cell to a rank. A dof belongs to the
lowest rank among its cells. A rank integrates over the cells that touch its dofs, so that its rows equal the rows of
the system on one device. Right-hand sides and fields are small beside matrices, and every rank has them whole.
"""
import numpy as np
import scipy.sparse as sp

from swell.distributed import from_rows
from swell.distributed.partition import of_links
from swell.pde.helmholtz.system import System, Values, on_one_pattern


class PartOfSystem(System):
    """A rank's rows of K, M and B on its device, and A(ω) as a DistributedMatrix; see `System`.

    Parameters
    ----------
    part : Part
    K, M, B : scipy.sparse matrices, free dofs × free dofs
        Only the rank's own rows are used.
    varying : list
        As for `System`; each rank computes all their values.
    """

    def __init__(self, part, K, M, B, device, dtype, varying=()):
        rows = [part.own_rows(matrix) for matrix in (K, M, B)]
        indptr, indices, values, others = on_one_pattern(*rows, [part.own_rows(numbers) for _, numbers in varying])
        # A matrix with the entries' numbers as values shows where from_rows puts each entry.
        numbers = sp.csr_array((np.arange(1.0, indices.size + 1), indices, indptr), shape=rows[0].shape)
        there = from_rows(part.ranks, numbers, device=device, starts=part.starts, order=part.order)
        with there.space.active():
            A, host = there.astype(np.dtype(dtype)), there.space.to_host
            places = [host(block.data).astype(np.int64) - 1 for block in (there.own, there.rest)]
            self._begin(A, [Values(block, *(v[at] for v in values), [_within(at, indices.size, *o) for o in others])
                            for block, at in zip((A.own, A.rest), places)], varying)


def _within(of_block, size, take, at):
    """Return the part of (take, at) that is in one block: ``of_block`` has the places of the block's entries among all
    entries of the rank, ``size`` of them; the new ``at`` numbers the block's entries."""
    number = np.full(size, -1, np.int64)
    number[of_block] = np.arange(len(of_block))
    renumbered = number[at]
    return take[renumbered >= 0], renumbered[renumbered >= 0]


class Part:
    """A rank's part of the dofs.

    Parameters
    ----------
    ranks : Communicator
    problem : Helmholtz

    Attributes
    ----------
    owner : int array, shape (n,)
        The rank of every dof.
    cells : int array
        The cells that touch the rank's dofs.
    starts : int array, shape (ranks + 1,)
        The first row of each rank, in the distributed numbering; set by `take_free`.
    order : int array
        The rank's own rows, as indices into the free dofs; set by `take_free`.
    """

    def __init__(self, ranks, problem):
        self.ranks = ranks
        space = problem.space
        ranks.require_equal((space.n, space.cell_dofs.shape, float(np.abs(problem.mesh.points).sum())), "the mesh")
        fem = problem.mesh.fem
        first, second = fem.f2t[:, fem.f2t[1] >= 0]
        of_cell = of_links(ranks, fem.t.shape[1], first, second)
        self.owner = np.full(space.n, ranks.size)
        np.minimum.at(self.owner, space.cell_dofs, of_cell[:, None])
        self.cells = np.flatnonzero((self.owner[space.cell_dofs] == ranks.rank).any(axis=1))

    def own(self, matrix):
        """Return a copy of a CSR matrix over all dofs in which the other ranks' rows are empty; the shape stays."""
        keep = sp.diags_array((self.owner == self.ranks.rank).astype(float), format="csr")
        return (keep @ matrix).tocsr()

    def take_free(self, free):
        """Number the free dofs (ascending) rank by rank; sets `starts` and `order`.

        Raises
        ------
        InputError
            If a rank has no free dof.
        """
        from swell.core.errors import InputError
        owner = self.owner[free]
        counts = np.bincount(owner, minlength=self.ranks.size)
        if not counts.all():
            raise InputError(f"rank {int(counts.argmin())} of {self.ranks.size} has none of {free.size} free dofs: "
                             "start fewer ranks")
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        order = np.argsort(owner, kind="stable")
        self._number = np.empty(free.size, np.int64)
        self._number[order] = np.arange(free.size)
        self.order = order[self.starts[self.ranks.rank]:self.starts[self.ranks.rank + 1]]

    def own_rows(self, matrix):
        """Return this rank's rows of a matrix over the free dofs, as CSR with columns in the distributed numbering."""
        rows = sp.csr_array(matrix)[self.order]
        local = sp.csr_array((rows.data, self._number[rows.indices], rows.indptr), shape=rows.shape)
        local.sort_indices()
        return local
