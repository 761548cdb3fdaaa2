"""GPUs of one machine that reach one another's memory (NVLink, PCIe): a rank's kernels write what it sends straight to
where it is wanted, and small sums need one launch and one way through the link.

An exchange by NCCL takes a stream beside, two events and a kernel; an all-reduce some 5 µs; and after each the next
kernel starts late, since a dependent start knows only kernels of its own stream. Here all of it are short kernels of
the space's own stream (peer.cu), which a graph captures like others: what is sent travels while the diagonal block is
multiplied. Numbers travel beside the number of their message, 8 bytes for each 4, so that nothing else says that they
are there.

Differs from NCCL's own small protocol: every rank reads all numbers of all others, P (P - 1) n of them in all, and adds
them in the order of ranks. Sums of more than ``MOST`` numbers are NCCL's.

Memory that another process has opened must not be freed before that process has closed it: it is kept, for the next
exchange, until the process ends.
"""
from __future__ import annotations

import os
import socket

import numpy as np

from swell.distributed.communicator import Exchange
from swell.distributed.nccl import NCCLCommunicator

MOST = 512              # numbers of a sum
CHUNK = 2 << 20         # bytes: CUDA cuts smaller pieces out of one of these, which can be opened only once
ENABLED = 704           # cudaErrorPeerAccessAlreadyEnabled
LAZILY = 1              # cudaIpcMemLazyEnablePeerAccess


def reachable(host, space) -> bool:
    """Do all ranks run on this machine, with GPUs that reach one another's memory? Asked by all of them."""
    runtime = space.xp.cuda.runtime
    devices = host.allgather(space.device)
    mine = host.local_size == host.size and all(
        other == space.device or runtime.deviceCanAccessPeer(space.device, other) for other in devices)
    return all(host.allgather(mine))


class PeerCommunicator(NCCLCommunicator):
    """The GPUs of the ranks of another communicator, where each reaches the memory of all.

    Parameters
    ----------
    host : Communicator
    space : CudaSpace
        Of this rank's GPU.
    """

    def __init__(self, host, space):
        super().__init__(host, space)
        xp = space.xp
        with space.active():
            self._failed = xp.cuda.alloc_pinned_memory(8)        # looked at by kernels that wait
            self._word = np.frombuffer(self._failed, np.int32, 1)
            self._word[0] = 0
            self._memory = SharedMemory(host, space)
            self._messages = xp.zeros(1, np.int32)
            self._inbox = self._memory.empty(2 * host.size * MOST * 16)
            self._inboxes = xp.asarray(self._memory.addresses(self._inbox))

    @property
    def failed(self) -> int:
        """The address of the word that says so."""
        return self._failed.ptr

    def allreduce(self, numbers):
        """Add up the numbers (a contiguous array of the GPU) of all ranks, in place and in the stream's order."""
        real = np.empty(0, numbers.dtype).real.dtype
        if self.size == 1 or numbers.nbytes > MOST * real.itemsize:
            super().allreduce(numbers)
            return
        self.reductions += 1
        self._open()
        kernels = self.space.kernels("swell.distributed", "peer", real)
        kernels.add_up(numbers.reshape(-1).view(real), self._inboxes, self._messages, self.failed, self.rank, self.size,
                       MOST)
        self._wait_among_threads()

    def exchange(self, outgoing, incoming):
        return PeerExchange(self, self._memory, outgoing, incoming)

    def abort_work(self):
        self._word[0] = 1
        super().abort_work()


