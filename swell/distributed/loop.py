"""Agreement of ranks to end a loop, and the loop driver of ranks on CPUs (on GPUs: graph.py)."""
from __future__ import annotations

from swell.core.loop import DirectLoop, interruptible
from swell.core.stopping import Reason

AGREE_EVERY = 10        # iterations, or cycles, between two exchanges of the ranks' wishes to stop


class Agreement:
    """Wishes to stop that one rank alone knows (Ctrl-C, its monitor's answer, an error), shared with all ranks."""

    def __init__(self, ranks):
        self._ranks, self._wish, self._looks = ranks, None, 0

    def ask(self, reason):
        """Record ``reason`` (a ``Reason``): this rank wants to stop. An earlier reason is kept instead."""
        self._wish = self._wish or reason

    def forget(self):
        """Forget the recorded wish, at the beginning of a run."""
        self._wish = None

    def reached(self):
        """Return the ``Reason`` to stop of the lowest rank that has one, or None; every rank calls it equally often.

        The ranks exchange their reasons at every tenth call; the other calls return None.
        """
        self._looks += 1
        if self._looks % AGREE_EVERY:
            return None
        if self._ranks.failure is not None:
            self.ask(Reason.STOPPED)
        wishes = self._ranks.communicator.allgather(self._wish)
        return next((wish for wish in wishes if wish is not None), None)


def guarded_monitor(monitor, ranks):
    """Return a function that calls ``monitor``, but raises no error: a first error is kept and raised at the end of
    ``ranks.deferred_errors`` (``ranks``: `ConnectedRanks`), and after it the monitor is not called again. None for no
    monitor."""
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
    """Calls the body equally often on every rank: all ranks judge the same numbers and come to the same verdict."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        self._agreement = Agreement(space.ranks)

    def begin(self, threshold, scale, window, done=0, monitor=None, frozen=(), on_x=None):
        super().begin(threshold, scale, window, done, guarded_monitor(monitor, self.space.ranks), frozen, on_x)

    def ask(self, reason):
        self._agreement.ask(reason)

    def run(self, body, capturable=True, steps=1):
        self._agreement.forget()
        with interruptible(self.interrupt):
            self.report()
            while not self.stopped:
                body()
                self.halted()

    def halted(self, formed=True):
        self.report(formed)
        self.abort = self.abort or self._agreement.reached()
        return self.stopped
