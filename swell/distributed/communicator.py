"""Communicator: what ranks say to one another. MPI between processes (mpi4py); queues between threads of one process.

Two kinds of talk. ``allgather`` and ``alltoall`` carry any object and are for setups: an error of one rank is an answer
to any question, so that it is raised on all ranks, whatever the others were asking. ``allreduce`` and ``exchange``
carry numbers and are what a Krylov iteration uses: they allocate nothing.

A reduction gathers the ranks' scalars and adds them in the order of ranks: every rank gets the same bits, so that all
of them come to the same verdict, and the same bits in every run.
"""
from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager

import numpy as np

HEARD = 5.0             # seconds that the other ranks have to hear of an error that swell did not expect


class Broken(RuntimeError):
    """Another rank failed; its own error is what the caller sees."""


class Communicator(ABC):
    """A group of ranks, seen from one of them.

    Attributes
    ----------
    rank, size : int
    local_rank, local_size : int
        Of the ranks on the same machine.
    reductions : int
        Calls of ``allreduce`` so far.
    places : dict
        What ``on_device`` has made for each device.
    threads : bool
        Ranks are threads of one process.
    messages : str or None
        How GPUs shall speak, as ``on_device`` takes it.
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
        """The values of all ranks, in their order."""

    @abstractmethod
    def _exchange_objects(self, parts) -> list:
        """Send ``parts[k]`` to rank k; what the ranks sent here, in their order."""

    @abstractmethod
    def exchange(self, outgoing, sent, incoming, received) -> "Exchange":
        """An exchange of fixed buffers, to be started as often as needed.

        Parameters
        ----------
        outgoing, incoming : array
            What the other ranks get, and what they fill: contiguous, one part for each rank, in their order.
        sent, received : int array, shape (size,)
            Entries of these parts.
        """

    @abstractmethod
    def abort(self):
        """End all ranks, at once."""

    @abstractmethod
    def give_up(self, error):
        """End all ranks because of an error that they do not hear of; called by a thread of its own."""

    def at_failure(self, call):
        """Have something called when another rank fails; nothing to do where that ends this process."""

    def holds_graphs(self, loop):
        """A loop that has captured messages of this communicator."""

    def allgather(self, value) -> list:
        """The values of all ranks, in their order; the first error among them is raised instead, on every rank."""
        answers = self._gather_objects((None, value))
        _raise_first(answers)
        return [answer for _, answer in answers]

    def alltoall(self, parts) -> list:
        """Send ``parts[k]``, any object, to rank k; what the ranks sent here, in their order."""
        self.allgather(None)                     # where an error of another rank would be heard
        return self._exchange_objects(parts)

    @contextmanager
    def agreed(self):
        """A block that either no rank leaves with an error, or all of them with the first rank's. Blocks may be nested:
        an error is told once."""
        try:
            yield
        except Exception as own:
            if getattr(own, "told", False):
                raise
            self._tell(own)
        self.allgather(None)

    def _tell(self, error):
        """Answer the others with an error, and raise the first rank's."""
        sent = _portable(error)
        answers = self._gather_objects((sent, None))
        answers[self.rank] = sent, None          # itself, not its pickle: it knows where it was raised
        _raise_first(answers)

    def tell_unasked(self, error):
        """The same where the others may be waiting for this rank's numbers, and never hear of it: then all end."""
        with self._heard(error):
            self._tell(error)

    @contextmanager
    def _heard(self, error):
        """A block in which the other ranks hear of an error; where it lasts too long, all ranks end."""
        waited = threading.Timer(HEARD, self.give_up, (error,))
        waited.daemon = True
        waited.start()
        try:
            yield
        finally:
            waited.cancel()

    def require_equal(self, value, what: str):
        """Raise InputError, on every rank, unless all of them bring an equal value."""
        from swell.core.errors import InputError
        values = self.allgather(value)
        if any(other != values[0] for other in values):
            found = ", ".join(f"{v!r} on rank {k}" for k, v in enumerate(values))
            error = InputError(f"the ranks disagree on {what}: {found}; give all of them the same")
            error.told = True                    # every rank raises it
            raise error

    @abstractmethod
    def allreduce(self, numbers):
        """Add up the numbers (a contiguous array) of all ranks, in place, and count the call."""

    def close(self):
        """Give back what must be given back before the end."""


class HostCommunicator(Communicator):
    """Ranks that exchange NumPy arrays."""

    def __init__(self, rank, size, local_rank=None, local_size=None):
        super().__init__(rank, size, local_rank, local_size)
        self._parts = {}                         # room for the numbers of all ranks, by count and type

    @abstractmethod
    def _gather_numbers(self, numbers, out):
        """out[k] = the numbers of rank k."""

    def allreduce(self, numbers):
        """Add up the numbers (a contiguous NumPy array) of all ranks, in place."""
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
        for part in parts[1:]:
            flat += part


class Exchange(ABC):
    """Buffers on their way between ranks."""

    def __init__(self, outgoing, incoming):
        self.outgoing, self.incoming = outgoing, incoming

    @abstractmethod
    def start(self):
        """Begin to send and to receive."""

    @abstractmethod
    def finish(self):
        """Wait until all has been received, and the buffers sent may be changed."""

    def start_gathered(self, kernels, index, x):
        """Send x[index], with the kernels of ``halo``."""
        kernels.pack(index, x, self.outgoing)
        self.start()

    def finish_product(self, kernels, rows, A, out, alpha):
        """Wait, and out[rows] += α A (what was received)."""
        self.finish()
        kernels.add_product(rows, A.indptr, A.indices, A.data, self.incoming, out, alpha)

    def finish_product_dot(self, kernels, rows, A, out, w, dots):
        """The same for α = 1, with what it changes in dots[0] = (w, out)."""
        self.finish()
        kernels.add_product_dot(rows, A.indptr, A.indices, A.data, self.incoming, out, w, dots)


def parts(buffer, counts):
    """(rank, its part of the buffer) for every rank that has a part."""
    ends = np.cumsum(counts)
    return [(rank, buffer[end - count:end]) for rank, (count, end) in enumerate(zip(counts, ends, strict=True))
            if count]


def _raise_first(answers):
    """Raise the error of the first rank that has one; from here on all of them know it."""
    from swell.core.errors import SwellError
    for error, _ in answers:
        if error is not None:
            error.told = True
            if isinstance(error, SwellError):
                error.__suppress_context__ = True        # it says all that this rank's own does
            raise error


def _portable(error):
    """An error that another rank can be sent: as it is, or in words where it cannot be rebuilt from its pickle."""
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
