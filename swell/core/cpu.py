"""CpuSpace: vectors are NumPy arrays, kernels are C++, and loops call them one after the other."""
from __future__ import annotations

import functools
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from swell.core import memory
from swell.core.arrays import for_kernels
from swell.core.columns import Columns
from swell.core.cpu_columns import ColumnKernels
from swell.core.errors import OutOfMemory
from swell.core.library import _native, native_kernels
from swell.core.loop import DirectLoop
from swell.core.space import Space

SERIAL = 20_000         # rows below which one thread is faster: it wakes no others and waits for no busy core


class CpuSpace(Space):
    """Vectors are NumPy arrays, kernels are functions running on all cores."""

    name = "cpu"
    xp = np

    def __init__(self, columns: int = 1):
        super().__init__()
        self.columns, self.flags = columns, None         # flags: the judge's, while a loop runs

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
            return for_kernels(array)
        out[...] = array
        return out

    def to_host(self, array):
        return array.array if isinstance(array, Columns) else array

    def kernels(self, package, stem, dtype, states=None):
        module = native_kernels(package, stem)
        if self.columns > 1:
            return ColumnKernels(self, module, states)
        if states is None:
            return module
        return SimpleNamespace(**{name: functools.partial(getattr(module, name), states[0]) for name in module.KERNELS})

    def block_kernels(self, package, stem, dtype, states):
        """Return the kernels of a block method, whose first argument is ``states``, of all right-hand sides."""
        module = native_kernels(package, stem)
        return SimpleNamespace(**{name: functools.partial(getattr(module, name), states) for name in module.KERNELS})

    def loop(self, stopping, n):
        return DirectLoop(self, stopping, n)

    @contextmanager
    def active(self, rows=None):
        before = _native.set_threads(1) if rows is not None and rows < SERIAL else None
        try:
            yield
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(f"{self.describe()} ran out of memory ({error}): use dtype='float32', a method "
                              "and a preconditioner that store less (method='bicgstab', precond='jacobi'), or a "
                              "machine with more memory") from None
        finally:
            if before is not None:
                _native.set_threads(before)

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

    def prefix_sums(self, counts, starts, each=1):
        starts[0] = 0
        np.cumsum(counts, out=starts[1:])
        if each != 1:
            starts *= each

    def group_max(self, keys, size):
        starts = np.arange(0, keys.size, size)
        return np.maximum.reduceat(keys, starts) if keys.size else keys

    def describe(self):
        count = _native.threads()
        return f"cpu, {count} thread" + ("" if count == 1 else "s")

    def memory(self):
        return memory.free(), memory.total()
