"""NCCL between GPUs, one for each rank: reductions in place and messages straight from memory to memory.

What ranks say to one another in setups still goes by the communicator that they were started with. NCCL's work is
queued like a kernel, so that it can be captured in a graph: reductions on the space's own stream, messages on another
one, so that the product of the diagonal block runs meanwhile. A sum has the same bits on every rank, since each part of
it is added up once and then sent to all.

Graphs must be gone before the communicator, and that before MPI ends: a captured message that outlives them hangs the
process at its end.
"""
from __future__ import annotations

import atexit
import weakref

import numpy as np

from swell.core.errors import MissingDependency
from swell.distributed.communicator import Broken, Communicator, Exchange


def require_nccl():
    """CuPy's module of NCCL, if the library is there: CuPy does not bring it.

    Raises
    ------
    MissingDependency
    """
    from cupy.cuda import nccl
    if not nccl.available:
        raise MissingDependency("GPUs speak to one another by NCCL, which CuPy does not find: pip install "
                                "'swell[cuda13]' (or 'swell[cuda12]' for an older driver), or use one GPU, "
                                "device='cuda' without mpiexec")
    return nccl


class NCCLCommunicator(Communicator):
    """The GPUs of the ranks of another communicator.

    Parameters
    ----------
    host : Communicator
    space : CudaSpace
        Of this rank's GPU.
    """

    def __init__(self, host, space):
        nccl = require_nccl()
        super().__init__(host.rank, host.size)
        self.host, self.space, self._nccl, self._loops = host, space, nccl, weakref.WeakSet()
        self.local_rank, self.local_size = host.local_rank, host.local_size
        name = host.allgather(nccl.get_unique_id() if host.rank == 0 else None)[0]
        with space.active():
            self.beside = space.xp.cuda.Stream(non_blocking=True)        # where messages are under way
            self._own = nccl.NcclCommunicator(host.size, name, host.rank)
            NCCLCommunicator.allreduce(self, space.xp.zeros(1))          # connects, which must not be captured
        host.at_failure(self.abort_work)
        atexit.register(self.close)

    def _gather_objects(self, value):
        return self.host._gather_objects(value)

    def _exchange_objects(self, parts):
        return self.host._exchange_objects(parts)

    def abort(self):
        self.host.abort()

    def allreduce(self, numbers):
        """Add up the numbers (a contiguous array of the GPU) of all ranks, in place and in the stream's order."""
        self.reductions += 1
        if self.size > 1:
            at, count, kind = self._described(numbers)
            self._open().allReduce(at, at, count, kind, self._nccl.NCCL_SUM, self.space.current_stream())
            self._wait_among_threads()

    def exchange(self, outgoing, incoming):
        return NCCLExchange(self, outgoing, incoming)

    def post(self, outgoing, incoming):
        """Queue messages on the stream beside."""
        own = self._open()
        self._nccl.groupStart()
        for rank, array in outgoing:
            own.send(*self._described(array), rank, self.beside.ptr)
        for rank, array in incoming:
            own.recv(*self._described(array), rank, self.beside.ptr)
        self._nccl.groupEnd()
        self._wait_among_threads()

    def _wait_among_threads(self):
        """Where ranks are threads of one process, whoever loads a kernel holds a lock until its own GPU has nothing to
        do; with a message under way there, which waits for a rank that waits for the lock, that is never. So outside of
        graphs, where kernels are loaded, everything sent is waited for."""
        stream = self.space.xp.cuda.get_current_stream()
        if self.host.threads and not stream.is_capturing():
            self.beside.synchronize()
            stream.synchronize()

    def _open(self):
        own = self._own
        if own is None:
            raise Broken("another rank failed, or the communicator is closed")
        return own

    def _described(self, array):
        """(address, count, type) of an array's real numbers."""
        parts = 2 if array.dtype.kind == "c" else 1
        single = array.dtype.itemsize // parts == np.dtype(np.float32).itemsize
        return array.data.ptr, parts * array.size, self._nccl.NCCL_FLOAT32 if single else self._nccl.NCCL_FLOAT64

    # -- the end ---------------------------------------------------------------------------------------------------

    def holds_graphs(self, loop):
        """A loop whose graphs must be freed before this communicator."""
        self._loops.add(loop)

    def close(self):
        """Free the graphs, then the communicator; nothing can be sent any more."""
        if self._own is None:
            return
        with self.space.active():
            self.beside.synchronize()
            for loop in self._loops:
                loop.free()
            own, self._own = self._own, None
            own.destroy()
        atexit.unregister(self.close)

    def abort_work(self):
        """End what waits for a rank that has failed, from another thread."""
        if self._own is not None:
            own, self._own = self._own, None
            own.abort()


class NCCLExchange(Exchange):
    """Messages between GPU memories, on the stream beside."""

    def __init__(self, communicator, outgoing, incoming):
        event = communicator.space.xp.cuda.Event
        self.communicator, self.outgoing, self.incoming = communicator, outgoing, incoming
        self._packed, self._arrived = event(disable_timing=True), event(disable_timing=True)
        self.start()                             # connects
        self.finish()

    def start(self):
        communicator = self.communicator
        if not (self.outgoing or self.incoming):
            return
        stream = communicator.space.xp.cuda.get_current_stream()
        communicator.beside.wait_event(self._after(self._packed, stream))
        communicator.post(self.outgoing, self.incoming)
        self._after(self._arrived, communicator.beside)

    def finish(self):
        if self.outgoing or self.incoming:
            self.communicator.space.xp.cuda.get_current_stream().wait_event(self._arrived)

    @staticmethod
    def _after(event, stream):
        """The event, recorded where the stream is now."""
        event.record(stream)
        return event
