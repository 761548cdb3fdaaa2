"""NCCL between GPUs, one for each rank: in-place reductions, and messages from GPU memory to GPU memory.

Reductions run on the space's own stream. Messages run on a second stream, in parallel with the product of the diagonal
block. A sum has the same bits on every rank, since each part of it is added up once and then sent to all. If GPUs reach
one another's memory, `peer.py` is faster.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import MissingDependency
from swell.distributed.communicator import Exchange, parts
from swell.distributed.device_communicator import DeviceCommunicator


def require_nccl():
    """Return CuPy's NCCL module if the NCCL library is installed; CuPy does not install it.

    Raises
    ------
    MissingDependency
    """
    from cupy.cuda import nccl
    if not nccl.available:
        raise MissingDependency("messages between GPUs need NCCL, which CuPy does not find: pip install "
                                "'swell[cuda13]' (or 'swell[cuda12]' for an older driver), or use one GPU, "
                                "device='cuda' without mpiexec")
    return nccl


class NCCLCommunicator(DeviceCommunicator):
    """Communication by NCCL between the GPUs of the ranks of ``host``."""

    def __init__(self, host, space):
        self._nccl = nccl = require_nccl()
        name = host.allgather(nccl.get_unique_id() if host.rank == 0 else None)[0]
        with space.active():
            self.beside = space.xp.cuda.Stream(non_blocking=True)        # the stream for messages
            self._own = nccl.NcclCommunicator(host.size, name, host.rank)
        super().__init__(host, space)
        with space.active():
            self.allreduce(space.xp.zeros(1))    # NCCL connects at the first call, which a graph must not capture

    def allreduce(self, numbers):
        """Sum ``numbers`` (a contiguous array of the GPU) elementwise over all ranks, in place and in stream order."""
        self.reductions += 1
        if self.size > 1:
            self.require_open()
            at, count, kind = self._described(numbers)
            self._own.allReduce(at, at, count, kind, self._nccl.NCCL_SUM, self.space.current_stream())
            self.wait_among_threads()

    def allreduce_columns(self, numbers, space):
        self.reductions += 1
        if self.size > 1:
            self.require_open()
            stream = self.space.current_stream()
            self._nccl.groupStart()              # one kernel for all columns
            for column in numbers.array:
                at, count, kind = self._described(column)
                self._own.allReduce(at, at, count, kind, self._nccl.NCCL_SUM, stream)
            self._nccl.groupEnd()
            self.wait_among_threads()

    def exchange(self, space, outgoing, sent, incoming, received):
        return NCCLExchange(self, outgoing, sent, incoming, received)

    def post(self, outgoing, incoming):
        """Queue messages on the stream for messages, all of them in one kernel. ``outgoing``, ``incoming``: lists of
        (rank, contiguous array) to send and to receive."""
        self.require_open()
        self._nccl.groupStart()
        for rank, array in outgoing:
            self._own.send(*self._described(array), rank, self.beside.ptr)
        for rank, array in incoming:
            self._own.recv(*self._described(array), rank, self.beside.ptr)
        self._nccl.groupEnd()
        self.wait_among_threads()

    def _described(self, array):
        """Return (address, number of real numbers, NCCL type) of an array; a complex number counts as two."""
        parts = 2 if array.dtype.kind == "c" else 1
        single = array.dtype.itemsize // parts == np.dtype(np.float32).itemsize
        return array.data.ptr, parts * array.size, self._nccl.NCCL_FLOAT32 if single else self._nccl.NCCL_FLOAT64

    def _wait(self):
        self.beside.synchronize()

    def _free(self):
        self._own.destroy()

    def abort_work(self):
        if not self._broken:
            super().abort_work()
            self._own.abort()


class NCCLExchange(Exchange):
    """Messages between GPU memories, on the stream for messages."""

    def __init__(self, communicator, outgoing, sent, incoming, received):
        super().__init__(communicator, outgoing, sent, incoming, received)
        event = communicator.space.xp.cuda.Event
        self._to, self._from = _rows(parts(outgoing, sent)), _rows(parts(incoming, received))
        self._packed, self._arrived = event(disable_timing=True), event(disable_timing=True)
        self.start()                             # connects
        self.finish()

    def start(self):
        communicator = self.communicator
        if not (self._to or self._from):
            return
        stream = communicator.space.xp.cuda.get_current_stream()
        communicator.beside.wait_event(self._after(self._packed, stream))
        communicator.post(self._to, self._from)
        self._after(self._arrived, communicator.beside)

    def finish(self):
        if self._to or self._from:
            self.communicator.space.xp.cuda.get_current_stream().wait_event(self._arrived)

    @staticmethod
    def _after(event, stream):
        """Record ``event`` at the current end of ``stream``; return the event."""
        event.record(stream)
        return event


def _rows(parts):
    """Return the list of (rank, contiguous array) for parts of which some are `Columns`, arrays of several rows."""
    return [(rank, row) for rank, part in parts for row in (part if part.ndim == 2 else [part])]
