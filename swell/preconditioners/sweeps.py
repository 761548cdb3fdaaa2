"""Sweeps: a triangular solve by a fixed number of Jacobi sweeps. Anzt, Chow and Dongarra 2015; Chow and Patel 2015.

x = D⁻¹ w, w ← b − N w with T = (I + N) D, from w = b: a sweep is a product with the strict triangle. N is nilpotent, so
that as many sweeps as there are levels give the exact solution; few give an approximation, which is what a
preconditioner needs. From a zero start and with two buffers, a fixed count is a fixed linear operator: the same bits
every time, no flexible method needed (in place, asynchronously, it would be neither). Sweeps with Tᴴ are the adjoint of
those with T, so L and Lᴴ with the same count make a Hermitian positive definite preconditioner.

A sweep but the first, which is free, reads 12 bytes an entry (padding included), 12 and 3 vectors a row: one launch.
The growth of the remainder ‖N^count‖ is not guarded against: where off-diagonals are large, sweeps may be worse than
none.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.settings import positive
from swell.preconditioners.level_schedule import Gathering, Sliced, by_length
from swell.preconditioners.triangular import TriangularSolve


@dataclass(frozen=True)
class Sweeps(TriangularSolve):
    """Jacobi sweeps from a zero start, a fixed number of them.

    Attributes
    ----------
    count : int
        Sweeps for a lower triangle. One is the diagonal alone.
    upper : int
        Sweeps for an upper triangle; 0: as for a lower one.
    single : bool
        Store the factor in single precision; vectors stay as they are.
    """

    count: int = 3
    upper: int = 0
    single: bool = False

    cost = "a product with the strict triangle for each sweep but the first"

    def __post_init__(self):
        positive(self, "count")
        positive(self, "upper", 0)

    def build(self, T, lower, unit=False, order=None):
        return SweptTriangular(T, lower, unit, order, self)

    def alone(self, lower):
        return replace(self, count=self.count if lower or not self.upper else self.upper, upper=0)

    @property
    def symmetric(self) -> bool:
        """Both triangles have the same count."""
        return self.upper in (0, self.count)


class SweptTriangular(Gathering):
    """About T⁻¹, by sweeps, in natural order."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        xp, n = self.space.xp, T.shape[0]
        natural = xp.arange(n, dtype=T.indptr.dtype)
        sequence = by_length(xp, natural, xp.diff(T.indptr), xp.zeros(n, np.int64))
        place_of = natural if order is None else order
        self.sliced = Sliced(T, lower, unit, sequence, place_of[sequence], place_of, self.stored(T.dtype))
        self.count = settings.count if lower or not settings.upper else settings.upper
        self._w = self.space.empty((2, n), T.dtype)
        self._vector = self.space.kernels("swell.core", "vector", T.dtype)

        self._diagonal = xp.empty(n if self.count == 1 else 0, T.dtype)
        self._set_diagonal()

    def _set_diagonal(self):
        if self.count == 1:
            self._diagonal[self.sliced.rows] = self.sliced.inverse

    def update(self, T):
        super().update(T)
        self._set_diagonal()

    def solve(self, x, out):
        if self.count == 1:
            kind = out.dtype.type                # one type, one compilation
            self._vector.multiply_add(self._diagonal, x, out, kind(1), kind(0))
            return
        w, other = self._w
        if x is out and self.count == 2:         # the only product would overwrite what it gathers
            self.space.copy(x, w)
            x = w
        old = x
        for k in range(2, self.count):
            new = other if old is w else w
            self._kernels.sweep(*self.sliced.arrays, x, old, new, False)       # w = b − N w
            old = new
        self._kernels.sweep(*self.sliced.arrays, x, old, out, True)            # x = D⁻¹ (b − N w)

    def describe(self):
        return f"Sweeps(count={self.count})"
