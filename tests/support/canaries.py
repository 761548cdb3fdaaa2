"""Canaries: guard bytes before and behind every buffer that a kernel works on, checked after it.

On a CPU every call of a kernel from Python is intercepted: its arrays, wherever they come from (a space, a
workspace, the record of a loop, NumPy), are replaced by copies between guards. On a GPU everything that CuPy allocates,
pinned host memory too, lies between guards. All bits of a guard are set, so that a kernel that reads one gets NaN (or
the index −1), which no solve survives.
"""
from __future__ import annotations

import ctypes
from contextlib import contextmanager

import numpy as np

from swell.core import library

GUARD = 512             # bytes; a multiple of every alignment that is asked for
SET = 0xFF


class Overrun(AssertionError):
    """A kernel wrote outside of a buffer."""


@contextmanager
def guarded_kernels():
    """Within this block every kernel that Python calls works between guards. Yields the names of those called.

    Hosts that were made before the block call kernels without guards."""
    called = set()

    for name in library._native.names():
        library.native_kernels(*name.rsplit(".", 2)[:2])
    own = {key: vars(kernels).copy() for key, kernels in library.files.items()}
    for kernels in library.files.values():
        vars(kernels).update({name: _Guarded(kernel, called) for name, kernel in vars(kernels).items()
                              if hasattr(kernel, "__self__")})
    try:
        yield called
    finally:
        for key, kernels in own.items():
            vars(library.files[key]).update(kernels)


class _Guarded:
    """A kernel whose arguments lie between guards. ``called``: the set of names of kernels that were called."""

    def __init__(self, kernel, called):
        self._kernel, self._called, self.__self__ = kernel, called, kernel.__self__

    def __call__(self, *arguments):
        self._called.add(self.__self__.name.rpartition(".")[2])
        guards = _Guards(arguments)
        try:
            return self._kernel(*guards.arguments)
        finally:
            guards.check(self.__self__.name)


class _Guards:
    """The arguments of one call, their arrays between guards; arrays that share memory still share it."""

    def __init__(self, arguments):
        arrays = sorted(_arrays(arguments), key=lambda array: np.lib.array_utils.byte_bounds(array)[0])
        self._blocks = []
        for array in arrays:
            low, high = np.lib.array_utils.byte_bounds(array)
            last = self._blocks[-1] if self._blocks else None
            if last and low < last.high:
                last.high = max(last.high, high)
                last.arrays.append(array)
            else:
                self._blocks.append(_Block(low, high, array))
        copies = {id(array): copy for block in self._blocks for array, copy in block.copies()}
        self.arguments = _replaced(arguments, copies)

    def check(self, kernel: str):
        """Copy what was written back; raise Overrun if a guard was touched."""
        for block in self._blocks:
            block.give_back()
            for side, guard in (("before", block.before), ("behind", block.behind)):
                touched = np.flatnonzero(guard != SET)
                if touched.size:
                    shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in block.arrays)
                    raise Overrun(f"{kernel} wrote {side} its {shapes}, at byte "
                                  f"{touched[0] - (GUARD if side == 'before' else 0)} from its "
                                  f"{'begin' if side == 'before' else 'end'}")


class _Block:
    """Memory from ``low`` to ``high``, and a copy of it between guards."""

    def __init__(self, low, high, array):
        self.low, self.high, self.arrays = low, high, [array]

    def copies(self):
        """Each array and what stands for it in the copy."""
        size = self.high - self.low
        self._held = np.full(size + 3 * GUARD, SET, np.uint8)
        first = GUARD + (self.low - self._held.ctypes.data) % GUARD              # aligned as the original is
        self._inner = self._held[first:first + size]
        self.before, self.behind = self._held[first - GUARD:first], self._held[first + size:first + size + GUARD]
        ctypes.memmove(self._inner.ctypes.data, self.low, size)
        for array in self.arrays:
            copy = np.ndarray(array.shape, array.dtype, self._inner.data if array.size else None,
                              array.ctypes.data - self.low if array.size else 0, array.strides if array.size else None)
            copy.flags.writeable = array.flags.writeable
            yield array, copy

    def give_back(self):
        if any(array.flags.writeable for array in self.arrays):
            ctypes.memmove(self.low, self._inner.ctypes.data, self.high - self.low)


def _arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _arrays(item)


def _replaced(value, copies):
    if isinstance(value, np.ndarray):
        return copies[id(value)]
    if isinstance(value, tuple):
        items = [_replaced(item, copies) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


@contextmanager
def guarded_allocations(cupy):
    """Within this block everything that CuPy allocates lies between guards, which are checked at its end. Yields a
    list whose length is the number of allocations."""
    pool, held, pinned = cupy.get_default_memory_pool(), [], []

    def allocate(size):
        block = pool.malloc(size + 2 * GUARD)
        inner = block + GUARD
        stream = cupy.cuda.get_current_stream()
        block.memset_async(SET, GUARD, stream)
        (inner + size).memset_async(SET, GUARD, stream)
        held.append((block, size))
        return inner

    def allocate_pinned(size):
        block = cupy.get_default_pinned_memory_pool().malloc(size + 2 * GUARD)
        np.frombuffer(block, np.uint8, size + 2 * GUARD)[:] = SET
        pinned.append((block, size))
        return block + GUARD

    cupy.cuda.set_pinned_memory_allocator(allocate_pinned)
    try:
        with cupy.cuda.using_allocator(allocate):
            yield held
        cupy.cuda.Device().synchronize()
        for block, size in held:
            around = cupy.asnumpy(cupy.ndarray(size + 2 * GUARD, np.uint8, block))
            _require_set(around, size, "on the GPU")
        for block, size in pinned:
            _require_set(np.frombuffer(block, np.uint8, size + 2 * GUARD), size, "in pinned memory")
    finally:
        cupy.cuda.set_pinned_memory_allocator(cupy.get_default_pinned_memory_pool().malloc)


def _require_set(around, size, where):
    touched = np.flatnonzero(np.r_[around[:GUARD], around[GUARD + size:]] != SET)
    if touched.size:
        at = touched[0] - GUARD if touched[0] < GUARD else touched[0] - GUARD + size
        raise Overrun(f"a kernel wrote outside of {size} bytes {where}, at byte {at} from their begin")
