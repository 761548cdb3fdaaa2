"""The loop driver: it calls the body of a method directly on a CPU, and replays it as a CUDA graph on a GPU.

A method gives the body of its iteration (or of its cycle) as fused steps, whose scalars stay on the device. The driver
repeats the body until the judge stops it, reports progress, and obeys Ctrl-C and the user's monitor. It allocates
nothing. On a GPU it reads nothing from the device: the judge mirrors its record into host memory.
"""
from __future__ import annotations

import math
import signal
import sys
from contextlib import contextmanager

import numpy as np

from swell.core.slots import Code, Flag, Limit
from swell.core.stopping import Reason


ROOT = math.sqrt(sys.float_info.max)
_running = []           # functions to call at Ctrl-C, one for each running loop of any thread


def pass_on_interrupt() -> bool:
    """Call the interrupt functions of all running loops; return True if there were any.

    It is for the main thread, which alone receives Ctrl-C."""
    calls = list(_running)
    for call in calls:
        call()
    return bool(calls)


class _FirstInterrupt:
    """A signal handler that ends all loops at the first Ctrl-C, and restores the previous handler for the second."""

    def __init__(self, previous):
        self.previous = previous

    def __call__(self, number, frame):
        signal.signal(signal.SIGINT, self.previous)
        pass_on_interrupt()


@contextmanager
def interruptible(on_interrupt):
    """Call ``on_interrupt`` at the first Ctrl-C within this block. The second Ctrl-C raises KeyboardInterrupt.

    The first Ctrl-C also calls the functions of all other active blocks, around this one or in other threads. Only the
    main thread of the main interpreter receives signals. A block in another thread is called if the main thread is in
    such a block too, or calls ``pass_on_interrupt``. An ignored SIGINT stays ignored; a shell ignores it for commands
    started by ``&`` or nohup. A handler that Python did not install stays in place.
    """
    _running.append(on_interrupt)
    try:
        with _handled():
            yield
    finally:
        _running.remove(on_interrupt)


@contextmanager
def _handled():
    """A context that installs swell's SIGINT handler for its block, and restores the previous one at its end.

    It installs nothing if SIGINT is ignored, has a handler not set from Python, or has ours already."""
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


def _squared(number):
    """The square of a number, or of each of an array, limited to the largest double that is a square."""
    return np.square(np.minimum(np.asarray(number, np.float64), ROOT))


