"""The loop driver: the same method body, called directly on a CPU and replayed as a CUDA graph on a GPU.

A method gives the body of its iteration (or of its cycle) as fused steps whose scalars stay where the vectors are. The
driver repeats it until the judge has spoken, reports progress, and honours Ctrl-C and the user's monitor. It allocates
nothing and, on a GPU, reads nothing from the device: the judge mirrors its record into host memory.
"""
from __future__ import annotations

import signal
from contextlib import contextmanager

import numpy as np

from swell.core.slots import COLUMNS, Flag, Limit
from swell.core.stopping import Reason


_running = []           # what the loops under way, of all threads, want called at Ctrl-C


def pass_on_interrupt() -> bool:
    """Ctrl-C for all loops under way, from the main thread, to which signals belong; False if there are none."""
    calls = list(_running)
    for call in calls:
        call()
    return bool(calls)


class _FirstInterrupt:
    """A handler that ends all loops at the first Ctrl-C and leaves the second to the handler before it."""

    def __init__(self, previous):
        self.previous = previous

    def __call__(self, number, frame):
        signal.signal(signal.SIGINT, self.previous)
        pass_on_interrupt()


@contextmanager
def interruptible(on_interrupt):
    """The first Ctrl-C within this block calls ``on_interrupt``; every other block under way, around this one or in
    another thread, calls its own. The second Ctrl-C raises KeyboardInterrupt.

    The main thread of the main interpreter alone gets signals: a block elsewhere hears of Ctrl-C where that thread is
    in such a block, or calls ``pass_on_interrupt``. SIGINT that is ignored, as in what a shell starts by ``&`` or
    nohup, stays ignored, and a handler that Python did not install stays what it is.
    """
    _running.append(on_interrupt)
    try:
        with _handled():
            yield
    finally:
        _running.remove(on_interrupt)


@contextmanager
def _handled():
    """Our handler of SIGINT within this block, where it can and may be installed and is not yet."""
    previous = signal.getsignal(signal.SIGINT)
    if previous in (signal.SIG_IGN, None) or isinstance(previous, _FirstInterrupt):
        yield
        return
    try:
        signal.signal(signal.SIGINT, _FirstInterrupt(previous))
    except ValueError:                           # not in the main thread of the main interpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _squared(number: float) -> float:
    """The square, at most the largest double: Python's ``**`` raises OverflowError beyond it."""
    return min(float(number) * float(number), np.finfo(np.float64).max)


class Loop:
    """What both drivers share: the judge's record, the history, the abort flag and the monitor.

    ``core/slots.py`` names the places of ``flags`` and ``limits``; each has a column for every right-hand side.

    Parameters
    ----------
    space : Space
    stopping : Stopping
    n : int
        Unknowns.
    monitor : callable or None
        Called as ``monitor(iteration, residual_norm)`` for every iteration, in order; a true return value stops.
    """

    def __init__(self, space, stopping, n):
        self.space = space
        self.stopping = stopping
        self.maxiter = stopping.limit(n)
        self.flags = np.zeros((len(Flag), COLUMNS), np.int64)
        self.limits = np.zeros((len(Limit), COLUMNS))
        self.history = np.zeros((self.maxiter + 1, COLUMNS))[:, 0]
        self._stop, self._iteration = self.flags[Flag.STOP], self.flags[Flag.ITERATION]
        self.cycle, self.patience = 0, 0         # iterations of a cycle, and slow cycles that are a stagnation
        self.abort = None                        # Reason that ended the loop from outside
        self.host_reads = 0

    def begin(self, threshold: float, scale: float, window: int, done: int = 0, monitor=None):
        """Reset the record for a new run after ``done`` iterations; growth is measured against ``scale``."""
        flags, limits = self.flags, self.limits
        flags[:] = 0
        flags[Flag.MAXITER] = max(self.maxiter - done, 0)
        flags[Flag.WINDOW] = self.stopping.window if self.stopping.window is not None else window
        flags[Flag.EVERY] = self.stopping.every
        flags[Flag.CYCLE], flags[Flag.SLOW_CYCLES] = self.cycle, self.patience
        limits[Limit.THRESHOLD2] = _squared(threshold)
        limits[Limit.RATIO2] = 1
        limits[Limit.GROWTH2] = _squared(self.stopping.growth * scale)
        limits[Limit.BEST2] = np.inf
        self.abort = None
        self._monitor = monitor
        self._done, self._seen = done, 0
        self._send()

    def end(self):
        """Make the record final; operators may be used outside the loop again."""

    @property
    def iterations(self) -> int:
        """Iterations judged so far."""
        return int(self._iteration[0])

    @property
    def reason(self) -> Reason:
        """Why the loop ended."""
        return self.abort or Reason.of(int(self.flags[Flag.VERDICT, 0]))

    @property
    def stopped(self) -> bool:
        """True once the judge or the user has spoken."""
        return self.abort is not None or self._stop[0] != 0

    def interrupt(self):
        """Stop at the next chance, because of Ctrl-C."""
        self.ask(Reason.INTERRUPTED)

    def ask(self, reason):
        """Stop at the next chance, for a reason from outside; the first one stands."""
        self.abort = self.abort or reason

    def report(self):
        """Hand the iterations that are new to the monitor."""
        if self._monitor is None:
            return
        for k in range(self._seen, self.iterations + 1):
            if self._monitor(self._done + k, float(self.history[k])):
                self.ask(Reason.STOPPED)
        self._seen = self.iterations + 1


class DirectLoop(Loop):
    """Calls the body from Python: the driver of the CPU."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        self.state = (self.flags[:, 0], self.limits[:, 0], self.history)

    def _send(self):
        pass                                     # the kernels work on the record itself

    def kernels(self, package, stem, dtype):
        """The kernels of ``package`` called ``stem``, bound to this loop's state."""
        return self.space.kernels(package, stem, dtype, self.state)

    def halted(self) -> bool:
        """Inside a cycle: should the remaining steps be left out?"""
        self.report()
        return self.stopped

    def run(self, body, capturable=True, steps=1):
        """Repeat ``body`` until the judge has spoken; the other two matter on a GPU only."""
        with interruptible(self.interrupt):
            self.report()
            while not self.stopped:
                body()
                self.report()
