"""Communicators: MPI between processes (mpi4py), or queues between threads of one process.

``allgather`` and ``alltoall`` carry any object and serve setups. A rank that fails sends its error in place of its
value. The error is then raised on all ranks, whatever they were exchanging. ``allreduce`` and ``exchange`` carry
numbers and serve Krylov iterations: they allocate nothing. The `Columns` of several right-hand sides travel together:
a reduction is one message for all columns, and so is an exchange for each neighbour.

A reduction gathers the scalars of all ranks and adds them in the order of ranks. Every rank gets the same bits, in
every run, and so all ranks come to the same verdict.
"""
from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress

import numpy as np

from swell.core.columns import plain
from swell.core.errors import InputError, SwellError
from swell.core.sharing import Shareable
from swell.core.slots import Flag

HEARD = 5.0             # seconds in which the other ranks must receive an unexpected error, or all ranks end


class Broken(RuntimeError):
    """Another rank failed; the caller sees that rank's own error."""


def require_ranks(ranks):
    """Raise InputError unless ``ranks``, the first argument of a call across ranks, is a Communicator."""
    if not isinstance(ranks, Communicator):
        raise InputError(f"the first argument is a {type(ranks).__name__}: expected the ranks, as in "
                         "ranks = swell.distributed.init(); swell.distributed.scatter(ranks, A)")