class PeerExchange(Exchange):
    """Messages by kernels. A rank that sends without getting anything gets one number, so as not to send twice before
    it was heard once."""

    def __init__(self, communicator, memory, outgoing, incoming):
        self.communicator, space, xp = communicator, communicator.space, communicator.space.xp
        told, heard = {rank for rank, _ in outgoing}, {rank for rank, _ in incoming}
        dtype = next((array.dtype for _, array in (*outgoing, *incoming)), np.dtype(float))
        outgoing = [*outgoing, *((rank, xp.zeros(1, dtype)) for rank in heard - told)]
        incoming = [*incoming, *((rank, xp.zeros(1, dtype)) for rank in told - heard)]
        self._kept = outgoing, incoming                                  # whose addresses the kernels have
        self._source, self._target = (xp.asarray(_addresses(arrays)) for arrays in (outgoing, incoming))
        self._sent, self._received = (xp.zeros(a.size, np.int32) for a in (self._source, self._target))
        self._inbox = memory.empty(2 * self._target.size * 2 * dtype.itemsize)
        inboxes = memory.addresses(self._inbox)
        self._places = xp.asarray(self._at_others(inboxes, outgoing, incoming, 2 * dtype.itemsize))
        self._kernels = space.kernels("swell.distributed", "peer", dtype)

    def _at_others(self, inboxes, outgoing, incoming, width):
        """Where the entries that are sent go: their addresses for messages of even number, then of odd ones."""
        first, total = {}, 0
        for rank, array in incoming:
            first[rank] = total
            total += array.size
        everywhere = self.communicator.allgather((first, total))
        rank = self.communicator.rank
        return np.concatenate([np.empty(0, np.int64), *(
            inboxes[to] + width * (parity * everywhere[to][1] + everywhere[to][0][rank] + np.arange(array.size))
            for parity in (0, 1) for to, array in outgoing)])

    def start(self):
        self.communicator._open()
        self._kernels.send(self._source, self._places, self._sent)
        self.communicator._wait_among_threads()

    def finish(self):
        self._kernels.receive(self._target, self._inbox.data.ptr, self._received, self.communicator.failed)
        self.communicator._wait_among_threads()


def _addresses(parts):
    """Those of all entries of (rank, array)."""
    return np.concatenate([np.empty(0, np.int64),
                           *(array.data.ptr + array.itemsize * np.arange(array.size) for _, array in parts)])


class SharedMemory:
    """Memory of this GPU that kernels of other ranks write to."""

    def __init__(self, host, space):
        self.host, self.space, self.xp = host, space, space.xp
        self._chunks, self._opened = [], {}
        self._pool = space.xp.cuda.MemoryPool(self._chunk)
        self._place = socket.gethostname(), os.getpid()

    def _chunk(self, size):
        """A new piece for the pool."""
        memory = self.xp.cuda.Memory(max(size, CHUNK))
        self._chunks.append(memory)
        return self.xp.cuda.MemoryPointer(memory, 0)

    def empty(self, nbytes):
        """So many bytes, all 0 when every rank has asked for ``addresses``."""
        array = self.xp.ndarray(max(nbytes, 1), np.uint8, self._pool.malloc(max(nbytes, 1)))
        array.fill(0)
        self.space.xp.cuda.get_current_stream().synchronize()
        return array

    def addresses(self, array):
        """Where the arrays of all ranks are for kernels of this one; asked by all of them."""
        runtime, at = self.xp.cuda.runtime, array.data.ptr
        chunk = next(c for c in self._chunks if c.ptr <= at < c.ptr + c.size)
        mine = self._place, self.space.device, chunk.ptr, at - chunk.ptr, runtime.ipcGetMemHandle(chunk.ptr)
        everywhere = self.host.allgather(mine)
        return np.array([at if rank == self.host.rank else self._seen(*other) for rank, other in enumerate(everywhere)],
                        np.int64)

    def _seen(self, place, device, base, offset, handle):
        """The address of another rank's memory."""
        key = place, device, base
        if key not in self._opened:
            self._opened[key] = base if place == self._place else self.xp.cuda.runtime.ipcOpenMemHandle(handle, LAZILY)
            if place == self._place:
                self._reach(device)
        return self._opened[key] + offset

    def _reach(self, device):
        """Let kernels use the memory of another GPU that this process has."""
        runtime = self.xp.cuda.runtime
        try:
            runtime.deviceEnablePeerAccess(device)
        except runtime.CUDARuntimeError as error:
            if error.status != ENABLED:
                raise
