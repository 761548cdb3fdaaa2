"""GPUs of one machine that reach one another's memory (NVLink, PCIe): a rank's kernels write what it sends straight to
where it is wanted, and wait there for what they get.

By NCCL an exchange takes a stream beside, two events and a kernel, and a small sum 6 µs; and the kernel after each
starts late, since a dependent start knows only kernels of its own stream. Here all of it are short kernels of the
space's own stream (peer.cu), which a graph captures like others. An exchange needs no launch beside those of packing
and of the off-diagonal product: what is sent travels while the diagonal block is multiplied. A sum is one launch, with
one way through the link. Numbers travel beside the number of their message, 8 bytes for each 4, so that nothing else
has to say that they are there.

Every rank gets all numbers of all others and adds them in the order of ranks, to the same bits: (P − 1) n numbers into
every GPU, for a few GPUs and sums of a few numbers.

The memory that others write to is kept for the next exchange until the process ends: to free it would wait for the
other GPUs of the process, of which one may wait for this one; and what another process has opened must not be freed
before that process has closed it.
"""
from __future__ import annotations

import os
import socket

import numpy as np

from swell.core.errors import InputError
from swell.distributed.communicator import Exchange
from swell.distributed.device_communicator import DeviceCommunicator

MOST = 1 << 16          # numbers that are added up together
CHUNK = 2 << 20         # bytes: CUDA cuts smaller pieces out of one of these, which can be opened only once
ENABLED = 704           # cudaErrorPeerAccessAlreadyEnabled
LAZILY = 1              # cudaIpcMemLazyEnablePeerAccess


def reachable(host, space) -> bool:
    """Do all ranks run on this machine, with GPUs that reach one another's memory? Asked by all of them."""
    runtime = space.xp.cuda.runtime
    name = runtime.deviceGetPCIBusId(space.device)
    others = {other for other in host.allgather(name) if other != name}
    seen = [runtime.deviceGetPCIBusId(k) for k in range(runtime.getDeviceCount())]       # a launcher may hide some
    return all(host.allgather(host.local_size == host.size and others <= {*seen} and all(
        runtime.deviceCanAccessPeer(space.device, seen.index(other)) for other in others)))


class PeerCommunicator(DeviceCommunicator):
    """The GPUs of the ranks of another communicator, where each reaches the memory of all.

    Attributes
    ----------
    failed : int
        The address of a word that is 1 where another rank has failed.
    memory : SharedMemory
    """

    def __init__(self, host, space):
        super().__init__(host, space)
        xp = space.xp
        with space.active():
            self._told = xp.cuda.alloc_pinned_memory(8)          # looked at by kernels that wait
            self.failed, self._word = self._told.ptr, np.frombuffer(self._told, np.int32, 1)
            self._word[0] = 0
            self.memory = shared_memory(space)
            self._sums = {dtype: self._inbox(np.dtype(dtype)) for dtype in ("float32", "float64")}

    def _inbox(self, dtype):
        """(own memory, that of all ranks, numbers of messages), for sums of a type."""
        own = self.memory.empty(2 * self.size * MOST * 2 * dtype.itemsize)
        inboxes = self.memory.addresses(self.host, own)
        return own, self.space.from_host(inboxes), self.space.xp.zeros(MOST, np.int32)

    def allreduce(self, numbers):
        """Add up the numbers (a contiguous array of the GPU) of all ranks, in place and in the stream's order."""
        self.reductions += 1
        if self.size == 1:
            return
        self.require_open()
        real = np.empty(0, numbers.dtype).real.dtype
        flat, (_, inboxes, messages) = numbers.reshape(-1).view(real), self._sums[real.name]
        add_up = self.space.kernels("swell.distributed", "peer", real).add_up
        for first in range(0, flat.size, MOST):
            add_up(flat[first:first + MOST], inboxes, messages, self.failed, self.rank, self.size, MOST)
        self.wait_among_threads()

    def exchange(self, outgoing, sent, incoming, received):
        return PeerExchange(self, outgoing, sent, incoming, received)

    def abort_work(self):
        super().abort_work()
        self._word[0] = 1


