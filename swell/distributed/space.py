"""DistributedSpace: vectors in parts, one on each rank, in the rank's own space."""
from __future__ import annotations

from contextlib import contextmanager, suppress

import numpy as np

from swell.core.errors import InputError
from swell.core.loop import DirectLoop, interruptible
from swell.core.operator import OperatorAround
from swell.core.space import Space
from swell.core.stopping import Reason
from swell.distributed.communicator import Broken
from swell.distributed.words import merged, merged_notes

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
        self.failure, self._iterating = None, False

    # -- of all ranks --------------------------------------------------------------------------------------------

    def share(self, n):
        return self.stop - self.first

    def agreed(self):
        return self.communicator.agreed()

    @contextmanager
    def together(self):
        """As in ``Space``. Anything else that goes wrong on one rank alone leaves the others waiting for its numbers,
        and ends all of them."""
        self.failure, self._iterating = None, self.communicator.size > 1
        try:
            yield
        except Broken:
            raise
        except Exception as error:
            if not getattr(error, "told", False):
                with suppress(Broken):           # they did not hear of it, and have ended
                    self.communicator.tell_unasked(error)
            raise
        finally:
            self._iterating = False
        with self.communicator.agreed():
            if self.failure is not None:
                raise self.failure

    def said(self, texts):
        return [merged(of) for of in zip(*self.communicator.allgather(texts), strict=True)]

    def said_notes(self, notes):
        return merged_notes(self.communicator.allgather(notes))

    def guarded(self, M):
        return None if M is None else Guarded(M, self)

    def attempted(self, function, *arguments):
        """What a user's function returns; True where, within ``together``, it raises an error, which is kept. The rank
        goes on: the others wait for its numbers."""
        if not self._iterating:
            return function(*arguments)
        try:
            return function(*arguments)
        except Broken:
            raise
        except (Exception, SystemExit) as error:
            rank = self.communicator.rank
            error.add_note(f"raised on rank {rank} of {self.communicator.size}, by a preconditioner or monitor")
            self.failure = self.failure or error
            return True

    def same(self, value, what):
        self.communicator.same(value, what)

    def allreduce(self, scalars):
        self.communicator.allreduce(scalars)

    def another(self):
        raise InputError("a system across ranks has no copies for other threads, since all ranks solve together: "
                         "prepare one for each thread of each rank, with a communicator of its own")

    def same_view(self, view, base):
        return self.local.same_view(view, base)

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


class Guarded(OperatorAround):
    """A preconditioner of this rank's rows that answers an error with NaN, so that all ranks come to the same end."""

    def __init__(self, inner, ranks):
        super().__init__(inner.shape, inner.dtype, inner.space)
        self.inner, self._ranks = inner, ranks

    def _attempt(self, apply, x, out, *arguments):
        if self._ranks.attempted(apply, x, out, *arguments):
            out.fill(np.nan)

    def apply(self, x, out, alpha=1, beta=0):
        self._attempt(self.inner.apply, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._attempt(self.inner.apply_adjoint, x, out, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._attempt(self.inner.apply_dots, x, out, w, dots)

    def apply_dot(self, x, out, w, dots):
        self._attempt(self.inner.apply_dot, x, out, w, dots)

    def update(self, A):
        self.inner.update(A)

    def follow(self, A):
        self.inner.follow(A)

    @property
    def spd(self):
        """The inner operator's; so are the next three."""
        return self.inner.spd

    @property
    def self_adjoint(self):
        return self.inner.self_adjoint

    @property
    def nbytes(self):
        return self.inner.nbytes

    def describe(self):
        return self.inner.describe()


class Agreement:
    """What only one rank knows, Ctrl-C, its monitor's answer or an error, counts when all have been told."""

    def __init__(self, ranks):
        self._ranks, self._wish, self._looks = ranks, None, 0

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
        if self._ranks.failure is not None:
            self.ask(Reason.STOPPED)
        wishes = self._ranks.communicator.allgather(self._wish)
        return next((wish for wish in wishes if wish is not None), None)


def guarded_monitor(monitor, ranks):
    """A monitor (or None) whose errors wait for the end of ``ranks.together``; it is not called again after one."""
    if monitor is None:
        return None
    errors = []

    def attempted(k, residual):
        if errors:
            return True
        before = ranks.failure
        answer = ranks.attempted(monitor, k, residual)
        if ranks.failure is not before:
            errors.append(ranks.failure)
        return answer
    return attempted


class DistributedLoop(DirectLoop):
    """Every rank calls the body as often as the others, since they judge the same numbers alike."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        self._agreement = Agreement(space)

    def begin(self, threshold, scale, window, done=0, monitor=None):
        super().begin(threshold, scale, window, done, guarded_monitor(monitor, self.space))

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
