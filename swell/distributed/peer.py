"""Messages between GPUs of one machine by peer access (NVLink, PCIe): kernels write the values straight into the
receiver's memory, where its kernels poll for them.

With NCCL an exchange takes a second stream, two events and a kernel, and a small sum takes 6 µs. The next kernel also
starts late, since a dependent launch knows only kernels of its own stream. Here all messages are short kernels on the
space's own stream (peer.cu), which a graph captures like others. An exchange launches no kernels besides packing and
the off-diagonal product: the values travel while the diagonal block is multiplied. A sum is one launch, and passes the
link once. Each 4 bytes of a value travel with their message number, in 8 bytes, so that no separate flag is needed.

For a sum, every rank gets the numbers of all others and adds them in the order of ranks, to equal bits. This sends
(P − 1) n numbers to every GPU, and is meant for few GPUs and sums of few numbers.

The columns of several right-hand sides share each launch. Every column has its own part of an inbox, and sends and
receives after its verdict too, since all ranks launch alike.

Memory that other ranks write to is kept for later exchanges until the process ends, for two reasons. Freeing it would
wait for the other GPUs of the process, and one of these may wait for this GPU. And memory that another process has
opened must not be freed before that process has closed it.
"""
from __future__ import annotations

import os
import socket

import numpy as np

from swell.core.columns import Columns, plain
from swell.core.errors import InputError
from swell.distributed.communicator import Exchange
from swell.distributed.device_communicator import DeviceCommunicator

MAX_SUMS = 1 << 16      # numbers that one launch sums at most
CHUNK = 2 << 20         # bytes: CUDA cuts smaller allocations out of one such piece, which can be opened only once
ENABLED = 704           # cudaErrorPeerAccessAlreadyEnabled
LAZILY = 1              # cudaIpcMemLazyEnablePeerAccess
SLOTS = 256 << 20       # bytes of a rank's memory for arrays from all others, in setups; allocated at the first use
WIDTH = 16              # bytes; slots begin at multiples


def reachable(host, space) -> bool:
    """Return True if all ranks are on one machine and their GPUs reach one another's memory. ``host``: the ranks'
    Communicator; ``space``: of this rank's GPU. All ranks call it together."""
    runtime = space.xp.cuda.runtime
    name = runtime.deviceGetPCIBusId(space.device)
    others = {other for other in host.allgather(name) if other != name}
    seen = [runtime.deviceGetPCIBusId(k) for k in range(runtime.getDeviceCount())]       # a launcher may hide some
    return all(host.allgather(host.local_size == host.size and others <= {*seen} and all(
        runtime.deviceCanAccessPeer(space.device, seen.index(other)) for other in others)))


