"""Small arrays of a GPU that share allocations.

A multigrid setup makes hundreds of small arrays, and CuPy's pool takes some 5 µs for each; a place in a slab takes 1.5.
A slab grows from 256 KiB to 4 MiB, and an array gets a place if it needs at most a quarter of it. A slab is freed when
none of its arrays is left.
"""
import math

import numpy as np

FIRST, MOST = 1 << 18, 1 << 22      # bytes of the first slab, and of a slab at most
SHARE = 4               # an array takes at most one part in this many of a slab
ALIGNED = 512           # bytes; as in CuPy's pool


class Slab:
    """Makes arrays of the module ``xp`` (CuPy) on the current device and stream; one caller at a time."""

    def __init__(self, xp):
        self._xp, self._memory, self._size, self._used = xp, None, FIRST, 0

    def empty(self, shape, dtype):
        """Return a new array, not cleared. ``shape``: an int or a tuple."""
        dtype = np.dtype(dtype)
        size = (math.prod(shape) if isinstance(shape, tuple) else int(shape)) * dtype.itemsize
        if not 0 < SHARE * size <= self._size:
            return self._xp.ndarray(shape, dtype)
        taken = -(-size // ALIGNED) * ALIGNED
        if self._memory is None or self._used + taken > self._size:
            self._size = FIRST if self._memory is None else min(2 * self._size, MOST)
            self._memory, self._used = self._xp.cuda.alloc(self._size), 0
        place = self._memory + self._used
        self._used += taken
        return self._xp.ndarray(shape, dtype, place)
