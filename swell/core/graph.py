"""The loop driver of a GPU: the body is captured in a CUDA graph, some iterations at a time, and replayed.

The host launches one graph ahead of the one that runs, and between the two looks at the judge's record in mapped
host memory: it never waits for a value from the device, and the device never waits for the host. Kernels become no-ops
once the judge has spoken, and surplus graph launches cost only their launch overhead.

An operator that cannot be captured (a user's function, a direct solver) makes the driver call the body eagerly; then
each iteration ends with a synchronisation, and these are counted as host reads.
"""
from __future__ import annotations

import numpy as np

from swell.core.loop import Loop, interruptible
from swell.core.slots import COLUMNS, Flag

# A graph has some iterations: long enough to hide its launch, some 10 µs of the host, and short enough to stop in time.
# One graph is launched ahead of the one that runs, and both run to their end. The time of an iteration is estimated, so
# that every run has the same graphs: a kernel takes two microseconds, and longer by what it moves of each row.
STEPS_PER_LAUNCH = 16
MICROSECONDS_PER_LAUNCH = 120
MICROSECONDS_PER_KERNEL = 2.0
MICROSECONDS_PER_ROW = 6e-6     # 24 bytes at 4 TB/s


class GraphLoop(Loop):
    """Captures and replays. One loop serves one bound iteration."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        cupy, self._rows = space.xp, n
        size = (self.maxiter + 1) * COLUMNS
        self._mapped = cupy.cuda.alloc_pinned_memory(8 * (1 + size))     # host memory that the device writes to
        self._word = np.frombuffer(self._mapped, np.int64, 1)
        self.history = np.frombuffer(self._mapped, np.float64, size, 8)[::COLUMNS]
        self.history[:] = 0
        self._graph = None
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]

    def _send(self):
        host = self.space.host_context[0]
        host["flags"], host["limits"] = self.flags, self.limits
        host["mirror"], host["history"] = self._mapped.ptr, self._mapped.ptr + 8
        self._word[0] = 0
        self.space.send_context()

    def report(self):
        """Read the judge's word, then hand on the new iterations."""
        word = self._said()
        flags = self.flags
        flags[Flag.STOP], flags[Flag.VERDICT], flags[Flag.ITERATION] = word & 255, word >> 8 & 255, word >> 16
        super().report()

    def _said(self) -> int:
        """The judge's word."""
        return int(self._word[0])

    def end(self):
        self.space.stream.synchronize()
        self.report()
        self.space.host_context[0]["flags"] = 0
        self.space.send_context()

    def kernels(self, package, stem, dtype):
        """The kernels of ``package`` called ``stem``; the device's context is their state."""
        return self.space.kernels(package, stem, dtype)

    def halted(self) -> bool:
        """While capturing nothing is left out: stopped kernels do nothing. Eagerly, ask the record."""
        if self._capturing:
            return False
        self._wait()
        self.report()
        return self.stopped

    def _wait(self):
        self.space.stream.synchronize()
        self.host_reads += 1  # sync

    def run(self, body, capturable=True, steps=1):
        """Repeat ``body``, which does ``steps`` iterations, until the judge has spoken."""
        self._capturing = capturable
        with interruptible(self.interrupt):
            if capturable:
                self._replay(body, max(1, STEPS_PER_LAUNCH // steps))
            else:
                self._call(body)

    def _call(self, body):
        self._wait()
        self.report()
        while not self.stopped:
            body()
            self._wait()
            self.report()

    def _replay(self, body, bodies):
        stream = self.space.stream
        if self._graph is None:
            stream.begin_capture()
            self._repeat(body, bodies)
            self._graph = stream.end_capture()
        self._launch(0)
        ahead = 0
        while True:
            ahead = 1 - ahead
            self._launch(ahead)
            self._events[1 - ahead].synchronize()        # an event, not a value: the next graph is already running
            self._look(1 - ahead)
            if self.stopped:
                return

    def _repeat(self, body, most):
        """Call the body until a graph is long enough, ``most`` times at most."""
        begin, each = self.space.launches, MICROSECONDS_PER_KERNEL + MICROSECONDS_PER_ROW * self._rows
        for _ in range(most):
            body()
            if (self.space.launches - begin) * each >= MICROSECONDS_PER_LAUNCH:
                return

    def _launch(self, k):
        """Queue the graph, and behind it event k."""
        self._graph.launch(self.space.stream)
        self._events[k].record(self.space.stream)

    def _look(self, k):
        """Take notice of what the judge has said, event k being past."""
        self.report()
