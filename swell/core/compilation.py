"""Measure the compilation of kernels, which happens at their first use, apart from setup and solve. If it takes long,
tell the user."""
from __future__ import annotations

import gc
import logging
import os
import threading
import time
from contextlib import contextmanager

from swell.core.caches import of_cupy
from swell.core.log import tell

LONG = 1.0              # seconds of compiling for one purpose, after which the line is printed


class _Clock:
    """Counts the seconds in which at least one thread of this process was compiling.

    Python's garbage collector is off meanwhile: a compiler has very many small objects, so the collector takes a tenth
    of the time and finds little.
    """

    def __init__(self):
        self._lock, self._open, self._before = threading.Lock(), 0, 0.0
        self._purpose, self._since, self._announced = "", 0.0, set()
        self.quiet = bool(os.environ.get("SWELL_QUIET"))

    @property
    def spent(self):
        """Seconds of compiling so far."""
        return self._before + (time.perf_counter() - self._start if self._open else 0.0)

    def begin(self):
        """Start the clock, unless another thread's compilation runs it already; switch off garbage collection."""
        with self._lock:
            self._open += 1
            if self._open > 1:
                return
            self._start, self._collects = time.perf_counter(), gc.isenabled()
            gc.disable()
            self._timer = None
            if not self.quiet and self._purpose not in self._announced:
                self._timer = threading.Timer(max(LONG - (self._before - self._since), 0), self._announce)
                self._timer.daemon = True
                self._timer.start()

    def end(self):
        """Stop the clock when the last running compilation ends; switch garbage collection on again if it was on."""
        with self._lock:
            self._open -= 1
            if self._open:
                return
            self._before += time.perf_counter() - self._start
            if self._collects:
                gc.enable()
            if self._timer is not None:
                self._timer.cancel()

    def serve(self, purpose):
        """Set ``purpose``, the configuration as text, that the compilations from now on are for.

        At most one line is printed for each; a line printed before any purpose was set counts for the first one."""
        with self._lock:
            if self._announced == {""}:
                self._announced.add(purpose)
            if purpose != self._purpose:
                self._purpose, self._since = purpose, self.spent

    def _announce(self):
        with self._lock:
            if self.quiet or not self._open or self._purpose in self._announced:
                return
            self._announced.add(self._purpose)
            purpose = f" for {self._purpose}" if self._purpose else ""
        tell(logging.INFO, f"compiling kernels{purpose} (once; kept in {of_cupy()})…")


_clock = _Clock()


def spent() -> float:
    """Seconds of compiling in this process so far."""
    return _clock.spent


def quiet(quiet: bool = True) -> None:
    """Suppress the line told while kernels are compiled; ``quiet(False)`` tells it again.

    The line goes to stderr; or, if the program listens to INFO of the logger "swell", there. The environment variable
    ``SWELL_QUIET=1`` suppresses it from the start."""
    _clock.quiet = bool(quiet)


def compiling_for(purpose: str):
    """Set ``purpose``, the configuration as text, for which kernels are compiled from now on.

    At most one line is printed for each purpose."""
    _clock.serve(purpose)


@contextmanager
def counted():
    """Return a context that counts the time of its block as compilation."""
    _clock.begin()
    try:
        yield
    finally:
        _clock.end()


class Stopwatch:
    """A stopwatch that starts when it is made, and separates compiling from other work.

    Attributes
    ----------
    compiled, seconds : float
        Seconds of compiling so far, and all other seconds.
    """

    def __init__(self):
        self._start, self._before = time.perf_counter(), spent()

    @property
    def compiled(self):
        return spent() - self._before

    @property
    def seconds(self):
        return time.perf_counter() - self._start - self.compiled


@contextmanager
def timed(timings: dict, part: str, space):
    """Return a context that adds its block's seconds, without compilation, to ``timings[part]``, a dict's entry.

    At its end it waits for the work of ``space``."""
    watch = Stopwatch()
    yield
    space.synchronize()
    timings[part] = timings.get(part, 0.0) + watch.seconds
