"""Small arrays of a GPU in shared allocations."""
from __future__ import annotations

import types

import numpy as np

from swell.core.slab import ALIGNED, FIRST, MOST, Slab


class Pointer:
    """An address in an allocation of so many bytes."""

    def __init__(self, size, at=0):
        self.size, self.at = size, at

    def __add__(self, offset):
        return Pointer(self.size, self.at + offset)


def made():
    """A Slab, and what it allocated."""
    allocations = []

    def alloc(size):
        allocations.append(Pointer(size))
        return allocations[-1]
    xp = types.SimpleNamespace(cuda=types.SimpleNamespace(alloc=alloc),
                               ndarray=lambda shape, dtype, memory=None: (np.empty(shape, dtype), memory))
    return Slab(xp), allocations


def test_arrays_lie_side_by_side_and_within():
    slab, allocations = made()
    rng, end = np.random.default_rng(0), {}
    for _ in range(3000):
        shape = int(rng.integers(1, 9000)) if rng.random() < 0.5 else (int(rng.integers(1, 90)), int(rng.integers(1, 90)))
        array, memory = slab.empty(shape, rng.choice([np.uint8, np.int32, np.float64]))
        if memory is None:
            continue
        slot = len(allocations)
        assert memory.at % ALIGNED == 0 and memory.at >= end.get(slot, 0)
        assert memory.at + array.nbytes <= memory.size
        end[slot] = memory.at + array.nbytes
    sizes = [a.size for a in allocations]
    assert sizes[0] == FIRST and sizes[-1] == MOST and sorted(sizes) == sizes


def test_large_and_empty_arrays_have_their_own_memory():
    slab, allocations = made()
    assert slab.empty(0, np.float64)[1] is None and slab.empty((0, 3), np.float64)[1] is None
    assert slab.empty(FIRST // 8, np.float64)[1] is None and not allocations
    assert slab.empty((), np.float64)[0].shape == () and len(allocations) == 1
