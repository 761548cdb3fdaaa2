"""Turn: the lock of an object that several threads share, which admits one caller at a time."""
import os
import threading

from swell.core.errors import InputError, SwellError
from swell.core.sharing import Shareable


class Turn(Shareable):
    """A lock that raises an error if the thread that holds it asks for it again, instead of a deadlock."""

    constant = True

    def __init__(self):
        self._lock, self._holder, self._process = threading.Lock(), None, os.getpid()

    def __enter__(self):
        if self._holder == threading.get_ident():
            raise InputError("a Solver was called from within its own solve, perhaps by its monitor or its M: use "
                             "another Solver there, such as solver.copy()")
        if self._process != os.getpid():         # in a forked child, where only the thread that forked lives on
            if self._lock.locked():
                raise SwellError("another thread was using this Solver when this process was forked, so its state here "
                                 "is incomplete: prepare another Solver, or fork while no thread uses it")
            self._process = os.getpid()
        self._lock.acquire()
        self._holder = threading.get_ident()

    def shared(self, sharing):
        """Return a new lock for a copy of an object; ``sharing`` is not used."""
        return Turn()

    def __exit__(self, *error):
        self._holder = None
        self._lock.release()

