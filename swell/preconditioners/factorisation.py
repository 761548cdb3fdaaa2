"""Incomplete factorisation on a given pattern: base of all ways to compute the numbers, of IC and LU.

Row by row and by levels, L and U are exact on the pattern (Saad, Iterative Methods, algorithm 10.3). By fixed-point
sweeps over all entries at once they come nearer with every sweep (Chow and Patel 2015). The sweeps have two buffers
here, so that they give the same bits every time.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

NONE = np.iinfo(np.int64).max   # no row


class Factorisation(ABC):
    """One way to compute the values of ``factor``.

    Parameters
    ----------
    factor : CSRMatrix or BSRMatrix
        Its pattern is given, its values are written.
    kernels : str
        Name of the kernels' file.
    tiny : float
        Multiple of the machine precision below which a pivot is a breakdown, relative to its row.

    Attributes
    ----------
    bad : int array of the space, shape (2,)
        The first row with a bad pivot, and how many rows have one; written by the kernels.
    change : float
        Relative change of the factors in the last fixed-point sweep; 0 where there are no sweeps.
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
        """Run the kernels, which write the factor and ``bad``."""

    def __call__(self, *values):
        """Factor. Returns the first row with a bad pivot, or None, and how many rows were counted."""
        self.clear()
        self.factorise(*values)
        first, count = (int(v) for v in self.space.to_host(self.bad))  # sync
        return None if first == NONE else first, count

    def clear(self):
        """Forget bad pivots."""
        self.space.from_host(np.array([NONE, 0]), self.bad)

    def iterate(self, sweeps, old, sweep):
        """Call ``sweep(old, fresh)`` ``sweeps`` times, with two buffers in turn. Returns the last two iterates."""
        fresh = self.space.xp.empty_like(old)
        for _ in range(sweeps):
            self.clear()                         # the last sweep's pivots count
            sweep(old, fresh)
            old, fresh = fresh, old
        self.factor.data[...] = old
        return fresh, old
