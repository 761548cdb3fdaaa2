"""Kernels are compiled where they are first used: how long that takes, apart from setup and solve, and the line on
stderr that says so while it takes long."""
from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
from contextlib import contextmanager

from swell.core import caches

LONG = 1.0              # seconds of compiling for one purpose, after which a line says so


class _Clock:
    """Seconds in which any thread of this process was compiling.

    Python's collector of cycles rests meanwhile: among the very many small objects of a compiler it takes a tenth of
    the time, and finds little.
    """

    def __init__(self):
        self._lock, self._open, self._before, self.blocks = threading.Lock(), 0, 0.0, 0
        self._purpose, self._since, self._told = "", 0.0, set()
        self.quiet = bool(os.environ.get("SWELL_QUIET"))

    @property
    def spent(self):
        """Seconds until now."""
        return self._before + (time.perf_counter() - self._start if self._open else 0.0)

    def begin(self, folder):
        """A block begins, in any thread; ``folder`` says where its kernels are kept."""
        with self._lock:
            self._open += 1
            self.blocks += 1
            if self._open > 1:
                return
            self._start, self._collects = time.perf_counter(), gc.isenabled()
            gc.disable()
            self._timer = None
            if not self.quiet and self._purpose not in self._told:
                self._timer = threading.Timer(max(LONG - (self._before - self._since), 0), self._tell, [folder])
                self._timer.daemon = True
                self._timer.start()

    def end(self):
        """A block ends."""
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
        """What follows is compiled for this. The line of a purpose without a name holds for the first with one, too."""
        with self._lock:
            if self._told == {""}:
                self._told.add(purpose)
            if purpose != self._purpose:
                self._purpose, self._since = purpose, self.spent

    def _tell(self, folder):
        with self._lock:
            if self.quiet or not self._open or self._purpose in self._told:
                return
            self._told.add(self._purpose)
            purpose = f" for {self._purpose}" if self._purpose else ""
        print(f"swell: compiling kernels{purpose} (once; kept in {folder()})…", file=sys.stderr, flush=True)


_clock = _Clock()


def spent() -> float:
    """Seconds that compiling has taken in this process so far."""
    return _clock.spent


def compilations() -> int:
    """Functions that were compiled in this process so far, those that others call among them."""
    return _clock.blocks


def quiet(quiet: bool = True):
    """Print no line while kernels are compiled; ``quiet(False)`` prints it again.

    The environment variable ``SWELL_QUIET=1`` does the same from the beginning.
    """
    _clock.quiet = bool(quiet)


def compiling_for(purpose: str):
    """Name the configuration that kernels are compiled for from now on."""
    _clock.serve(purpose)


@contextmanager
def counted(folder=caches.of_numba):
    """What runs within this block is compilation; ``folder()`` says where its kernels are kept."""
    _clock.begin(folder)
    try:
        yield
    finally:
        _clock.end()


class Stopwatch:
    """Runs from when it is made.

    Attributes
    ----------
    compiled, seconds : float
        What went into compiling, and the rest.
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
    """Add the seconds of this block, compiling left out, to ``timings[part]``; the space's work is waited for."""
    watch = Stopwatch()
    yield
    space.synchronize()
    timings[part] = timings.get(part, 0.0) + watch.seconds


@functools.cache
def count_numba():
    """From now on, count what Numba compiles; what it loads from its cache is not compiled."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event):
            _clock.begin(caches.of_numba)

        def on_end(self, event):
            _clock.end()

    event.register("numba:compile", Listener())