class Loop:
    """Base of both drivers: the judge's record, the history, the abort flag and the monitor.

    A row of ``flags`` and of ``limits`` belongs to one right-hand side, and so does a row of ``histories``.
    ``core/slots.py`` names the places in a row. The loop ends when the judge has stopped every right-hand side; one
    that has stopped earlier is frozen.

    Parameters
    ----------
    space : Space
    stopping : Stopping
    n : int
        Number of unknowns.

    `begin` takes the monitor. The loop calls ``monitor(iteration, residual_norm)`` for every iteration, in order; a
    true return value stops the loop. With several right-hand sides, ``residual_norm`` is an array. The loop calls
    ``on_x(iteration, residual_norm)`` likewise, but only when x is formed: not inside a cycle of GMRES.
    """

    def __init__(self, space, stopping, n):
        self.space = space
        self.stopping = stopping
        self.maxiter = stopping.limit(n)
        self.flags = np.zeros((space.columns, len(Flag)), np.int64)
        self.limits = np.zeros((space.columns, len(Limit)))
        self.histories = np.zeros((space.columns, self.maxiter + 1))
        self._stop, self._iteration = self.flags[:, Flag.STOP], self.flags[:, Flag.ITERATION]
        self.cycle, self.slow_cycles = 0, 0         # Flag.CYCLE and Flag.SLOW_CYCLES of the next run
        self.abort = None                        # Reason, if the loop was ended from outside
        self.host_reads = 0

    def begin(self, threshold, scale, window: int, done: int = 0, monitor=None, frozen=(), on_x=None):
        """Reset flags and limits for a new run; ``monitor(iteration, norm)`` and ``on_x``, or None, are kept.

        ``threshold`` is the residual norm of convergence. Growth is measured relative to the norm ``scale``. Both may
        have a number for each right-hand side. ``window`` is the method's default for stagnation. ``done`` iterations
        of earlier runs count against the limit. ``frozen``: the right-hand sides that have converged already.
        """
        flags, limits = self.flags, self.limits
        flags[:] = 0
        flags[:, Flag.MAXITER] = max(self.maxiter - done, 0)
        flags[:, Flag.WINDOW] = self.stopping.window if self.stopping.window is not None else window
        flags[:, Flag.EVERY] = self.stopping.every
        flags[:, Flag.CYCLE], flags[:, Flag.SLOW_CYCLES] = self.cycle, self.slow_cycles
        limits[:, Limit.THRESHOLD2] = _squared(threshold)
        limits[:, Limit.RATIO2] = 1
        limits[:, Limit.GROWTH2] = _squared(self.stopping.growth * scale)
        limits[:, Limit.BEST2] = np.inf
        for j in frozen:
            flags[j, Flag.STOP], flags[j, Flag.FINAL], flags[j, Flag.VERDICT] = 1, 1, Code.CONVERGED
        self.abort = None
        self._monitor, self._on_x = monitor, on_x
        self._done, self._reported, self._shown = done, 0, 0 if done else -1
        self._send()

    def end(self):
        """Bring ``flags`` up to date after a run; operators may then be used outside the loop again.

        The monitor is dropped: it may hold the solve, which holds this loop, and such a circle keeps its memory."""
        self._show()
        self._monitor = self._on_x = None

    @property
    def iterations(self) -> int:
        """Number of iterations judged so far; with several right-hand sides, the largest of them."""
        return int(self._iteration[0] if self._iteration.size == 1 else self._iteration.max())

    @property
    def history(self):
        """The residual norms of the first, or the only, right-hand side."""
        return self.histories[0]

    @property
    def reason(self) -> Reason:
        """Why the loop ended."""
        return self.reason_of(0)

    def iterations_of(self, j) -> int:
        """Number of iterations judged so far for right-hand side j."""
        return int(self._iteration[j])

    def reason_of(self, j) -> Reason:
        """Why the loop ended for right-hand side j."""
        if self.abort is not None and not self._stop[j]:
            return self.abort
        return Reason.of(int(self.flags[j, Flag.VERDICT]))

    @property
    def stopped(self) -> bool:
        """True once the convergence test has stopped every right-hand side, or the user the loop."""
        return self.abort is not None or bool(self._stop[0] and (self._stop.size == 1 or self._stop.all()))

    def interrupt(self):
        """Stop as soon as possible, because of Ctrl-C."""
        self.ask(Reason.INTERRUPTED)

    def ask(self, reason):
        """Stop as soon as possible for ``reason``, a `Reason` from outside; later calls change nothing."""
        self.abort = self.abort or reason

    def report(self, formed=True):
        """Call the monitor for each iteration since the last report; stop the loop if the monitor returns True.

        ``formed``: x is the solution after the last iteration. The last x of a run is shown by `end`: while the judge's
        flags are set, operators do nothing."""
        if self._monitor is not None:
            for k in range(self._reported, self.iterations + 1):
                if self._monitor(self._done + k, self._norms(k)):
                    self.ask(Reason.STOPPED)
            self._reported = self.iterations + 1
        if formed and not self.stopped:
            self._show()

    def _show(self):
        """Call ``on_x`` with the last iteration, unless that was done; stop the loop if it returns True."""
        k = self.iterations
        if self._on_x is not None and k > self._shown:
            self._shown = k
            if self._on_x(self._done + k, self._norms(k)):
                self.ask(Reason.STOPPED)

    def _norms(self, k):
        """The residual norm after iteration k; an array with several right-hand sides, with the last of one that has
        stopped."""
        if self._iteration.size == 1:
            return float(self.histories[0, k])
        return np.array([history[min(k, last)] for history, last in zip(self.histories, self._iteration)])


class DirectLoop(Loop):
    """The driver of the CPU, which calls the body from Python.

    Attributes
    ----------
    states : list of (flags, limits, history)
        What the judge's kernels take, for each right-hand side.
    """

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        self.states = list(zip(self.flags, self.limits, self.histories))

    def _send(self):
        self.space.local.flags = self.flags      # kernels write to the record directly

    def end(self):
        self.space.local.flags = None
        super().end()

    def kernels(self, package, stem, dtype):
        """The kernels of the file ``stem`` in ``package``, for vectors of ``dtype``, bound to this loop's state."""
        return self.space.kernels(package, stem, dtype, self.states)

    def block_kernels(self, package, stem, dtype):
        """The kernels of a block method, which take the states of all right-hand sides together."""
        return self.space.block_kernels(package, stem, dtype, (self.flags, self.limits, self.histories))

    def halted(self, formed=True) -> bool:
        """True if a method should skip the remaining steps of its cycle; calls the monitor for new iterations first.

        ``formed``: x is the solution after the last iteration."""
        self.report(formed)
        return self.stopped

    def run(self, body, capturable=True, steps=1):
        """Repeat ``body``, a function without arguments, until the loop has stopped.

        ``capturable`` and ``steps`` matter on a GPU only."""
        silent = self._monitor is None and self._on_x is None
        with interruptible(self.interrupt):
            self.report()
            while not self.stopped:
                body()
                if not silent:
                    self.report()
