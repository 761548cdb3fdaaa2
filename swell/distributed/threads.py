"""Ranks as threads of one process: for all GPUs of one machine without MPI, and for tests."""
from __future__ import annotations

import queue
import threading

import numpy as np

from swell.core.loop import pass_on_interrupt
from swell.distributed.communicator import Broken, Exchange, HostCommunicator, parts

PATIENCE = 0.2          # seconds from one look to the next at whether another rank has failed


class Group:
    """What the threads share: a barrier, a table, and a queue for each pair of ranks.

    Attributes
    ----------
    communicators : list of ThreadCommunicator
        One for each rank, the same in every ``run``.
    """

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.table = [None] * size
        self.queues = {(a, b): queue.SimpleQueue() for a in range(size) for b in range(size)}
        self.communicators = [ThreadCommunicator(self, k) for k in range(size)]
        self._threads, self._at_failure = [], []

    def run(self, function, *arguments) -> list:
        """As the function ``run`` below, which may be called again and again while no rank has failed."""
        results, errors, ended = [None] * self.size, [None] * self.size, [threading.Event() for _ in range(self.size)]

        def rank(k):
            try:
                results[k] = function(self.communicators[k], *arguments)
            except BaseException as error:       # whatever it is, the others must not wait for this thread
                errors[k] = error
                self.fail()
            finally:
                ended[k].set()

        self._threads = [threading.Thread(target=rank, args=(k,), daemon=True) for k in range(self.size)]
        for thread in self._threads:
            thread.start()
        _wait_for(ended, self)
        found = sorted((error for error in errors if error is not None), key=lambda error: isinstance(error, Broken))
        if found:
            raise found[0]
        return results

    @property
    def failed(self) -> bool:
        """A rank has failed, and no other can be waited for."""
        return self.barrier.broken

    @property
    def within(self) -> bool:
        """The calling thread is one of the last run's ranks."""
        return threading.current_thread() in self._threads

    def fail(self):
        """Wake those who wait for a rank that has failed."""
        self.barrier.abort()
        for call in self._at_failure:
            call()

    def at_failure(self, call):
        """Have something called by ``fail``."""
        self._at_failure.append(call)


class ThreadCommunicator(HostCommunicator):
    """One thread of a group."""

    threads = True

    def __init__(self, group, rank):
        super().__init__(rank, group.size)
        self.group = group

    def _gather_objects(self, value):
        self.group.table[self.rank] = value
        self._meet()
        values = list(self.group.table)
        self._meet()                             # nobody writes the next value before all have read this one
        return values

    def _gather_numbers(self, numbers, out):
        for k, part in enumerate(self.allgather(np.array(numbers).reshape(-1))):
            out[k] = part

    def _exchange_objects(self, parts):
        return [values[self.rank] for values in self._gather_objects(parts)]

    def exchange(self, outgoing, sent, incoming, received):
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
    """Copies through queues."""

    def __init__(self, communicator, outgoing, sent, incoming, received):
        super().__init__(outgoing, incoming)
        self.communicator = communicator
        self._to, self._from = parts(outgoing, sent), parts(incoming, received)

    def start(self):
        mine, queues = self.communicator.rank, self.communicator.group.queues
        for rank, array in self._to:
            queues[mine, rank].put(array.copy())

    def finish(self):
        group, mine = self.communicator.group, self.communicator.rank
        for rank, array in self._from:
            while True:
                try:
                    array[...] = group.queues[rank, mine].get(timeout=PATIENCE)
                    break
                except queue.Empty:
                    if group.failed:
                        raise Broken("another rank failed") from None


def run(ranks: int, function, *arguments) -> list:
    """Call ``function(communicator, *arguments)`` in a thread for each rank; what they return, in their order.

    Ctrl-C ends a solve that is under way with its iterate.

    Raises
    ------
    Exception
        The error of the first rank that failed; the others are ended.
    KeyboardInterrupt
        At a second Ctrl-C, and at the first where nothing is being solved.
    """
    return Group(ranks).run(function, *arguments)


def _wait_for(ended, group):
    """Until all have ended; Ctrl-C comes to the main thread, here. Not by ``Thread.join``: where Ctrl-C interrupts it,
    Python before 3.13 takes the thread for dead (gh-90882)."""
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
