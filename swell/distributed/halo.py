"""Halo exchange: the entries of x that a rank's rows need from other ranks (ghosts), and the messages that bring them.

Section 3.2 of Ma, Hu, Yuan and Liu 2021. The columns outside a rank's diagonal block are compressed to the used ones
(whole blocks of them), its ghosts, in ascending order, hence by owner. Each owner packs the entries that others need
into one buffer and sends every neighbour its part. Setup: one all-to-all of index lists. A product: a gather of the
sent entries, 8 bytes written and 8 + 4 read an entry in double, and one message to and from each neighbour, also for
several right-hand sides.
"""
from __future__ import annotations

import numpy as np

from swell.distributed.partition import owners
from swell.formats.csr import CSRMatrix


class Halo:
    """The exchange of ghost values, for the off-diagonal part of a product.

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
        The ghosts' values, after ``finish``.
    incoming, outgoing : int array, shape (ranks,)
        Number of entries received from, and sent to, each rank.
    """

    scratch = ("values", "_packed")

    def __init__(self, space, ghosts, dtype):
        self.space, self.ghosts, communicator = space, ghosts, space.ranks.communicator
        self.incoming = np.bincount(owners(space.ranks.starts, ghosts), minlength=communicator.size)
        ends = np.cumsum(self.incoming)
        wanted = communicator.alltoall(np.split(ghosts, ends[:-1]))              # rows that the others need from here
        self.outgoing = np.array([part.size for part in wanted])
        self._index = space.from_host((np.concatenate(wanted) - space.ranks.first).astype(np.int32))
        self.values, self._packed = space.buffer(ghosts.size, dtype), space.buffer(self._index.size, dtype)
        self._kernels, self._back = space.kernels("swell.distributed", "halo", dtype), None
        self._exchange = self._between(self._packed, self.outgoing, self.values, self.incoming)

    def _between(self, *buffers):
        return self.space.ranks.communicator.exchange(self.space.local, *buffers)

    def start(self, x):
        """Send the entries of x (this rank's part) that the neighbours need; ``values`` must not be read until
        ``finish``."""
        self._exchange.start_gathered(self._kernels, self._index, x)

    def pack(self, x):
        """Gather the entries of x that the neighbours need into the send buffer; ``send`` sends them."""
        self._kernels.pack(self._index, x, self._packed)

    def send(self):
        """Send the entries that ``pack`` gathered; ``finish`` waits for the others' entries."""
        self._exchange.start()

    def finish(self):
        """Wait until ``values`` holds the ghost values; then x may be changed again."""
        self._exchange.finish()

    def finish_product(self, rows, A, out, alpha):
        """Wait for the ghost values g, then out[rows] += α A g; ``values`` is unspecified afterwards. A: a CSRMatrix
        or BSRMatrix with one row for each of ``rows`` and one column for each ghost."""
        self._exchange.finish_product(self._kernels, rows, A, out, out.dtype.type(alpha))

    def finish_product_dot(self, rows, A, out, w, dots):
        """Like ``finish_product`` with α = 1. It also adds the resulting change of the inner product (w, out) to
        dots[0]; w: this rank's part of a vector."""
        self._exchange.finish_product_dot(self._kernels, rows, A, out, w, dots)

    def give_back(self, out):
        """Send each of ``values`` back to the rank that owns this entry, and add what the other ranks send to ``out``,
        this rank's part of a vector: the adjoint of ``start`` and ``finish``."""
        self.start_return()
        self.finish_return(out)

    def start_return(self):
        """Start to send ``values`` back to their owners: the first half of ``give_back``."""
        self.prepare_return()
        self._back.start()

    def finish_return(self, out):
        """Wait for the values that other ranks send back, and add them to ``out``: the second half of ``give_back``."""
        self._back.finish()
        self._sum.apply(self._packed, out, 1, 1)

    def prepare_return(self):
        """Allocate the buffers of ``give_back``, unless that is done. Otherwise the first ``give_back`` allocates them,
        which a captured loop must not do."""
        if self._back is not None:
            return
        space, count, xp = self.space, self._index.size, self.space.xp
        self._back = self._between(self.values, self.incoming, self._packed, self.outgoing)
        gather = CSRMatrix(space.local, xp.arange(count + 1), self._index, xp.ones(count, self.values.dtype),
                           (count, space.ranks.stop - space.ranks.first))
        self._sum = gather.transpose()           # sums, since several ranks may have the same row as a ghost

    @property
    def neighbours(self) -> int:
        """Number of ranks that this one sends to."""
        return int(np.count_nonzero(self.outgoing))

    @property
    def nbytes(self) -> int:
        """Bytes of the ghost values, the send buffer and its index, without the buffers of ``give_back``."""
        return self.values.nbytes + self._packed.nbytes + self._index.nbytes
