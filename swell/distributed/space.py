"""DistributedSpace: vectors in parts, one on each rank, in the rank's own space."""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.core.space import Space
from swell.distributed.graph import DistributedGraphLoop
from swell.distributed.loop import DistributedLoop
from swell.distributed.ranks import ConnectedRanks


class DistributedSpace(Space):
    """A local space, and `ConnectedRanks`.

    Kernels leave the sums of one rank in scalars; ``ranks.allreduce`` adds them over all ranks. The spaces for one
    and for several right-hand sides share the communicator; one of them is used at a time.

    Parameters
    ----------
    local : Space
    communicator : Communicator
    starts : int64 array, shape (ranks + 1,)
        The first row of each rank, and n.
    """

    def __init__(self, local, communicator, starts):
        super().__init__()
        self._local, self.ranks = local, ConnectedRanks(communicator, starts, local)
        self.name, self.xp, self.columns = local.name, local.xp, local.columns

    # -- of all ranks --------------------------------------------------------------------------------------------

    def another(self):
        raise InputError("a system across ranks has no copies for other threads, since all ranks solve together: "
                         "prepare one for each thread of each rank, with a communicator of its own")

    def for_columns(self, columns):
        return DistributedSpace(self.local.for_columns(columns), self.ranks.communicator, self.ranks.starts)

    def counterpart(self, space):
        """Return ``space`` for the rows of this space: a level of multigrid has its own distribution of rows."""
        if np.array_equal(self.ranks.starts, space.ranks.starts):
            return space
        return DistributedSpace(space.local, space.ranks.communicator, self.ranks.starts)

    def max_on_host(self, x):
        return self.ranks.max(self.local.max_on_host(x))

    def norms(self, *vectors):
        local_norms = self.local.norms(*vectors)
        of_ranks = np.array(self.ranks.allgather(local_norms))       # [rank, number] or [rank, number, column]
        # In the order of ranks: NumPy's sum adds eight numbers in pairs, but rows of them one after the other.
        norms = [value for k in range(len(vectors))
                 for value in (np.sqrt(np.cumsum(of_ranks[:, 2 * k] ** 2, axis=0)[-1]),
                               of_ranks[:, 2 * k + 1].max(axis=0))]
        return norms if self.columns > 1 else [float(value) for value in norms]

    def random(self, seed, out, first=0):
        self.local.random(seed, out, self.ranks.first + first)

    def loop(self, stopping, n):
        return (DistributedLoop if self.name == "cpu" else DistributedGraphLoop)(self, stopping, n)

    def describe(self):
        ranks = self.ranks.communicator.size
        return self.local.describe() + (f", on each of {ranks} ranks" if ranks > 1 else "")

    # -- of this rank --------------------------------------------------------------------------------------------

    @property
    def local(self):
        return self._local

    @property
    def device_name(self):
        return self.local.device_name

    @property
    def stream(self):
        """The CUDA stream of the local space."""
        return self.local.stream

    def empty(self, shape, dtype):
        return self.local.empty(shape, dtype)

    def mapped(self, shape, dtype):
        return self.local.mapped(shape, dtype)

    def from_host(self, array, out=None):
        return self.local.from_host(array, out)

    def to_host(self, array):
        return self.local.to_host(array)

    def compile_ahead(self, parts, dtype):
        self.local.compile_ahead(parts, dtype)

    def kernels(self, package, stem, dtype, states=None):
        return self.local.kernels(package, stem, dtype, states)

    def synchronize(self):
        self.local.synchronize()

    def memory(self):
        return self.local.memory()

    def active(self, rows=None):
        return self.local.active(None if rows is None else self.ranks.local_rows(rows))

    def reserve(self, doubles):
        self.local.reserve(doubles)

    def reserve_sums(self, scalars):
        self.local.reserve_sums(scalars)

    def padded(self, n):
        return self.local.padded(n)

    def collect(self, dots):
        self.local.collect(dots)

    def same_memory(self, array, other):
        return self.local.same_memory(array, other)

    def finite(self, x):
        return self.local.finite(x)

    def same_view(self, view, base):
        return self.local.same_view(view, base)

    def find_true(self, mask):
        return self.local.find_true(mask)

    def count(self, keys, size):
        return self.local.count(keys, size)

    def prefix_sums(self, counts, starts, each=1):
        self.local.prefix_sums(counts, starts, each)

    def copied(self, array):
        return self.local.copied(array)

    def count_positive(self, x):
        return self.local.count_positive(x)

    def last_entries(self, *arrays):
        return self.local.last_entries(*arrays)

    def group_max(self, keys, size):
        return self.local.group_max(keys, size)
