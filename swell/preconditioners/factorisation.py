"""Incomplete factorisation on a given pattern: base class of all algorithms that compute the values of IC and LU.

Row by row and by levels, L and U are exact on the pattern (Saad, Iterative Methods, algorithm 10.3). Fixed-point
sweeps over all entries at once approach these values (Chow and Patel 2015). The sweeps use two buffers here, so that
they give the same bits every time.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

NONE = np.iinfo(np.int64).max   # no row


class Factorisation(ABC):
    """An algorithm that computes the values of ``factor``.

    Parameters
    ----------
    factor : CSRMatrix or BSRMatrix
        Its pattern is given; the algorithm writes its values.
    kernels : str
        Name of the kernel file.
    tiny : float
        A pivot below ``tiny`` times the machine precision, relative to its row, is a breakdown.

    Attributes
    ----------
    bad : int device array, shape (2,)
        The first row with a bad pivot, and the number of bad pivots (LU only). The kernels write it.
    change : float
        Relative change of the factors in the last fixed-point sweep; 0 without sweeps.
    """

    nbytes = 0
    change = 0.0

    def __init__(self, factor, kernels, tiny):
        self.factor, self.space = factor, factor.space
        self.kernels = self.space.kernels("swell.preconditioners", kernels, factor.dtype)
        self.bad = self.space.xp.empty(2, np.int64)
        self.tiny = tiny * float(np.finfo(factor.dtype).eps)

    @abstractmethod
    def factorise(self, *values):
        """Run the kernels, which write the values of ``factor`` and ``bad``. Each algorithm names its arguments
        ``values``."""

    def __call__(self, *values):
        """Factor: write the values of ``factor``. Returns the first row with a bad pivot, or None, and the number of
        bad pivots (LU only). ``values`` are the arguments of `factorise`."""
        self.clear()
        self.factorise(*values)
        first, count = (int(v) for v in self.space.to_host(self.bad))  # sync
        return None if first == NONE else first, count

    def clear(self):
        """Reset ``bad`` to "no bad pivot"."""
        self.space.from_host(np.array([NONE, 0]), self.bad)

    def iterate(self, sweeps, old, sweep):
        """Call ``sweep(old, fresh)`` ``sweeps`` times; it must write ``fresh`` from ``old``, two arrays of the factor's
        values that change roles after each call.

        ``old`` is the start, and is overwritten. Writes the last iterate into ``factor``. Returns the last two
        iterates, the older one first."""
        fresh = self.space.xp.empty_like(old)
        for _ in range(sweeps):
            self.clear()                         # only pivots of the last sweep count
            sweep(old, fresh)
            old, fresh = fresh, old
        self.factor.data[...] = old
        return fresh, old
