"""What ends a loop across ranks, and the loop driver of ranks on CPUs (of GPUs: graph.py)."""
from __future__ import annotations

from swell.core.loop import DirectLoop, interruptible
from swell.core.stopping import Reason

AGREE_EVERY = 10        # iterations, or cycles, from one question whether a rank wants to stop to the next


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
