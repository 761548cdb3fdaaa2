"""Time measurements on a device, for choices between implementations: few calls, and no extra arrays."""
from __future__ import annotations

import time

REPLAYS = 3


def seconds(space, call, count: int) -> float:
    """Measure the time of a call in seconds: the minimum, since other work on the machine can only add to it.

    On a CPU each of ``count`` calls is timed. On a GPU ``count`` calls are captured in a graph, as methods run them,
    and the graph is replayed ``REPLAYS`` times. One call before them warms up.

    Parameters
    ----------
    space : Space
        Must be active.
    call : callable
        Takes no arguments. On a GPU it must launch the same work every time and allocate nothing.
    count : int
        At least 1.
    """
    return min(times(space, call, count))


def times(space, call, count: int, replays: int = REPLAYS) -> list[float]:
    """Every measured time of a call in seconds, of which ``seconds`` returns the minimum.

    Arguments as in `seconds`. On a GPU these are the mean times of a call in each of ``replays`` replays of a graph;
    on a CPU the times of all calls.
    """
    call()
    space.synchronize()
    return list(_wall(call, count) if space.name == "cpu" else _replayed(space, call, count, replays))


def _wall(call, count):
    """Yield the seconds of each of ``count`` calls of ``call``, on a CPU."""
    for _ in range(count):
        start = time.perf_counter()
        call()
        yield time.perf_counter() - start


def _replayed(space, call, count, replays):
    """Yield the mean seconds of a call in each of ``replays`` replays of a graph of ``count`` calls, on a GPU."""
    cupy, stream = space.xp, space.stream
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    stream.begin_capture()
    for _ in range(count):
        call()
    graph = stream.end_capture()
    for _ in range(replays):
        begin.record(stream)
        graph.launch(stream)
        end.record(stream)
        end.synchronize()
        yield 1e-3 * cupy.cuda.get_elapsed_time(begin, end) / count