class Communicator(ABC):
    """A group of ranks, seen from one of them.

    Attributes
    ----------
    rank, size : int
    local_rank, local_size : int
        Rank among, and number of, the ranks on the same machine.
    reductions : int
        Number of ``allreduce`` calls so far.
    places : dict
        From a device's name to the pair that ``on_device`` made for it.
    threads : bool
        Ranks are threads of one process.
    messages : str or None
        How GPUs communicate: the argument ``messages`` of ``on_device``.
    share_gpus : bool
        Ranks may share a GPU.
    """

    threads, messages, share_gpus = False, None, False

    def __init__(self, rank, size, local_rank=None, local_size=None):
        self.rank, self.size = rank, size
        self.local_rank = rank if local_rank is None else local_rank
        self.local_size = size if local_size is None else local_size
        self.reductions, self.places = 0, {}

    @abstractmethod
    def _gather_objects(self, value) -> list:
        """Return the list of all ranks' ``value``, in the order of ranks. All ranks call it together."""

    @abstractmethod
    def _exchange_objects(self, parts) -> list:
        """Send ``parts[k]`` to rank k; return the objects received, in the order of ranks. All ranks call it
        together."""

    @abstractmethod
    def exchange(self, space, outgoing, sent, incoming, received) -> "Exchange":
        """Set up an exchange of fixed buffers, which can be started any number of times. Returns an ``Exchange``, whose
        ``start`` and ``finish`` send and receive. All ranks call it together.

        Parameters
        ----------
        space : Space
            The space of this rank's buffers.
        outgoing, incoming : array or Columns
            Buffers to send and to receive: contiguous, one part for each rank, in the order of ranks. Each of
            `Columns` is such a buffer.
        sent, received : int array, shape (size,)
            Number of entries in each part of ``outgoing`` and ``incoming``.
        """

    @abstractmethod
    def abort(self):
        """End all ranks, at once."""

    @abstractmethod
    def give_up(self, error):
        """End all ranks because ``error`` did not reach them; called from a separate thread."""

    def at_failure(self, call):
        """Register a function, ``call()``, to call when another rank fails; a no-op if such a failure ends this
        process."""

    def holds_graphs(self, loop):
        """Register a loop (a ``GraphLoop``) that has captured messages of this communicator in a CUDA graph, so that
        ``close`` frees it first."""

    def allgather(self, value) -> list:
        """Return the values of all ranks, in the order of ranks; if any rank sends an error instead, raise the first
        one on all ranks. All ranks call it together."""
        answers = self._gather_objects((None, value))
        _raise_first(answers)
        return [answer for _, answer in answers]

    def alltoall(self, parts) -> list:
        """Send ``parts[k]``, any object, to rank k; return the objects received, in the order of ranks. All ranks call
        it together."""
        self.allgather(None)                     # raises an error of another rank
        return self._exchange_objects(parts)

    def alltoall_arrays(self, space, parts) -> list:
        """Send ``parts[k]`` to rank k; return the arrays received, in the order of ranks. All ranks call it together,
        in setups.

        ``parts``: one-dimensional arrays of this rank's local space, of one type on all ranks and any length."""
        return [space.from_host(part) for part in self.alltoall([space.to_host(part) for part in parts])]

    @contextmanager
    def agreed(self):
        """Context manager for a block in which ranks may fail alone: if any rank raises an error in the block, every
        rank raises the error of the first such rank at the block's end. Blocks may be nested: an error is sent once.

        Ctrl-C is such an error, since a program may catch it. So is ``sys.exit``, of which the others hear as an
        InputError."""
        try:
            yield
        except BaseException as own:
            if getattr(own, "told", False):
                raise
            with suppress(Broken):               # the other ranks have ended, and hear nothing more
                self._tell(own)
            raise
        self.allgather(None)

    def _tell(self, error):
        """Send this rank's error to the other ranks, then raise on this rank the error of the first rank that has
        one."""
        sent = _portable(error) if not isinstance(error, SystemExit) else InputError(
            f"rank {self.rank} has ended its program by sys.exit({error.code!r}), and other ranks still need it: let "
            "all ranks end together, or raise an error")
        answers = self._gather_objects((sent, None))
        answers[self.rank] = sent if isinstance(error, Exception) else error, None     # not its pickle: no traceback
        _raise_first(answers)

    def tell_unasked(self, error):
        """Send an error as ``_tell`` does, at a time when the other ranks may be waiting for this rank's numbers.
        Unless they receive it within ``HEARD`` seconds, all ranks end."""
        with self._heard(error):
            self._tell(error)

    @contextmanager
    def _heard(self, error):
        """Context manager around the sending of ``error``: end all ranks if the block takes more than ``HEARD``
        seconds."""
        waited = threading.Timer(HEARD, self.give_up, (error,))
        waited.daemon = True
        waited.start()
        try:
            yield
        finally:
            waited.cancel()

    def require_equal(self, value, what: str):
        """Raise InputError, on every rank, unless all ranks pass an equal value. ``what`` names the value in the
        message."""
        values = self.allgather(value)
        if any(other != values[0] for other in values):
            listed = ", ".join(f"{v!r} on rank {k}" for k, v in enumerate(values))
            error = InputError(f"the ranks disagree on {what}: {listed}; give all of them the same")
            error.told = True                    # every rank raises it: it need not be sent
            raise error

    @abstractmethod
    def allreduce(self, numbers):
        """Sum ``numbers`` (a contiguous array) elementwise over all ranks, in place, and count the call in
        ``reductions``."""

    @abstractmethod
    def allreduce_columns(self, numbers, space):
        """Sum ``numbers``, the `Columns` of this rank's ``space``, as ``allreduce`` does, and count one call.

        The numbers of columns that have stopped are unspecified afterwards: all of them are sent, and nobody reads
        them."""

    def close(self):
        """Release resources that must be released before the process ends."""