class PeerCommunicator(DeviceCommunicator):
    """Communication by peer access between the GPUs of the ranks of ``host``.

    Attributes
    ----------
    failed : int
        The address of a word that becomes 1 if another rank fails.
    memory : SharedMemory
        Memory of this rank's GPU that other ranks write to.
    """

    def __init__(self, host, space):
        super().__init__(host, space)
        xp = space.xp
        with space.active():
            self._told = xp.cuda.alloc_pinned_memory(8)          # read by kernels that wait
            self.failed, self._word = self._told.ptr, np.frombuffer(self._told, np.int32, 1)
            self._word[0] = 0
            self.memory = shared_memory(space)
            self._slots = None
            self._sums = {dtype: self._inbox(np.dtype(dtype)) for dtype in ("float32", "float64")}

    def _inbox(self, dtype):
        """Allocate the buffer ("inbox") in which this rank receives the others' numbers for sums of a real type. Return
        (this inbox, array of all ranks' inbox addresses, int32 message counters on the GPU)."""
        inbox = self.memory.empty(2 * self.size * MAX_SUMS * 2 * dtype.itemsize)
        inboxes = self.memory.addresses(self.host, inbox)
        return inbox, self.space.from_host(inboxes), self.space.xp.zeros(MAX_SUMS, np.int32)

    def allreduce(self, numbers):
        """Sum ``numbers`` (a contiguous array of the GPU) elementwise over all ranks, in place and in stream order."""
        self._sum(numbers.reshape(-1), self.space)

    def allreduce_columns(self, numbers, space):
        self._sum(numbers.reshape(-1), space)

    def _sum(self, numbers, space):
        """Sum ``numbers``, a vector or `Columns` of ``space``, over all ranks, in place and in stream order."""
        self.reductions += 1
        if self.size == 1:
            return
        self.require_open()
        real = np.empty(0, numbers.dtype).real.dtype
        numbers, (_, inboxes, messages) = _real_numbers(numbers, real, space.xp), self._sums[real.name]
        sum_over_ranks = space.kernels("swell.distributed", "peer", real).sum_over_ranks
        share = MAX_SUMS // space.columns
        for first in range(0, numbers.size, share):
            sum_over_ranks(numbers[first:first + share], inboxes, messages, self.failed, self.rank, self.size, MAX_SUMS,
                           share)
        self.wait_among_threads()

    def alltoall_arrays(self, space, parts):
        """Exchange arrays as `Communicator.alltoall_arrays` does: each sender copies to its slot in the receiver's GPU
        memory, long arrays in several rounds."""
        if self.size == 1:
            return list(parts)
        self.require_open()
        if self._slots is None:
            slots = self.memory.empty(SLOTS)
            self._slots = slots, self.memory.addresses(self.host, slots)
        slots, theirs = self._slots
        nbytes = np.array(self.host.allgather([part.nbytes for part in parts]))      # [sender, receiver]
        received = [part if k == self.rank else space.empty(int(nbytes[k, self.rank]) // part.itemsize, part.dtype)
                    for k, part in enumerate(parts)]
        slot = SLOTS // self.size // WIDTH * WIDTH
        np.fill_diagonal(nbytes, 0)
        for begin in range(0, int(nbytes.max()), slot):
            if begin:
                self.host.allgather(None)        # all ranks have emptied their slots
            for k, part in enumerate(parts):
                self._copy(theirs[k] + self.rank * slot, part.data.ptr + begin, nbytes[self.rank, k] - begin, slot)
            space.stream.synchronize()
            self.host.allgather(None)            # all slots are full
            for k, part in enumerate(received):
                self._copy(part.data.ptr + begin, slots.data.ptr + k * slot, nbytes[k, self.rank] - begin, slot)
            space.stream.synchronize()
        return received

    def _copy(self, target, source, remaining, slot):
        """Queue a copy of a message's next bytes, at most ``slot``; ``remaining``: bytes not yet copied."""
        if remaining > 0:
            runtime = self.space.xp.cuda.runtime
            runtime.memcpyAsync(int(target), int(source), int(min(remaining, slot)), runtime.memcpyDefault,
                                self.space.stream.ptr)

    def exchange(self, space, outgoing, sent, incoming, received):
        return PeerExchange(self, space, outgoing, sent, incoming, received)

    def abort_work(self):
        super().abort_work()
        self._word[0] = 1


class PeerExchange(Exchange):
    """An exchange by kernels that write to the receivers' memory.

    A rank may send again only after the receiver has read the last message but one. It knows this from the receiver's
    own messages. So a receiver that has nothing to send back sends one dummy entry.
    """

    def __init__(self, communicator, space, outgoing, sent, incoming, received):
        super().__init__(communicator, outgoing, sent, incoming, received)
        memory, columns = communicator.memory, space.columns
        leaving, arriving = np.maximum(sent, received > 0), np.maximum(received, sent > 0)
        self._plain = (leaving == sent).all() and (arriving == received).all()
        self._source, self._target = (space.from_host(_entries(*counts))
                                      for counts in ((sent, leaving), (received, arriving)))
        self._messages = space.xp.zeros(columns * self._source.size, np.int32)
        width = 2 * outgoing.dtype.itemsize
        self._inbox = memory.empty(2 * columns * self._target.size * width)
        inboxes = memory.addresses(communicator.host, self._inbox)
        theirs = communicator.allgather((_starts(arriving), self._target.size))
        self._places = space.from_host(np.concatenate([
            inboxes[k] + width * (part * entries + starts[communicator.rank] + np.arange(count))
            for part in range(2 * columns)       # of each column for even and for odd message numbers
            for k, (count, (starts, entries)) in enumerate(zip(leaving, theirs, strict=True))]))
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
                                   self._messages, self.communicator.failed, out, A.block, alpha)
        self.communicator.wait_among_threads()

    def finish_product_dot(self, kernels, rows, A, out, w, dots):
        if not self._plain:
            super().finish_product_dot(kernels, rows, A, out, w, dots)
            return
        self._kernels.add_received_dot(rows, A.indptr, A.indices, A.data, self._inbox.data.ptr, self.incoming,
                                       self._messages, self.communicator.failed, out, w, dots, A.block)
        self.communicator.wait_among_threads()


