"""Ranks as threads of one process: for all GPUs of one machine without MPI, and for tests."""
from __future__ import annotations

import queue
import threading

import numpy as np

from swell.core.loop import pass_on_interrupt
from swell.distributed.communicator import Broken, Exchange, HostCommunicator, parts

CHECK_EVERY = 0.2       # seconds between two checks whether another rank has failed


class Group:
    """Objects that the threads share: a barrier, a table, and a queue for each pair of ranks.

    Attributes
    ----------
    communicators : list of ThreadCommunicator
        One for each rank; every ``run`` uses them again.
    """

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.table = [None] * size
        self.queues = {(a, b): queue.SimpleQueue() for a in range(size) for b in range(size)}
        self.communicators = [ThreadCommunicator(self, k) for k in range(size)]
        self._threads, self._at_failure = [], []

    def run(self, function, *arguments) -> list:
        """Call ``function(communicator, *arguments)`` in one thread a rank, as the function ``run`` below does; return
        the list of results. It may be called repeatedly as long as no rank has failed."""
        results, errors, ended = [None] * self.size, [None] * self.size, [threading.Event() for _ in range(self.size)]

        def rank(k):
            try:
                results[k] = function(self.communicators[k], *arguments)
            except BaseException as error:       # any error: the others must not wait for this thread
                errors[k] = error
                self.fail()
            finally:
                ended[k].set()

        self._threads = [threading.Thread(target=rank, args=(k,), daemon=True) for k in range(self.size)]
        for thread in self._threads:
            thread.start()
        _wait_for(ended, self)
        failures = sorted((error for error in errors if error is not None), key=lambda error: isinstance(error, Broken))
        if failures:
            raise failures[0]
        return results

    @property
    def failed(self) -> bool:
        """True if a rank has failed, so that the ranks cannot communicate any more."""
        return self.barrier.broken

    @property
    def within(self) -> bool:
        """True if the calling thread is a rank of the last run."""
        return threading.current_thread() in self._threads

    def fail(self):
        """Mark the group as failed: wake the ranks that wait for another one, which then raise Broken, and call the
        functions that ``at_failure`` registered."""
        self.barrier.abort()
        for call in self._at_failure:
            call()

    def at_failure(self, call):
        """Register a function, ``call()``, for ``fail`` to call."""
        self._at_failure.append(call)


class ThreadCommunicator(HostCommunicator):
    """The communicator of one thread of a group."""

    threads = True

    def __init__(self, group, rank):
        super().__init__(rank, group.size)
        self.group = group

    def _gather_objects(self, value):
        self.group.table[self.rank] = value
        try:
            self._meet()
            values = list(self.group.table)
            self._meet()                         # no rank writes its next value before all have read this one
            return values
        finally:
            self.group.table[self.rank] = None   # an error has frames, which would keep a Solver's memory

    def _gather_numbers(self, numbers, out):
        for k, part in enumerate(self.allgather(np.array(numbers).reshape(-1))):
            out[k] = part

    def _exchange_objects(self, parts):
        return [values[self.rank] for values in self._gather_objects(parts)]

    def exchange(self, space, outgoing, sent, incoming, received):
        return ThreadExchange(self, outgoing, sent, incoming, received)

    def abort(self):
        self.group.fail()

    def give_up(self, error):
        self.group.fail()

    def at_failure(self, call):
        self.group.at_failure(call)

    def _meet(self):
        try:
            self.group.barrier.wait()
        except threading.BrokenBarrierError:
            raise Broken("another rank failed") from None


class ThreadExchange(Exchange):
    """An exchange of copies through queues."""

    def __init__(self, communicator, outgoing, sent, incoming, received):
        super().__init__(communicator, outgoing, sent, incoming, received)
        self._to, self._from = parts(outgoing, sent), parts(incoming, received)

    def start(self):
        sender, queues = self.communicator.rank, self.communicator.group.queues
        for rank, array in self._to:
            queues[sender, rank].put(array.copy())

    def finish(self):
        group, receiver = self.communicator.group, self.communicator.rank
        for rank, array in self._from:
            while True:
                try:
                    array[...] = group.queues[rank, receiver].get(timeout=CHECK_EVERY)
                    break
                except queue.Empty:
                    if group.failed:
                        raise Broken("another rank failed") from None


def run(ranks: int, function, *arguments) -> list:
    """Call ``function(communicator, *arguments)`` in one thread a rank; return the results in the order of ranks.

    Ctrl-C stops a running solve, which returns its current iterate.

    Raises
    ------
    Exception
        The error of the first rank that failed; the others end, too.
    KeyboardInterrupt
        At a second Ctrl-C, or at the first one if no solve is running.
    """
    return Group(ranks).run(function, *arguments)


def _wait_for(ended, group):
    """Wait until all threads have ended; ``ended``: an Event for each. The main thread, which waits here, receives
    Ctrl-C and passes the first one on to a running solve.

    ``Thread.join`` would not do: if Ctrl-C interrupts it, Python before 3.13 takes the thread for dead (gh-90882). A
    second Ctrl-C, or the first one if no solve is running, fails ``group`` and is raised.
    """
    told = False
    while not all(event.is_set() for event in ended):
        try:
            for event in ended:
                event.wait()
        except KeyboardInterrupt:
            if told or not pass_on_interrupt():
                group.fail()
                raise
            told = True