class HostCommunicator(Communicator):
    """Ranks that exchange NumPy arrays."""

    def __init__(self, rank, size, local_rank=None, local_size=None):
        super().__init__(rank, size, local_rank, local_size)
        self._parts, self._packed = {}, {}       # buffers for the numbers of all ranks and columns, by count and type

    @abstractmethod
    def _gather_numbers(self, numbers, out):
        """Write the ``numbers`` of every rank k, an array, to out[k]."""

    def allreduce(self, numbers):
        """Sum ``numbers`` (a contiguous NumPy array) elementwise over all ranks, in place, in the order of ranks."""
        self.reductions += 1
        if self.size == 1:
            return
        key = numbers.size, numbers.dtype
        if key not in self._parts:
            self._parts[key] = np.empty((self.size, numbers.size), numbers.dtype)
        parts = self._parts[key]
        self._gather_numbers(numbers, parts)
        flat = numbers.reshape(-1)
        flat[...] = parts[0]
        with np.errstate(all="ignore"):          # stopped columns may hold anything; nobody reads them
            for part in parts[1:]:
                flat += part

    def allreduce_columns(self, numbers, space):
        key = numbers.array.shape, numbers.dtype
        if key not in self._packed:
            self._packed[key] = np.empty(*key)
        packed = self._packed[key]
        packed[...] = numbers.array
        self.allreduce(packed)
        for j, column in enumerate(packed):
            if space.flags is None or not space.flags[j, Flag.STOP]:     # else it grows at each call
                numbers.array[j] = column


class Exchange(Shareable):
    """A repeatable exchange of fixed buffers between ranks; ``Communicator.exchange`` explains the parameters."""

    constant = True                              # an update changes no buffer

    def __init__(self, communicator, outgoing, sent, incoming, received):
        self.communicator, self.outgoing, self.incoming = communicator, outgoing, incoming
        self._sent, self._received = sent, received

    def shared(self, sharing):
        """Return an exchange of the copies of the buffers; all ranks call it together."""
        outgoing, incoming = sharing(self.outgoing), sharing(self.incoming)
        self.communicator.allgather(None)        # no rank waits for one that had no memory for its buffers
        return self.communicator.exchange(sharing.space.local, outgoing, self._sent, incoming, self._received)

    @abstractmethod
    def start(self):
        """Start to send ``outgoing`` and to receive ``incoming``; do not wait."""

    @abstractmethod
    def finish(self):
        """Wait until ``incoming`` is received and ``outgoing`` may be changed."""

    def start_gathered(self, kernels, index, x):
        """Write x[index] to ``outgoing``, then start. ``kernels``: the kernels of ``kernels/halo.cpp`` or
        ``halo.cu``."""
        kernels.pack(index, x, self.outgoing)
        self.start()

    def finish_product(self, kernels, rows, A, out, alpha):
        """Wait for the received values v (``incoming``), then out[rows] += α A v. A: a CSRMatrix or BSRMatrix with one
        row for each of ``rows``; ``kernels`` as in ``start_gathered``."""
        self.finish()
        kernels.add_product(rows, A.indptr, A.indices, A.data.reshape(-1), self.incoming, out, A.block, alpha)

    def finish_product_dot(self, kernels, rows, A, out, w, dots):
        """Like ``finish_product`` with α = 1. It also adds the resulting change of the inner product (w, out) to
        dots[0]."""
        self.finish()
        kernels.add_product_dot(rows, A.indptr, A.indices, A.data.reshape(-1), self.incoming, out, w, dots, A.block)


def parts(buffer, counts):
    """Return the list of (rank, view of its part of ``buffer``) for consecutive parts of ``counts[rank]`` entries,
    without empty parts. A part of `Columns` is an array of shape (columns, entries)."""
    ends, buffer = np.cumsum(counts), plain(buffer)
    return [(rank, buffer[..., end - count:end]) for rank, (count, end) in enumerate(zip(counts, ends, strict=True))
            if count]


def _raise_first(answers):
    """Raise the error of the first rank that has one; do nothing if none has. ``answers``: (error or None, value) of
    each rank. The raised error's attribute ``told`` is set: all ranks know it."""
    for error, _ in answers:
        if error is not None:
            error.told = True
            if isinstance(error, SwellError):
                error.__suppress_context__ = True        # hides this rank's own error
            raise error


def _portable(error):
    """Return ``error`` itself if pickling reproduces it; else a RuntimeError with its text and notes."""
    try:
        rebuilt = pickle.loads(pickle.dumps(error))
    except Exception:
        rebuilt = None
    if type(rebuilt) is type(error) and str(rebuilt) == str(error):
        return error
    words = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        words.add_note(note)
    return words