def _real_numbers(numbers, real, xp):
    """View a vector, or the `Columns` of one, in the type ``real``: a complex number is two real ones."""
    array, parts = plain(numbers), numbers.itemsize // real.itemsize
    view = xp.ndarray((*array.shape[:-1], parts * numbers.size), real, array.data, (*array.strides[:-1], real.itemsize))
    return Columns(view) if isinstance(numbers, Columns) else view


def _starts(counts):
    """Return the first index of each part; ``counts``: the parts' sizes."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]])


def _entries(wanted, counts):
    """Return the buffer index of each entry that is sent, or received, rank after rank; -1 for dummy entries.
    ``counts``: number of entries for each rank with dummies, ``wanted``: without."""
    parts = [np.arange(first, first + count) if count else np.full(number, -1)
             for first, count, number in zip(_starts(wanted), wanted, counts, strict=True)]
    return np.concatenate(parts).astype(np.int32)


def shared_memory(space) -> "SharedMemory":
    """Return the ``SharedMemory`` of a space's GPU; the first call makes it."""
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
        """Allocate a chunk of at least ``size`` bytes for the memory pool; return a pointer to it."""
        memory = self.xp.cuda.Memory(max(size, CHUNK))
        self._chunks.append(memory)
        return self.xp.cuda.MemoryPointer(memory, 0)

    def empty(self, nbytes):
        """Return a new uint8 array of ``nbytes`` bytes, not initialised."""
        return self.xp.ndarray(max(nbytes, 1), np.uint8, self._pool.malloc(max(nbytes, 1)))

    def addresses(self, host, array):
        """Set the arrays of all ranks to 0. Return their addresses as this rank's kernels see them, int64, shape
        (ranks,). All ranks of ``host``, a Communicator, call it together, each with its own array from ``empty``."""
        stream, at = self.xp.cuda.get_current_stream(), array.data.ptr
        chunk = next(c for c in self._chunks if c.ptr <= at < c.ptr + c.size)
        stream.synchronize()
        host.allgather(None)                     # now no older message is on its way to this memory
        array.fill(0)
        stream.synchronize()
        handle = None if host.threads else self.xp.cuda.runtime.ipcGetMemHandle(chunk.ptr)
        of_ranks = host.allgather((self._process, self.device, chunk.ptr, at - chunk.ptr, handle))
        with host.agreed():
            return np.array([at if rank == host.rank else self._seen(*other) for rank, other in enumerate(of_ranks)],
                            np.int64)

    def _seen(self, process, device, base, offset, handle):
        """Return the address of another rank's memory as this process sees it. ``process``, ``device``, ``base``: the
        process, GPU and address of the chunk there; ``offset``: place in it; ``handle``: its CUDA IPC handle. A chunk
        is opened once."""
        key = process, device, base
        if key not in self._opened:
            if process == self._process:
                self._reach(device)
                self._opened[key] = base
            else:
                self._opened[key] = self._open(handle)
        return self._opened[key] + offset

    def _open(self, handle):
        """Open another process's memory by its CUDA IPC handle; return its address here."""
        runtime = self.xp.cuda.runtime
        try:
            return runtime.ipcOpenMemHandle(handle, LAZILY)
        except runtime.CUDARuntimeError as error:
            raise InputError(f"a rank cannot open the memory of another rank's GPU ({error}), for example because "
                             "containers isolate them: use swell.distributed.init(messages='nccl')") from None

    def _reach(self, device):
        """Let this GPU's kernels access the memory of GPU ``device`` of this process."""
        runtime = self.xp.cuda.runtime
        try:
            runtime.deviceEnablePeerAccess(device)
        except runtime.CUDARuntimeError as error:
            if error.status != ENABLED:
                raise
