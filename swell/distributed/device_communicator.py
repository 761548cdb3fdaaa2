"""DeviceCommunicator: what communicators of ranks with a GPU each have in common, NCCL's (nccl.py) and that of GPUs
which reach one another's memory (peer.py).

Graphs must be gone before what they use, and that before MPI ends: a message captured by NCCL that outlives it hangs
the process at its end.
"""
from __future__ import annotations

import atexit
import weakref

from swell.distributed.communicator import Broken, Communicator


class DeviceCommunicator(Communicator):
    """Ranks with a GPU each. What they say in setups goes by the communicator that they were started with; what they
    send of numbers is queued on the GPUs like kernels, so that a graph can capture it.

    Parameters
    ----------
    host : Communicator
    space : CudaSpace
        Of this rank's GPU.
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
        """Raise Broken where nothing can be sent any more."""
        if self._broken:
            raise Broken("another rank failed, or the communicator is closed")

    def wait_among_threads(self):
        """Where ranks are threads of one process, whoever loads a kernel holds a lock until its own GPU has nothing to
        do; with a message under way there, which waits for a rank that waits for the lock, that is never. So outside of
        graphs, where kernels are loaded, everything sent is waited for."""
        stream = self.space.xp.cuda.get_current_stream()
        if self.host.threads and not stream.is_capturing():
            self._wait()
            stream.synchronize()

    def _wait(self):
        """Wait for what is not on the space's own stream."""

    def holds_graphs(self, loop):
        self._loops.add(loop)

    def close(self):
        """Free the graphs, then what they use, unless a failure has ended that; nothing can be sent any more. (CUDA
        frees a graph that is under way when it is done.)"""
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
        """Give back what was used to send."""

    def abort_work(self):
        """End what waits for a rank that has failed; called by another thread."""
        self._broken = True
