"""How long compiling took: kernels are compiled where they are first used; setup and solve shall not count that."""
from __future__ import annotations

import functools
import time
from contextlib import contextmanager

_spent = [0.0]          # seconds, in this process
_depth = [0]            # compiling one function compiles those that it calls


def spent() -> float:
    """Seconds that compiling has taken in this process so far."""
    return _spent[0]


@contextmanager
def counted():
    """What runs within this block is compilation."""
    _depth[0] += 1
    start = time.perf_counter()
    try:
        yield
    finally:
        _depth[0] -= 1
        if not _depth[0]:
            _spent[0] += time.perf_counter() - start


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
            block = counted()
            block.__enter__()
            open_blocks.append(block)

        def on_end(self, event):
            open_blocks.pop().__exit__(None, None, None)

    open_blocks = []
    event.register("numba:compile", Listener())
