"""The loop driver of ranks on GPUs: every rank launches the same number of graphs.

A graph holds messages and reductions, which wait for the other ranks even after the judge's verdict. So a rank must not
read the judge's live word: a rank that reads it later may see more. The record is copied after every graph instead;
these copies are equal on all ranks.
"""
from __future__ import annotations

import numpy as np

from swell.core.cuda import CONTEXT
from swell.core.graph import GraphLoop
from swell.distributed.loop import Agreement, guarded_monitor


class DistributedGraphLoop(GraphLoop):
    """Captures an iteration in a graph and replays it equally often on all ranks."""

    def __init__(self, space, stopping, n):
        super().__init__(space.local, stopping, n)
        self._ranks, self._agreement = space.ranks, Agreement(space.ranks)
        count = space.columns
        self._behind = space.xp.cuda.alloc_pinned_memory(2 * count * CONTEXT.itemsize)
        self._copies = np.frombuffer(self._behind, CONTEXT, 2 * count).reshape(2, count)
        self._agreed = None                      # microseconds of a body; None: the ranks have not agreed yet
        self._past = None                        # the graph whose copied flags are read; None: no graph is pending
        space.ranks.communicator.holds_graphs(self)

    def begin(self, threshold, scale, window, done=0, monitor=None, frozen=(), on_x=None):
        super().begin(threshold, scale, window, done, guarded_monitor(monitor, self._ranks), frozen, on_x)

    def ask(self, reason):
        self._agreement.ask(reason)

    def run(self, body, capturable=True, steps=1):
        self._agreement.forget()
        super().run(body, capturable, steps)
        if self._ranks.failure is not None:      # the failure may have occurred during the capture
            self.free()

    def _microseconds(self, launches):
        """The largest estimate of a rank, so that the graphs of all ranks hold equally many bodies. The ranks agree
        once: a graph captured anew keeps the number, since one rank may have to capture alone."""
        if self._agreed is None:
            self._agreed = self._ranks.max(super()._microseconds(launches))
        return self._agreed

    def free(self):
        """Free the graph; the next run captures a new one."""
        self._graph = None

    def report(self, formed=True):
        super().report(formed)
        self.abort = self.abort or self._agreement.reached()

    def _launch(self, k):
        stream, context = self.space.stream, self.space.context
        self._graph.launch(stream)
        context.data.copy_to_host_async(self._copies[k].ctypes.data, self._copies[k].nbytes, stream)
        self._events[k].record(stream)

    def _look(self, k):
        self._past = k
        self.report()
        self._past = None

    def _said(self):
        if self._past is None:
            return super()._said()
        return self._word_of(self._copies[self._past]["flags"])
