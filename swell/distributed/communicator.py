"""Communicators: MPI between processes (mpi4py), or queues between threads of one process.

``allgather`` and ``alltoall`` carry any object and serve setups. A rank that fails sends its error in place of its
value. The error is then raised on all ranks, whatever they were exchanging. ``allreduce`` and ``exchange`` carry
numbers and serve Krylov iterations: they allocate nothing.

A reduction gathers the scalars of all ranks and adds them in the order of ranks. Every rank gets the same bits, in
every run, and so all ranks come to the same verdict.
"""
from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager

import numpy as np

HEARD = 5.0             # seconds in which the other ranks must receive an unexpected error, or all ranks end


class Broken(RuntimeError):
    """Another rank failed; the caller sees that rank's own error."""


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
        """Return the values of all ranks, in the order of ranks."""

    @abstractmethod
    def _exchange_objects(self, parts) -> list:
        """Send ``parts[k]`` to rank k; return the objects received, in the order of ranks."""

    @abstractmethod
    def exchange(self, outgoing, sent, incoming, received) -> "Exchange":
        """Set up an exchange of fixed buffers, which can be started any number of times.

        Parameters
        ----------
        outgoing, incoming : array
            Buffers to send and to receive: contiguous, one part for each rank, in the order of ranks.
        sent, received : int array, shape (size,)
            Number of entries in each part of ``outgoing`` and ``incoming``.
        """

    @abstractmethod
    def abort(self):
        """End all ranks, at once."""

    @abstractmethod
    def give_up(self, error):
        """End all ranks because of an error that did not reach them; called from a separate thread."""

    def at_failure(self, call):
        """Register a function to call when another rank fails; a no-op if such a failure ends this process."""

    def holds_graphs(self, loop):
        """Register a loop that has captured messages of this communicator in a graph."""

    def allgather(self, value) -> list:
        """Return the values of all ranks, in the order of ranks; if any rank failed, raise the first error on all."""
        answers = self._gather_objects((None, value))
        _raise_first(answers)
        return [answer for _, answer in answers]

    def alltoall(self, parts) -> list:
        """Send ``parts[k]``, any object, to rank k; return the objects received, in the order of ranks."""
        self.allgather(None)                     # raises an error of another rank
        return self._exchange_objects(parts)

    @contextmanager
    def agreed(self):
        """Context manager: if any rank fails in the block, every rank leaves it with the first such rank's error.
        Blocks may be nested: an error is sent once."""
        try:
            yield
        except Exception as own:
            if getattr(own, "told", False):
                raise
            self._tell(own)
        self.allgather(None)

    def _tell(self, error):
        """Send an error to the other ranks, and raise the error of the first rank that has one."""
        sent = _portable(error)
        answers = self._gather_objects((sent, None))
        answers[self.rank] = sent, None          # the error itself, not its pickle, which has no traceback
        _raise_first(answers)

    def tell_unasked(self, error):
        """Like ``_tell``, for when the others may be waiting for this rank's numbers: unless they receive the error
        within ``HEARD`` seconds, all ranks end."""
        with self._heard(error):
            self._tell(error)

    @contextmanager
    def _heard(self, error):
        """Context manager: end all ranks if the block, which sends them an error, takes more than ``HEARD`` seconds."""
        waited = threading.Timer(HEARD, self.give_up, (error,))
        waited.daemon = True
        waited.start()
        try:
            yield
        finally:
            waited.cancel()

    def require_equal(self, value, what: str):
        """Raise InputError, on every rank, unless all ranks pass an equal value."""
        from swell.core.errors import InputError
        values = self.allgather(value)
        if any(other != values[0] for other in values):
            found = ", ".join(f"{v!r} on rank {k}" for k, v in enumerate(values))
            error = InputError(f"the ranks disagree on {what}: {found}; give all of them the same")
            error.told = True                    # every rank raises it: it need not be sent
            raise error

    @abstractmethod
    def allreduce(self, numbers):
        """Sum the numbers (a contiguous array) over all ranks, in place, and count the call."""

    def close(self):
        """Release resources that must be released before the process ends."""


class HostCommunicator(Communicator):
    """Ranks that exchange NumPy arrays."""

    def __init__(self, rank, size, local_rank=None, local_size=None):
        super().__init__(rank, size, local_rank, local_size)
        self._parts = {}                         # buffers for the numbers of all ranks, by count and type

    @abstractmethod
    def _gather_numbers(self, numbers, out):
        """out[k] = the numbers of rank k."""

    def allreduce(self, numbers):
        """Sum the numbers (a contiguous NumPy array) over all ranks, in place."""
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
    """A repeatable exchange of fixed buffers between ranks; see ``Communicator.exchange``."""

    def __init__(self, outgoing, incoming):
        self.outgoing, self.incoming = outgoing, incoming

    @abstractmethod
    def start(self):
        """Start to send and to receive."""

    @abstractmethod
    def finish(self):
        """Wait until ``incoming`` is received and ``outgoing`` may be changed."""

    def start_gathered(self, kernels, index, x):
        """Gather x[index] into ``outgoing`` and start; ``kernels`` are the compiled kernels "halo"."""
        kernels.pack(index, x, self.outgoing)
        self.start()

    def finish_product(self, kernels, rows, A, out, alpha):
        """Wait for the received values v, then out[rows] += α A v."""
        self.finish()
        kernels.add_product(rows, A.indptr, A.indices, A.data, self.incoming, out, alpha)

    def finish_product_dot(self, kernels, rows, A, out, w, dots):
        """Like ``finish_product`` with α = 1; also add the resulting change of (w, out) to dots[0]."""
        self.finish()
        kernels.add_product_dot(rows, A.indptr, A.indices, A.data, self.incoming, out, w, dots)


def parts(buffer, counts):
    """List of (rank, view of its part of the buffer), without the ranks whose count is 0."""
    ends = np.cumsum(counts)
    return [(rank, buffer[end - count:end]) for rank, (count, end) in enumerate(zip(counts, ends, strict=True))
            if count]


def _raise_first(answers):
    """Raise the error of the first rank that has one, marked as known to all ranks; ``answers`` are (error, value)."""
    from swell.core.errors import SwellError
    for error, _ in answers:
        if error is not None:
            error.told = True
            if isinstance(error, SwellError):
                error.__suppress_context__ = True        # this rank's own error adds nothing to it
            raise error


def _portable(error):
    """The error itself, or a RuntimeError with its text if pickling does not reproduce it."""
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
