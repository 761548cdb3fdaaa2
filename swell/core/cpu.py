"""CpuSpace: vectors are NumPy arrays, kernels are native or Numba functions, and loops call them one after the other.
"""
from __future__ import annotations

import functools
import importlib
import os
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from swell.core import memory
from swell.core.columns import Columns
from swell.core.compilation import count_numba
from swell.core.cpu_columns import ColumnKernels
from swell.core.errors import OutOfMemory
from swell.core.forking import require_threads
from swell.core.library import _native, is_native, native_kernels
from swell.core.loop import DirectLoop
from swell.core.space import Space
from swell.core.variant import here

SERIAL = 20_000         # rows below which one thread is faster: it wakes no others and waits for no busy core


@functools.cache
def _kernels(package, stem):
    """Return the kernels of a file: a namespace of native ones, or the module ``<package>.kernels.<stem>`` of Numba
    kernels, if it is no C++ yet. Cached, since vector operations ask for it often."""
    if is_native(package, stem):
        return native_kernels(package, stem)
    count_numba()
    return importlib.import_module(f"{package}.kernels.{stem}")


def usual_threads() -> int:
    """Return the number of threads of a large system's loops: what Numba is told, if it is there, for both."""
    if "numba" in sys.modules:
        return sys.modules["numba"].get_num_threads()
    return int(os.environ.get("NUMBA_NUM_THREADS", 0)) or _native.threads()


class CpuSpace(Space):
    """Vectors are NumPy arrays, kernels are functions running on all cores."""

    name = "cpu"
    xp = np

    def __init__(self, columns: int = 1):
        super().__init__()
        self.columns, self.flags = columns, None         # flags: the judge's, while a loop runs
        require_threads()
        # Idle threads spin for about 30 µs, the time between two products, and then sleep. Waking a thread takes some
        # 80 µs, in which a product of 50 000 rows is done. By default OpenMP keeps spinning: on a machine with other
        # work, a solve then took 20 to 50 s instead of 1.5. If the user has set either variable, both stay as they
        # are. The variables have an effect only before OpenMP starts.
        if "OMP_WAIT_POLICY" not in os.environ and "GOMP_SPINCOUNT" not in os.environ:
            os.environ.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="1000")

    def __reduce__(self):
        return CpuSpace, (self.columns,)         # a copy or a pickle is a new space

    def empty(self, shape, dtype):
        return np.empty(shape, dtype)

    def buffer(self, shape, dtype):
        if self.columns == 1:
            return self.empty(shape, dtype)
        return Columns(self.empty((self.columns, *(shape if isinstance(shape, tuple) else (shape,))), dtype))

    def from_host(self, array, out=None):
        if type(array).__module__.startswith("cupy"):
            array = array.get()                  # the data is on a GPU, and the solve is on the CPU
        if out is None:
            return np.ascontiguousarray(array)
        out[...] = array
        return out

    def to_host(self, array):
        return array.array if isinstance(array, Columns) else array

    def kernels(self, package, stem, dtype, states=None):
        module = _kernels(package, stem)
        if self.columns > 1:
            return ColumnKernels(self, module, states)
        if states is None:
            return module
        return SimpleNamespace(**{name: functools.partial(getattr(module, name), states[0]) for name in module.KERNELS})

    def block_kernels(self, package, stem, dtype, states):
        """Return the kernels of a block method, whose first argument is ``states``, of all right-hand sides."""
        module = _kernels(package, stem)
        return SimpleNamespace(**{name: functools.partial(getattr(module, name), states) for name in module.KERNELS})

    def loop(self, stopping, n):
        return DirectLoop(self, stopping, n)

    @contextmanager
    def active(self, rows=None):
        inner = here.small                       # within a small system's block, which has one thread, nothing changes
        if not inner:
            require_threads()
            numba = sys.modules.get("numba")     # a process that calls native kernels only never imports it
            threads, before = usual_threads(), _native.threads()
            here.small = rows is not None and rows < SERIAL
            if numba and here.small and threads > 1:
                numba.set_num_threads(1)
            _native.set_threads(1 if here.small else threads)
        try:
            yield
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(f"{self.describe()} ran out of memory ({error}): choose a smaller restart, "
                              "dtype='float32', or a method with short recurrences (cg, bicgstab)") from None
        finally:
            if not inner:
                if numba:
                    numba.set_num_threads(threads)
                _native.set_threads(before)
                here.small = False

    def synchronize(self):
        pass

    def another(self):
        return CpuSpace(self.columns)

    def for_columns(self, columns):
        return CpuSpace(columns)

    def same_view(self, view, base):
        begin, of = (a.__array_interface__["data"][0] for a in (view, view.base))
        if not isinstance(base, Columns):
            return np.ndarray(view.shape, view.dtype, base, begin - of, view.strides)
        whole = base.array if base.array.base is None else base.array.base       # contiguous, with its padding
        return Columns(np.ndarray((base.count, *view.shape), view.dtype, whole, begin - of,
                                  (base.array.strides[0], *view.strides)))

    def same_memory(self, array, other):
        return isinstance(other, np.ndarray) and np.shares_memory(array, other)

    def finite(self, x):
        return bool(np.isfinite(x).all())

    def max_on_host(self, x):
        return float(x.max()) if x.size else -np.inf

    def find_true(self, mask):
        count = int(np.count_nonzero(mask))
        return int(mask.argmax()) if count else mask.size, count

    def count(self, keys, size):
        return np.bincount(keys, minlength=size)

    def prefix_sums(self, counts, starts):
        starts[0] = 0
        np.cumsum(counts, out=starts[1:])

    def group_max(self, keys, size):
        starts = np.arange(0, keys.size, size)
        return np.maximum.reduceat(keys, starts) if keys.size else keys

    def describe(self):
        count = 1 if here.small else usual_threads()
        return f"cpu, {count} thread" + ("" if count == 1 else "s")

    def memory(self):
        return memory.free(), memory.total()
