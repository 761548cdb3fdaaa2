"""The loop driver of a GPU: it captures several iterations of the body in a CUDA graph, and replays the graph.

The host launches one graph ahead of the running one. In between it reads the judge's record from mapped host memory. It
never waits for a value from the device, and the device never waits for the host. Once the judge has stopped the
loop, kernels become no-ops: surplus graph launches cost only their launch overhead.

A long graph, such as a cycle of GMRES, has hundreds of kernels, and as a surplus it costs more than some waits. So a
solve waits for each of its first ``PATIENCE`` graphs if they are long, and launches ahead from then on.

If an operator cannot be captured (a user's function, a direct solver), the driver calls the body eagerly. Each
iteration then ends with a synchronisation, which is counted as a host read.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.loop import Loop, interruptible
from swell.core.slots import Flag

# A graph must be long enough to hide its launch, some 10 µs of the host. It must be short enough to stop in time: the
# running graph and the one behind it both run to their end. The time of an iteration is estimated, not measured, so
# that every run has the same graphs. A kernel takes two microseconds, plus the time to move the data of each row.
STEPS_PER_LAUNCH = 16
MICROSECONDS_PER_LAUNCH = 120
MICROSECONDS_PER_KERNEL = 2.0
MICROSECONDS_PER_ROW = 6e-6     # 24 bytes at 4 TB/s
LONG_GRAPH = 500                # microseconds; a wait for a graph and the next launch take some 30
PATIENCE = 8                    # waits that cost as much as a surplus graph


class GraphLoop(Loop):
    """The loop that captures and replays the body of one bound iteration."""

    def __init__(self, space, stopping, n):
        super().__init__(space, stopping, n)
        cupy, self._rows = space.xp, n
        count, size = self.histories.shape
        self._mapped = cupy.cuda.alloc_pinned_memory(8 * count * (1 + size))     # host memory that the device writes to
        self._words = np.frombuffer(self._mapped, np.int64, count)
        self.histories = np.frombuffer(self._mapped, np.float64, count * size, 8 * count).reshape(count, size)
        self.histories[:] = 0
        self._graph = None
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]

    def _send(self):
        """Copy flags, limits, and the addresses of the mapped host memory to the device."""
        host, (count, size) = self.space.host_context, self.histories.shape
        host["flags"], host["limits"] = self.flags, self.limits
        host["mirror"] = self._mapped.ptr + 8 * np.arange(count)
        host["history"] = self._mapped.ptr + 8 * (count + size * np.arange(count))
        self._words[:] = self._word_of(self.flags)
        self.space.send_context()

    def report(self, formed=True):
        """Unpack the device's words (stop, verdict, iteration) into ``flags``; call the monitor for new iterations."""
        words, flags = self._said(), self.flags
        flags[:, Flag.STOP], flags[:, Flag.VERDICT] = words & 255, words >> 8 & 255
        flags[:, Flag.ITERATION] = words >> 16
        super().report(formed)

    def _said(self):
        """A copy of the last words that the device wrote to mapped host memory, one for each right-hand side: stop,
        verdict and iteration in one integer."""
        return self._words.copy()

    @staticmethod
    def _word_of(flags):
        """The words that the device would write for these flags."""
        return flags[:, Flag.ITERATION] << 16 | flags[:, Flag.VERDICT] << 8 | flags[:, Flag.STOP]

    def end(self):
        self.space.stream.synchronize()
        self.report(formed=False)
        self.space.host_context["flags"] = 0
        self.space.send_context()
        super().end()

    def kernels(self, package, stem, dtype):
        """The kernels of the file ``stem`` in ``package``, for ``dtype``; their state lies in the device's context."""
        return self.space.kernels(package, stem, dtype)

    block_kernels = kernels      # a block method's kernels find the contexts of all right-hand sides behind the first

    def halted(self, formed=True) -> bool:
        """True if a method can skip the rest of a cycle. False while capturing: stopped kernels are no-ops.

        Outside of a capture it waits for the device and reads the flags."""
        if self._capturing:
            return False
        self._wait()
        self.report(formed)
        return self.stopped

    def _wait(self):
        """Wait for the stream, and add 1 to ``host_reads``."""
        self.space.stream.synchronize()
        self.host_reads += 1  # sync

    def run(self, body, capturable=True, steps=1):
        """Repeat ``body``, a function without arguments that does ``steps`` iterations, until the loop has stopped.

        ``capturable``: replay it as a CUDA graph; False, or if x is to be shown: call it, and wait after each call."""
        capturable = capturable and self._on_x is None
        self._capturing = capturable
        with interruptible(self.interrupt):
            if capturable:
                self._replay(body, max(1, STEPS_PER_LAUNCH // steps))
            else:
                self._call(body)

    def _call(self, body):
        """Call ``body`` without a graph, and wait after each call, until the loop has stopped."""
        self._wait()
        self.report()
        while not self.stopped:
            body()
            self._wait()
            self.report()

    def _replay(self, body, bodies):
        """Capture at most ``bodies`` calls of ``body`` in a graph, once, and replay it until the loop has stopped."""
        stream = self.space.stream
        if self._graph is None:
            stream.begin_capture()
            self._repeat(body, bodies)
            self._graph = stream.end_capture()
        self._launch(0)
        k, waits = 0, PATIENCE if self._long else 0
        while True:
            if not waits:
                self._launch(1 - k)
            self._events[k].synchronize()        # an event, not a value of the device
            self._look(k)
            if self.stopped:
                return
            k = 1 - k
            if waits:
                waits -= 1
                self._launch(k)

    def _repeat(self, body, most):
        """Call ``body`` until the graph being captured takes long enough to hide its launch, at most ``most`` times."""
        before = self.space.launches
        body()
        each = self._microseconds(self.space.launches - before)
        bodies = min(most, math.ceil(MICROSECONDS_PER_LAUNCH / each)) if each else most
        for _ in range(bodies - 1):
            body()
        self._long = bodies * each >= LONG_GRAPH

    def _microseconds(self, launches):
        """The estimated time of ``launches`` kernels."""
        return launches * (MICROSECONDS_PER_KERNEL + MICROSECONDS_PER_ROW * self._rows)

    def _launch(self, k):
        """Queue the graph on the stream, and then record event number k, 0 or 1."""
        self._graph.launch(self.space.stream)
        self._events[k].record(self.space.stream)

    def _look(self, k):
        """Read the flags after event k has occurred, and call the monitor."""
        self.report()
