"""How long a call takes on a device, for choices made by measurement: few calls, no arrays beside those of the call."""
from __future__ import annotations

import time

REPLAYS = 3


def seconds(space, call, count: int) -> float:
    """The least time of a call: other work on the machine only ever adds to it.

    On a GPU ``count`` calls are captured in a graph, as methods run them, and the graph is replayed ``REPLAYS`` times;
    on a CPU each of ``count`` calls is timed. One call before them warms up.

    Parameters
    ----------
    space : Space
        Active.
    call : callable
        Without arguments; on a GPU it launches the same work every time and allocates nothing.
    count : int
        At least 1.
    """
    return min(times(space, call, count))


def times(space, call, count: int, replays: int = REPLAYS) -> list[float]:
    """All that ``seconds`` takes the least of: the mean of each replay on a GPU, every call on a CPU."""
    call()
    space.synchronize()
    return list(_wall(call, count) if space.name == "cpu" else _replayed(space, call, count, replays))


def _wall(call, count):
    for _ in range(count):
        start = time.perf_counter()
        call()
        yield time.perf_counter() - start


def _replayed(space, call, count, replays):
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
