"""``parallel``: the decorator of Numba kernels with parallel loops. A small system gets a serial variant.
``helper``: the decorator of functions that only kernels call.

Numba compiles the body of every parallel loop once more, as a function that its threads call. That is half of what a
first solve compiles. ``CpuSpace.active`` runs a small system on one thread, where the serial variant of a kernel has
the same speed and compiles in about half the time. Each variant is compiled at its own first call.

The number of rows chooses, and the number of threads never does: one call always runs the same machine code.
"""
from __future__ import annotations

import functools
import threading
import types

from numba import njit
from numba.core.registry import CPUDispatcher


class _Here(threading.local):
    """What holds for the kernels that this thread calls."""

    small = False


here = _Here()


class ParallelKernel:
    """A kernel that is compiled for many threads, or for one where ``here.small`` is true.

    Attributes
    ----------
    py_func : function
        What it is compiled from.
    """

    def __init__(self, function, fastmath):
        functools.update_wrapper(self, function)
        self.py_func, self._fastmath = function, fastmath

    def __call__(self, *arguments):
        return (self.serial if here.small else self.threaded)(*arguments)

    def __reduce__(self):
        return self.__qualname__                 # a copy is the kernel itself

    @functools.cached_property
    def threaded(self):
        """The variant whose loops share the threads."""
        return njit(parallel=True, cache=True, fastmath=self._fastmath)(self.py_func)

    @functools.cached_property
    def serial(self):
        """The variant for one thread. Numba counts references to arrays in it, which it leaves out in the loops of the
        other: a function that takes arrays and is called in an inner loop is therefore compiled with ``_nrt=False``."""
        return njit(cache=True, fastmath=self._fastmath)(renamed(self.py_func, "serial"))


def renamed(function, suffix, constants=None):
    """A copy of a function that sees these constants among its globals, to be compiled beside the function. Numba's
    cache knows a function by its name and its code alone, so the name tells the constants."""
    seen = function.__globals__ if constants is None else {**function.__globals__, **constants}
    made = types.FunctionType(function.__code__, seen, function.__name__, function.__defaults__, function.__closure__)
    made.__module__, made.__qualname__ = function.__module__, f"{function.__qualname__}_{suffix}"
    return made


def parallel(function=None, fastmath=False):
    """Decorate a kernel; ``fastmath`` is Numba's option."""
    if function is None:
        return functools.partial(ParallelKernel, fastmath=fastmath)
    return ParallelKernel(function, fastmath)


class Helper(CPUDispatcher):
    """A function that only kernels call. It has no entries for Python and C, which take half of the time that Numba
    needs for a short function. It counts no references to arrays, so it can make none."""

    def __call__(self, *arguments):
        raise TypeError(f"Python called {self.__qualname__}, which only kernels can: @njit(cache=True) allows both")


def helper(function=None, fastmath=False, inlined=False):
    """Decorate a function that only kernels call; ``inlined`` puts its machine code into theirs in any case."""
    if function is None:
        return functools.partial(helper, fastmath=fastmath, inlined=inlined)
    made = njit(cache=True, fastmath=fastmath, forceinline=inlined, _nrt=False, no_cpython_wrapper=True,
                no_cfunc_wrapper=True)(function)
    if isinstance(made, CPUDispatcher):          # not with NUMBA_DISABLE_JIT
        made.__class__ = Helper
    return made
