"""DeviceCommunicator: the base of communicators between GPUs, by NCCL (nccl.py) or by peer access (peer.py).

Graphs must be freed before the resources that they use, and these before MPI ends. A captured NCCL message that
outlives NCCL hangs the process at its end.
"""
from __future__ import annotations

import atexit
import weakref

from swell.distributed.communicator import Broken, Communicator


class DeviceCommunicator(Communicator):
    """Ranks with a GPU each. Objects (setups) go through the host communicator; numbers are sent by work queued on the
    GPUs, which a graph can capture.

    Parameters
    ----------
    host : Communicator
        The communicator that the ranks were started with.
    space : CudaSpace
        The space of this rank's GPU.
    """

    def __init__(self, host, space):
        super().__init__(host.rank, host.size, host.local_rank, host.local_size)
        self.host, self.space, self._loops = host, space, weakref.WeakSet()
        self._broken = self._closed = False
        host.at_failure(self.abort_work)
        atexit.register(self.close)

    def _gather_objects(self, value):
        return self.host._gather_objects(value)

    def _exchange_objects(self, parts):
        return self.host._exchange_objects(parts)

    def _tell(self, error):
        self.host._tell(error)

    def abort(self):
        self.host.abort()

    def give_up(self, error):
        self.host.give_up(error)

    def require_open(self):
        """Raise Broken if this communicator is closed or another rank has failed."""
        if self._broken:
            raise Broken("another rank failed, or the communicator is closed")

    def wait_among_threads(self):
        """Wait for all messages, if the ranks are threads of one process and no graph is being captured.

        A thread that loads a kernel holds a lock until its own GPU is idle. A pending message there may wait for a rank
        that waits for this lock: a deadlock. So no message stays pending where kernels may be loaded."""
        stream = self.space.xp.cuda.get_current_stream()
        if self.host.threads and not stream.is_capturing():
            self._wait()
            stream.synchronize()

    def _wait(self):
        """Wait for the messages on streams other than the space's own; here there are none."""

    def holds_graphs(self, loop):
        self._loops.add(loop)

    def close(self):
        """Free the captured CUDA graphs, then the resources for sending that they use. After a failure only the graphs
        are freed, since ``abort_work`` has ended the rest. Later sends raise Broken. (CUDA frees a running graph once
        it has ended.)"""
        if self._closed:
            return
        self._closed = True
        with self.space.active():
            if not self._broken:
                self._wait()
            for loop in self._loops:
                loop.free()
            if not self._broken:
                self._broken = True
                self._free()
        atexit.unregister(self.close)

    def _free(self):
        """Free the resources for sending; here there are none."""

    def abort_work(self):
        """Mark this communicator as broken; subclasses also end the GPU work that waits for a failed rank. Called from
        another thread."""
        self._broken = True
