"""DistributedSpace: vectors in parts, one on each rank, in the rank's own space."""
from __future__ import annotations

import numpy as np

from swell.core.loop import DirectLoop, interruptible
from swell.core.space import Space

AGREE_EVERY = 10        # iterations, or cycles, from one question whether somebody wants to stop to the next


class DistributedSpace(Space):
    """A local space, a communicator, and who has which rows.

    What kernels leave in scalars are the sums of one rank; ``allreduce`` makes them those of all.

    Parameters
    ----------
    local : Space
    communicator : Communicator
    starts : int64 array, shape (ranks + 1,)
        The first row of each rank, and n.
    """

    alone = False

    def __init__(self, local, communicator, starts):
        super().__init__()
        self.local, self.communicator, self.starts = local, communicator, starts
        self.name, self.xp = local.name, local.xp
        self.first, self.stop = int(starts[communicator.rank]), int(starts[communicator.rank + 1])

    # -- of all ranks --------------------------------------------------------------------------------------------

    def share(self, n):
        return self.stop - self.first

    def agreed(self):
        return self.communicator.agreed()

    def same(self, value, what):
        self.communicator.same(value, what)

    def allreduce(self, scalars):
        self.communicator.allreduce(scalars)

    def greatest(self, x):
        return max(self.communicator.allgather(self.local.greatest(x)))

    def norms(self, *vectors):
        mine = self.local.norms(*vectors)
        everywhere = np.array(self.communicator.allgather(mine))
        return [value for k in range(len(vectors))
                for value in (float(np.sqrt((everywhere[:, 2 * k] ** 2).sum())), float(everywhere[:, 2 * k + 1].max()))]

    def random(self, seed, out, first=0):
        self.local.random(seed, out, self.first + first)

    def loop(self, stopping, n):
        if self.name == "cpu":
            return DistributedLoop(self, stopping, n)
        from swell.distributed.graph import DistributedGraphLoop
        return DistributedGraphLoop(self, stopping, n)

    def describe(self):
        ranks = self.communicator.size
        return self.local.describe() + (f", on each of {ranks} ranks" if ranks > 1 else "")

    # -- of this rank --------------------------------------------------------------------------------------------

    @property
    def device_name(self):
        return self.local.device_name

    @property
    def stream(self):
        """That of the GPU."""
        return self.local.stream

    def empty(self, shape, dtype):
        return self.local.empty(shape, dtype)

    def from_host(self, array, out=None):
        return self.local.from_host(array, out)

    def to_host(self, array):
        return self.local.to_host(array)

    def kernels(self, package, stem, dtype, state=None):
        return self.local.kernels(package, stem, dtype, state)

    def synchronize(self):
        self.local.synchronize()

    def memory(self):
        return self.local.memory()

    def active(self, rows=None):
        return self.local.active(None if rows is None else self.share(rows))

    def reserve(self, doubles):
        self.local.reserve(doubles)

    def reserve_sums(self, scalars):
        self.local.reserve_sums(scalars)

    def padded(self, n):
        return self.local.padded(n)

    def collect(self, dots):
        self.local.collect(dots)


class Agreement:
    """What only one rank knows, Ctrl-C or its monitor's answer, counts when all have been told."""

    def __init__(self, communicator):
        self._communicator, self._wish, self._looks = communicator, None, 0

    def ask(self, reason):
        """This rank wants to stop; the first reason stands."""
        self._wish = self._wish or reason

    def forget(self):
        """A new run begins."""
        self._wish = None

    def reached(self):
        """Asked by all ranks equally often: the reason to stop that a rank has had, told at every tenth call."""
        self._looks += 1
        if self._looks % AGREE_EVERY:
            return None
        wishes = self._communicator.allgather(self._wish)
        return next((wish for wish in wishes if wish is not None), None)


class DistributedLoop(DirectLoop):
    """Every rank calls the body as often as the others, since they judge the same numbers alike."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        self._agreement = Agreement(space.communicator)

    def ask(self, reason):
        self._agreement.ask(reason)

    def run(self, body, capturable=True, steps=1):
        self._agreement.forget()
        with interruptible(self.interrupt):
            self.report()
            while not self.stopped:
                body()
                self.halted()

    def halted(self):
        self.report()
        self.abort = self.abort or self._agreement.reached()
        return self.stopped
