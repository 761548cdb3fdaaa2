"""Decorators of Numba kernels: ``parallel`` for kernels with parallel loops, ``helper`` for functions that they call,
``njit`` for others.

Numba compiles the body of every parallel loop a second time, as a function that its threads call. This second
compilation is half of the work when a first solve compiles. ``CpuSpace.active`` runs a small system on one thread.
There the serial variant of a kernel is as fast, and compiles in about half the time. Each variant is compiled at its
own first call.

Neither variant has a wrapper for C, which nothing here calls: it is an eighth of the compile time.

The number of rows chooses the variant; the number of threads does not. A call therefore always runs the same machine
code.

Numba has several threading layers. Its last resort, "workqueue", where libgomp and TBB are missing, ends the process
if two threads of the program run parallel loops at the same time. With this layer, and no other, they take turns.
"""
from __future__ import annotations

import functools
import threading
import types

import numba
from numba.core.registry import CPUDispatcher

from swell.core.kernel_cache import keep
from swell.core.variant import here

CONTRACT = {"contract"}     # for fastmath: allow fused multiply-add; sums keep their order


workqueue = threading.RLock()   # held by the thread whose parallel loop runs on Numba's layer of that name


class OneAtATime(CPUDispatcher):
    """A function with parallel loops, on the layer "workqueue"."""

    def __call__(self, *arguments):
        with workqueue:
            return super().__call__(*arguments)


class NotYetCalled(CPUDispatcher):
    """A function with parallel loops before its first call, which starts the threading layer."""

    def __call__(self, *arguments):
        numba.get_num_threads()                  # starts it
        self.__class__ = OneAtATime if numba.threading_layer() == "workqueue" else CPUDispatcher
        return self(*arguments)


def njit(function=None, cache=False, parallel=False, fastmath=None, inline=None, forceinline=None, _nrt=None,
         no_cpython_wrapper=None, no_cfunc_wrapper=None):
    """Numba's ``njit`` for a kernel, with swell's own cache; its options that swell uses. None: not stated.

    A real number divided by zero gives inf or NaN, as on a GPU; of complex ones Numba raises ZeroDivisionError. Numba
    compiles a function that states no ``fastmath`` with the flags of the kernel that calls it first. Without
    ``function`` it returns the decorator."""
    stated = {name: value for name, value in (
        ("fastmath", fastmath), ("inline", inline), ("forceinline", forceinline), ("_nrt", _nrt),
        ("no_cpython_wrapper", no_cpython_wrapper), ("no_cfunc_wrapper", no_cfunc_wrapper)) if value is not None}
    if function is None:
        return functools.partial(njit, cache=cache, parallel=parallel, **stated)
    made = numba.njit(parallel=parallel, error_model="numpy", **stated)(function)
    if isinstance(made, CPUDispatcher):          # not with NUMBA_DISABLE_JIT
        if cache:
            keep(made)
        if parallel:
            made.__class__ = NotYetCalled
    return made


class ParallelKernel:
    """A kernel in two variants: for many threads, and, used if ``here.small`` is true, for one thread.

    Attributes
    ----------
    py_func : function
        The Python function that Numba compiles.
    """

    def __init__(self, function, fastmath):
        functools.update_wrapper(self, function)
        self.py_func, self._fastmath = function, fastmath

    def __call__(self, *arguments):
        return (self.serial if here.small else self.threaded)(*arguments)

    def __reduce__(self):
        return self.__qualname__                 # pickled by name: a copy is this same object

    @functools.cached_property
    def threaded(self):
        """The variant whose loops run on several threads."""
        return njit(parallel=True, cache=True, fastmath=self._fastmath, no_cfunc_wrapper=True)(self.py_func)

    @functools.cached_property
    def serial(self):
        """The variant for one thread. Numba counts references to arrays in its loops, and not in ``threaded``'s.
        ``helper`` therefore compiles with ``_nrt=False``: calls with arrays in an inner loop then cost no counting."""
        return njit(cache=True, fastmath=self._fastmath, no_cfunc_wrapper=True)(renamed(self.py_func, "serial"))


def renamed(function, suffix, constants=None):
    """Return a copy of ``function`` to be compiled with ``constants``, a dict, added to its globals.

    ``suffix``, added to the name, must differ for different constants: Numba's cache identifies a function by its name
    and its code alone."""
    seen = function.__globals__ if constants is None else {**function.__globals__, **constants}
    made = types.FunctionType(function.__code__, seen, function.__name__, function.__defaults__, function.__closure__)
    made.__module__, made.__qualname__ = function.__module__, f"{function.__qualname__}_{suffix}"
    return made


def parallel(function=None, fastmath=False):
    """Decorate ``function``, a kernel with parallel loops: return a `ParallelKernel`. ``fastmath``: Numba's option.

    Without ``function`` it returns the decorator."""
    if function is None:
        return functools.partial(ParallelKernel, fastmath=fastmath)
    return ParallelKernel(function, fastmath)


class Helper(CPUDispatcher):
    """A function that only kernels call. It has no wrappers for Python and C: for a short function they take half of
    the compile time. It does not count references to arrays, so it cannot allocate any."""

    def __call__(self, *arguments):
        raise TypeError(f"Python called {self.__qualname__}, which only kernels can: @njit(cache=True) allows both")


def helper(function=None, fastmath=False, inlined=False):
    """Decorate ``function``, which only kernels call: return it compiled by Numba. ``fastmath``: Numba's option.

    ``inlined`` forces Numba to inline it. Without ``function`` it returns the decorator."""
    if function is None:
        return functools.partial(helper, fastmath=fastmath, inlined=inlined)
    made = njit(cache=True, fastmath=fastmath, forceinline=inlined, _nrt=False, no_cpython_wrapper=True,
                no_cfunc_wrapper=True)(function)
    if isinstance(made, CPUDispatcher):          # not with NUMBA_DISABLE_JIT
        made.__class__ = Helper
    return made
