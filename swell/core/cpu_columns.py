"""Kernels for several right-hand sides on a CPU: a kernel for one vector is called for each column.

A column that the judge has stopped is frozen: no kernel is called for it. Kernels listed in a module's ``AFTER_PAUSE``
are still called for a column that has only paused, at the end of a cycle.

A kernel NAME may have a twin NAME_columns, which takes the arrays of shape (k, n) and all columns together, so that it
reads a matrix once.
"""
from __future__ import annotations

from swell.core.columns import Columns
from swell.core.slots import Flag


class ColumnKernels:
    """The kernels of one module of Numba kernels, as attributes.

    Parameters
    ----------
    space : CpuSpace
        With several columns.
    module : module
    states : list of states or None
        The judge's state of each column, for the kernels of a method.
    """

    def __init__(self, space, module, states=None):
        self._space, self._module, self._states = space, module, states
        self._after_pause = getattr(module, "AFTER_PAUSE", ())

    def __getattr__(self, name):
        kernel, together = getattr(self._module, name), getattr(self._module, f"{name}_columns", None)
        stop = Flag.FINAL if name in self._after_pause else Flag.STOP

        def call(*arguments):
            if self._states is None and not any(type(a) is Columns for a in arguments):
                return kernel(*arguments)
            running = self._running(stop)
            if together is not None and 2 * len(running) > self._space.columns:
                return together(*(a.array if type(a) is Columns else a for a in arguments))
            for j in running:
                own = () if self._states is None else (self._states[j],)
                kernel(*own, *(a.array[j] if type(a) is Columns else a for a in arguments))
            return None
        setattr(self, name, call)
        return call

    def _running(self, stop):
        """The columns whose flag ``stop`` is not set; all of them outside of a loop."""
        flags = self._space.flags
        return range(self._space.columns) if flags is None else [j for j, row in enumerate(flags) if not row[stop]]

    def shared(self, sharing):
        """Return the same kernels for ``sharing.space``."""
        return ColumnKernels(sharing.space.local, self._module, self._states)
