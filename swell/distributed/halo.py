"""The halo of a rank: the entries of x that its rows need from other ranks, and the exchange that brings them.

Section 3.2 of Ma, Hu, Yuan and Liu 2021: the columns outside a rank's diagonal block are compressed to those in use,
its ghosts, in ascending order, hence by owner; each owner packs what the others need into one buffer, and sends every
neighbour its part of it. Setup: one all-to-all of index lists. A product: a gather of what is sent, 8 bytes written and
8 + 4 read an entry in double, and one message to and from each neighbour.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.partition import owners
from swell.formats.csr import CSRMatrix


class Halo:
    """What is exchanged before the off-diagonal part of a product.

    Parameters
    ----------
    space : DistributedSpace
    ghosts : int64 array
        The columns needed from other ranks, ascending.
    dtype : numpy.dtype

    Attributes
    ----------
    ghosts : int64 array
    values : array of the space
        Their values, after ``finish``.
    """

    def __init__(self, space, ghosts, dtype):
        self.space, self.ghosts, communicator = space, ghosts, space.communicator
        self.incoming = np.bincount(owners(space.starts, ghosts), minlength=communicator.size)
        ends = np.cumsum(self.incoming)
        wanted = communicator.alltoall(np.split(ghosts, ends[:-1]))              # what the others want from here
        self.outgoing = np.array([part.size for part in wanted])
        self._index = space.from_host((np.concatenate(wanted) - space.first).astype(np.int32))
        self.values, self._packed = space.empty(ghosts.size, dtype), space.empty(self._index.size, dtype)
        self._kernels, self._back = space.kernels("swell.distributed", "halo", dtype), None
        self._exchange = communicator.exchange(self._packed, self.outgoing, self.values, self.incoming)

    def start(self, x):
        """Send what the neighbours need of x; ``values`` must not be read until ``finish``."""
        self._exchange.start_gathered(self._kernels, self._index, x)

    def pack(self, x):
        """Gather what the neighbours need of x."""
        self._kernels.pack(self._index, x, self._packed)

    def send(self):
        """Send what is packed."""
        self._exchange.start()

    def finish(self):
        """Wait for the ghosts; then x may be changed again."""
        self._exchange.finish()

    def finish_product(self, rows, A, out, alpha):
        """Wait for the ghosts, and out[rows] += α A ghosts; ``values`` need not have them afterwards."""
        self._exchange.finish_product(self._kernels, rows, A, out, out.dtype.type(alpha))

    def finish_product_dot(self, rows, A, out, w, dots):
        """The same for α = 1, with what it changes in dots[0] = (w, out)."""
        self._exchange.finish_product_dot(self._kernels, rows, A, out, w, dots)

    def give_back(self, out):
        """Add ``values``, here contributions to the rows of other ranks, to their ``out``: the adjoint of what
        ``start`` and ``finish`` do."""
        self.start_return()
        self.finish_return(out)

    def start_return(self):
        """Send ``values`` back, the first half of ``give_back``."""
        self.prepare_return()
        self._back.start()

    def finish_return(self, out):
        """Wait for what the others give back, and add it to ``out``."""
        self._back.finish()
        self._sum.apply(self._packed, out, 1, 1)

    def prepare_return(self):
        """Set up what ``give_back`` needs, for loops that must not allocate."""
        if self._back is not None:
            return
        space, count, xp = self.space, self._index.size, self.space.xp
        self._back = space.communicator.exchange(self.values, self.incoming, self._packed, self.outgoing)
        gather = CSRMatrix(space.local, xp.arange(count + 1), self._index, xp.ones(count, self.values.dtype),
                           (count, space.stop - space.first))
        self._sum = gather.transpose()           # a row may be asked for by several ranks

    @property
    def neighbours(self) -> int:
        """Ranks that this one sends to."""
        return int(np.count_nonzero(self.outgoing))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.values.nbytes + self._packed.nbytes + self._index.nbytes
