"""Solves in a forked process. `multiprocessing` forks by default on Linux, up to Python 3.13.

GNU OpenMP keeps its threads from one parallel loop to the next. A forked child has only the thread that called fork:
its next parallel loop would wait for the other threads forever. Numba therefore ends such a child by SIGTERM. OpenMP
5.0 (omp_pause_resource_all) can end its threads; the next parallel loop then starts new ones. The forking thread calls
it before each fork, and the child tells Numba that it has its own threads. Numba's other threading layers survive a
fork.

SciPy's SuperLU leaves an exception behind in a child if another thread of the parent holds its factors: it frees that
thread's record, and takes None for an address. The first function that Python calls in the child then fails, which is
threading's own: it would still count the lost threads. The child calls it again, and its error is not reported.

A CUDA context does not survive a fork, and there is no remedy: the child refuses to use a GPU.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading

from swell.core.errors import SwellError

PAUSE = "omp_pause_resource_all"
SOFT = 1                # omp_pause_soft: threads end, OpenMP's settings stay
REMEDY = "start processes by multiprocessing.get_context('spawn') or 'forkserver', or fork before the first solve"

_lost = []              # the error message, in a child whose OpenMP cannot start threads again
_users = set()          # ids of the processes that have used a GPU: this one and its ancestors by fork


def require_threads():
    """Raise SwellError in a forked child in which parallel loops would hang."""
    if _lost:
        raise SwellError(_lost[0])


def use_gpu():
    """Record that this process uses a GPU; `require_own_gpu` then raises in its forked children."""
    _users.add(os.getpid())


def require_own_gpu():
    """Raise SwellError in a process that was forked after its parent had used a GPU."""
    if _users - {os.getpid()}:
        raise SwellError("this process was forked after its parent had used a GPU, which CUDA does not survive: "
                         f"{REMEDY}; or use device='cpu' here")


def _gnu_openmp():
    """Numba's module for GNU OpenMP if a parallel loop has started its threads, else None."""
    if "numba" not in sys.modules:
        return None
    import numba
    try:
        layer = numba.threading_layer()
    except ValueError:                           # no parallel loop has run
        return None
    if layer != "omp":
        return None
    from numba.np.ufunc import omppool
    return omppool if omppool.openmp_vendor == "GNU" else None


def _pause(openmp):
    """Return OpenMP's C function that ends its threads, or None before OpenMP 5.0. ``openmp``: its Python module."""
    return getattr(ctypes.CDLL(openmp.__file__), PAUSE, None)


class _Reports:
    """``sys.unraisablehook`` in a fork: the previous hook, except for the error that SuperLU causes in threading."""

    def __init__(self, previous):
        self.previous, self.failed = previous, False

    def __call__(self, report):
        if report.object is threading._after_fork and isinstance(report.exc_value, SystemError):
            self.failed = True
        else:
            self.previous(report)


def _before():
    """End OpenMP's threads before a fork."""
    if not isinstance(sys.unraisablehook, _Reports):
        sys.unraisablehook = _Reports(sys.unraisablehook)
    openmp = _gnu_openmp()
    pause = openmp and _pause(openmp)
    if pause:
        pause(SOFT)


def _restore():
    """Restore the hook that `_before` replaced, and return the replacement; None if somebody else has replaced it."""
    hook = sys.unraisablehook
    if not isinstance(hook, _Reports):
        return None
    sys.unraisablehook = hook.previous
    return hook


def _in_child():
    """Repair what the fork has left.

    Make threading count this thread alone, if SuperLU has kept it from that. Make Numba start its own threads; if
    OpenMP is too old for that, keep an error message, which `require_threads` raises."""
    hook = _restore()
    if hook is not None and hook.failed:
        threading._after_fork()
    openmp = _gnu_openmp()
    if openmp is None:
        return
    if _pause(openmp) is None:
        _lost.append("this process was forked after its parent had solved, and this system's GNU OpenMP, older than "
                     f"GCC 9, does not survive that: {REMEDY}")
        return
    from numba import config
    ctypes.CFUNCTYPE(None, ctypes.c_int)(openmp.launch_threads)(config.NUMBA_NUM_THREADS)   # records the process id


if hasattr(os, "register_at_fork"):              # not on Windows, which cannot fork
    os.register_at_fork(before=_before, after_in_parent=_restore, after_in_child=_in_child)
