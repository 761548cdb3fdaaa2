"""Sweeps: a triangular solve by a fixed number of Jacobi sweeps. Anzt, Chow and Dongarra 2015; Chow and Patel 2015.

With T = (I + N) D: w ← b − N w from w = b, then x = D⁻¹ w. A sweep is a product with the strict triangle. N is
nilpotent, so as many sweeps as T has levels give the exact solution. Few give an approximation, which suffices for a
preconditioner. From a zero start and with two buffers, a fixed count is a fixed linear operator: it gives the same bits
every time, and needs no flexible method. Sweeps with Tᴴ are the adjoint of sweeps with T. So L and Lᴴ with the same
count make a Hermitian positive definite preconditioner.

The first sweep is free. Each other one reads 12 bytes an entry (padding included), 12 and 3 vectors a row: one launch.
If off-diagonal entries are large, sweeps may increase the error. N is nilpotent, so its spectral radius says nothing
about that. Setup measures the error that k sweeps leave, ‖(I − D⁻¹ T)ᵏ v‖ over ‖v‖ for a fixed random v. If it exceeds
``growth``, ``guard`` names the replacement (guard.py).

``in_place=True`` is the form of "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", algorithms 6 and
7. A sweep reads entries that other threads are writing. It converges faster, but is neither linear nor repeatable, so
the Krylov method must be flexible.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.settings import Idle, idle_notes, positive, switch, without_effect
from swell.formats.csr import CSRMatrix
from swell.preconditioners.block_triangular import BlockSwept
from swell.preconditioners.exact import Exact
from swell.preconditioners.guard import GuardedSolve
from swell.preconditioners.level_schedule import Sliced, SlicedTriangular, by_length
from swell.preconditioners.triangular import SINGLE, random_vector

MAX_COUNT = 32          # largest count that guard="more" tries
TOO_FEW = "with so few sweeps"


@dataclass(frozen=True)
class Sweeps(GuardedSolve):
    """A fixed number of Jacobi sweeps from a zero start.

    Attributes
    ----------
    count : int
        Sweeps for a lower triangle. One sweep divides by the diagonal only.
    upper : int
        Sweeps for an upper triangle; 0: ``count``.
    single : bool
        Store the factor in single precision; vectors keep their precision.
    in_place : bool
        Sweeps from the second on update their vector in place, asynchronously, except the last.
    guard : str
        Replacement of the sweeps if their remainder exceeds ``growth``. "exact": an exact solve; "more": the fewest
        sweeps, up to 32, whose remainder is small enough, else "exact"; "error": raise an error; "off": measure
        nothing.
    growth : float
        Largest remainder that is accepted.
    """

    count: int = 3
    upper: int = 0
    single: bool = False
    in_place: bool = False

    idle = SINGLE, Idle("in_place", TOO_FEW, "the first needs no vector, and the last writes elsewhere")
    remedy = "more sweeps"
    cost = "a product with the strict triangle for each sweep but the first"

    def __post_init__(self):
        positive(self, "count")
        positive(self, "upper", 0)
        switch(self, "single")
        switch(self, "in_place")
        if max(self.count, self.upper) == 1:
            without_effect(self, "with one sweep, which is the diagonal alone", "give count=3, say", "in_place")
        super().__post_init__()

    def unguarded(self, T, lower, unit, order):
        operator = (SweptTriangular if isinstance(T, CSRMatrix) else BlockSwept)(T, lower, unit, order, self)
        operator.notes += idle_notes(self, () if operator.count > 2 else (TOO_FEW,))
        return operator

    def remainder(self, operator):
        return operator.remainders(operator.count)[-1]

    def named(self, operator):
        return f"{operator.count} sweeps with the {'lower' if operator.lower else 'upper'} triangle leave"

    def better(self, operator, T):
        enough = np.array(operator.remainders(MAX_COUNT)) <= self.growth
        enough[:operator.count] = False
        count = int(enough.argmax()) + 1
        return (self._with_count(count, operator.lower), f"{count} are done") if enough.any() else None

    def exactly(self):
        return Exact(single=self.single)

    def for_one_triangle(self, lower):
        count = self.count if lower or not self.upper else self.upper
        return replace(self, count=count, upper=0, in_place=self.in_place and count > 1)

    def _with_count(self, count, lower):
        """Return new settings with ``count`` sweeps for one triangle, the lower one if ``lower``; for both if they had
        equal counts."""
        if self.upper in (0, self.count):
            return replace(self, count=count, upper=0)
        return replace(self, count=count) if lower else replace(self, upper=count)

    @property
    def symmetric(self) -> bool:
        """True if both triangles have the same count and the sweeps are linear."""
        return self.upper in (0, self.count) and not self.in_place

    alike = symmetric


class SweptTriangular(SlicedTriangular):
    """Approximates T⁻¹ by sweeps over the rows in natural order."""

    scratch = ("_w",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        xp, n = self.space.xp, T.shape[0]
        none = T.indptr[:0]
        sequence, _ = by_length(T, xp.arange(n), none.astype(np.int32), none)
        place_of = xp.arange(n, dtype=T.indptr.dtype) if order is None else order.astype(T.indptr.dtype, copy=False)
        self.sliced = Sliced(T, lower, unit, sequence, place_of[sequence], place_of, self.stored(T.dtype))
        self.count = settings.count if lower or not settings.upper else settings.upper
        self._w = self.space.empty((2, n), T.dtype)
        self._vector = self.space.kernels("swell.core", "vector", T.dtype)
        self.variable = settings.in_place and self.count > 2
        self._diagonal = xp.empty(n if self.count == 1 else 0, T.dtype)
        self._set_diagonal()

    def _set_diagonal(self):
        if self.count == 1:
            self._diagonal[self.sliced.rows] = self.sliced.inverse

    def load(self, T):
        super().load(T)
        self._set_diagonal()

    def solve(self, x, out):
        if self.count == 1:
            kind = out.dtype.type
            self._vector.multiply_add(self._diagonal, x, out, kind(1), kind(0))
            return
        w, other = self._w
        old, in_place = x, self.settings.in_place
        if in_place or (x is out and self.count == 2):                         # x must not change during the gather
            self.space.copy(x, w)
            old = w
        for k in range(2, self.count):
            new = w if in_place or old is not w else other
            self._kernels.sweep(*self.sliced.arrays, x, old, new, False)       # w = b − N w
            old = new
        self._kernels.sweep(*self.sliced.arrays, x, old, out, True)            # x = D⁻¹ (b − N w)

    def remainders(self, count):
        """Return ‖(I − D⁻¹ T)ᵏ v‖ / ‖v‖, the error that k sweeps leave, for a fixed random v and k = 1 to ``count``: a
        list of float. Allocates vectors; for setup only."""
        xp, v = self.space.xp, random_vector(self.shape[0], self.dtype, self.space)
        old, zero, out = xp.empty_like(v), xp.zeros_like(v), xp.empty_like(v)
        old[self.sliced.rows] = v[self.sliced.rows] / self.sliced.inverse
        norm, norms = self.space.norms(v)[0], []  # sync
        for _ in range(count):
            self._kernels.sweep(*self.sliced.arrays, zero, old, out, True)
            norms.append(self.space.norms(out)[0] / norm)  # sync
            fresh = xp.empty_like(v)
            self._kernels.sweep(*self.sliced.arrays, zero, old, fresh, False)
            old = fresh
        return norms

    def describe(self):
        return f"Sweeps(count={self.count}{', in_place=True' if self.settings.in_place else ''})"
