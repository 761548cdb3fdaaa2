"""Kernels for several right-hand sides on a CPU: a kernel for one vector is called for each column.

A column that the judge has stopped is frozen: no kernel is called for it. Kernels named in AFTER_PAUSE are still called
for a column that has only paused, at the end of a cycle.

A kernel NAME may have a twin NAME_columns, which treats several columns at a time, and so reads a matrix once for them.
Its first argument ``running`` lists the columns to be computed; then come the arguments of NAME, with arrays of shape
(k, n) in place of vectors. It is called if each of these is `Columns`. The twin's signature shows where they are.
"""
import numpy as np

from swell.core.columns import Columns
from swell.core.slots import Flag

AFTER_PAUSE = {"close"}


class ColumnKernels:
    """The kernels of one file, as attributes.

    Parameters
    ----------
    space : CpuSpace
        With several columns.
    kernels : namespace
        The kernels of one file, from `native_kernels`.
    states : list of states or None
        The judge's state of each column, for the kernels of a method.
    """

    def __init__(self, space, kernels, states=None):
        self._space, self._kernels, self._states = space, kernels, states

    def __getattr__(self, name):
        kernel, together, vectors = getattr(self._kernels, name), *self._twin(name)
        stop = Flag.FINAL if name in AFTER_PAUSE else Flag.STOP

        def call(*arguments):
            if self._states is None and not any(type(a) is Columns for a in arguments):
                return kernel(*arguments)
            running = self._running(stop)
            if together and len(running) > 1 and all(type(arguments[k]) is Columns for k in vectors):
                return together(np.array(running), *(a.array if type(a) is Columns else a for a in arguments))
            for j in running:
                state = () if self._states is None else (self._states[j],)
                kernel(*state, *(a.array[j] if type(a) is Columns else a for a in arguments))
            return None
        setattr(self, name, call)
        return call

    def _twin(self, name):
        """Return (the twin of kernel ``name`` or None, the places of its vectors among the arguments of the kernel)."""
        twin = getattr(self._kernels, f"{name}_columns", None)
        if twin is None:
            return None, []
        parameters = twin.__self__.signatures[0][1:-1].split(", ")[1:]
        return twin, [k for k, parameter in enumerate(parameters) if "[,]" in parameter]

    def _running(self, stop):
        """Return the columns whose flag ``stop`` is not set; outside of a loop, all columns."""
        flags = self._space.flags
        return range(self._space.columns) if flags is None else [j for j, row in enumerate(flags) if not row[stop]]

    def shared(self, sharing):
        """Return the same kernels for ``sharing.space``."""
        return ColumnKernels(sharing.space.local, self._kernels, self._states)