class PeerExchange(Exchange):
    """Messages by kernels.

    A rank may not send twice to one that has not read the first: it knows from what that one has sent since. So who
    has nothing to send back sends one entry, which nobody looks at.
    """

    def __init__(self, communicator, outgoing, sent, incoming, received):
        super().__init__(outgoing, incoming)
        self.communicator, space, memory = communicator, communicator.space, communicator.memory
        to, of = np.maximum(sent, received > 0), np.maximum(received, sent > 0)
        self._plain = (to == sent).all() and (of == received).all()
        self._source, self._target = (space.from_host(_entries(*counts)) for counts in ((sent, to), (received, of)))
        self._messages = space.xp.zeros(self._source.size, np.int32)
        width = 2 * outgoing.dtype.itemsize
        self._inbox = memory.empty(2 * self._target.size * width)
        inboxes = memory.addresses(communicator.host, self._inbox)
        theirs = communicator.allgather((_starts(of), self._target.size))
        self._places = space.from_host(np.concatenate([
            inboxes[k] + width * (parity * entries + starts[communicator.rank] + np.arange(count))
            for parity in (0, 1) for k, (count, (starts, entries)) in enumerate(zip(to, theirs, strict=True))]))
        self._kernels = space.kernels("swell.distributed", "peer", outgoing.dtype)

    def start(self):
        self._send(self._source, self.outgoing)

    def start_gathered(self, kernels, index, x):
        if self._plain:
            self._send(index, x)
        else:
            super().start_gathered(kernels, index, x)

    def _send(self, index, x):
        self.communicator.require_open()
        self._kernels.send(index, x, self._places, self._messages)
        self.communicator.wait_among_threads()

    def finish(self):
        self._kernels.receive(self._target, self._inbox.data.ptr, self._messages, self.communicator.failed,
                              self.incoming)
        self.communicator.wait_among_threads()

    def finish_product(self, kernels, rows, A, out, alpha):
        if not self._plain:
            super().finish_product(kernels, rows, A, out, alpha)
            return
        self._kernels.add_received(rows, A.indptr, A.indices, A.data, self._inbox.data.ptr, self.incoming,
                                   self._messages, self.communicator.failed, out, alpha)
        self.communicator.wait_among_threads()

    def finish_product_dot(self, kernels, rows, A, out, w, dots):
        if not self._plain:
            super().finish_product_dot(kernels, rows, A, out, w, dots)
            return
        self._kernels.add_received_dot(rows, A.indptr, A.indices, A.data, self._inbox.data.ptr, self.incoming,
                                       self._messages, self.communicator.failed, out, w, dots)
        self.communicator.wait_among_threads()


def _starts(counts):
    """Where the parts begin."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]])


def _entries(wanted, counts):
    """For each entry that travels, which one of the buffer it is; -1 for those that only say that the last was read."""
    parts = [np.arange(first, first + count) if count else np.full(number, -1)
             for first, count, number in zip(_starts(wanted), wanted, counts, strict=True)]
    return np.concatenate(parts).astype(np.int32)


def shared_memory(space) -> "SharedMemory":
    """That of a space's GPU."""
    if space.device not in _memories:
        _memories[space.device] = SharedMemory(space.xp, space.device)
    return _memories[space.device]


_memories = {}          # by GPU


class SharedMemory:
    """Memory of a GPU that kernels of other ranks write to."""

    def __init__(self, xp, device):
        self.xp, self.device = xp, device
        self._chunks, self._opened = [], {}
        self._pool = xp.cuda.MemoryPool(self._chunk)
        self._process = socket.gethostname(), os.getpid()

    def _chunk(self, size):
        """A new piece for the pool."""
        memory = self.xp.cuda.Memory(max(size, CHUNK))
        self._chunks.append(memory)
        return self.xp.cuda.MemoryPointer(memory, 0)

    def empty(self, nbytes):
        """So many bytes."""
        return self.xp.ndarray(max(nbytes, 1), np.uint8, self._pool.malloc(max(nbytes, 1)))

    def addresses(self, host, array):
        """Where the arrays of all ranks are for kernels of this one, int64; asked by all ranks of a communicator. The
        arrays are 0 then."""
        stream, at = self.xp.cuda.get_current_stream(), array.data.ptr
        chunk = next(c for c in self._chunks if c.ptr <= at < c.ptr + c.size)
        stream.synchronize()
        host.allgather(None)                     # nothing older is under way to this memory
        array.fill(0)
        stream.synchronize()
        handle = None if host.threads else self.xp.cuda.runtime.ipcGetMemHandle(chunk.ptr)
        everywhere = host.allgather((self._process, self.device, chunk.ptr, at - chunk.ptr, handle))
        with host.agreed():
            return np.array([at if rank == host.rank else self._seen(*other) for rank, other in enumerate(everywhere)],
                            np.int64)

    def _seen(self, process, device, base, offset, handle):
        """The address of another rank's memory."""
        key = process, device, base
        if key not in self._opened:
            if process == self._process:
                self._reach(device)
                self._opened[key] = base
            else:
                self._opened[key] = self._open(handle)
        return self._opened[key] + offset

    def _open(self, handle):
        """The address of another process's memory."""
        runtime = self.xp.cuda.runtime
        try:
            return runtime.ipcOpenMemHandle(handle, LAZILY)
        except runtime.CUDARuntimeError as error:
            raise InputError(f"a rank cannot open the memory of another rank's GPU ({error}), as where containers keep "
                             "processes apart: swell.distributed.init(messages='nccl')") from None

    def _reach(self, device):
        """Let kernels use the memory of another GPU that this process has."""
        runtime = self.xp.cuda.runtime
        try:
            runtime.deviceEnablePeerAccess(device)
        except runtime.CUDARuntimeError as error:
            if error.status != ENABLED:
                raise
