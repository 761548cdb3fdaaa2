"""Solves in a forked process. `multiprocessing` forks by default on Linux, up to Python 3.13.

The threads of CPU kernels survive a fork (``native/threads.cpp``): a child starts its own.

SciPy's SuperLU leaves an exception behind in a child if another thread of the parent holds its factors: it frees that
thread's record, and takes None for an address. The first function that Python calls in the child then fails, which is
threading's own: it would still count the lost threads. The child calls it again, and its error is not reported.

A CUDA context does not survive a fork, and there is no remedy: the child refuses to use a GPU.
"""
import os
import sys
import threading

from swell.core.errors import SwellError

REMEDY = "start processes by multiprocessing.get_context('spawn') or 'forkserver', or fork before the first solve"

_users = set()          # ids of the processes that have used a GPU: this one and its ancestors by fork


def use_gpu():
    """Record that this process uses a GPU; `require_own_gpu` then raises in its forked children."""
    _users.add(os.getpid())


def require_own_gpu():
    """Raise SwellError in a process that was forked after its parent had used a GPU."""
    if _users - {os.getpid()}:
        raise SwellError("this process was forked after its parent had used a GPU, which CUDA does not survive: "
                         f"{REMEDY}; or use device='cpu' here")


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
    """Replace the hook that reports errors which nobody can catch."""
    if not isinstance(sys.unraisablehook, _Reports):
        sys.unraisablehook = _Reports(sys.unraisablehook)


def _restore():
    """Restore the hook that `_before` replaced, and return the replacement; None if somebody else has replaced it."""
    hook = sys.unraisablehook
    if not isinstance(hook, _Reports):
        return None
    sys.unraisablehook = hook.previous
    return hook


def _in_child():
    """Make threading count this thread alone, if SuperLU has kept it from that."""
    hook = _restore()
    if hook is not None and hook.failed:
        threading._after_fork()


if hasattr(os, "register_at_fork"):              # not on Windows, which cannot fork
    os.register_at_fork(before=_before, after_in_parent=_restore, after_in_child=_in_child)
