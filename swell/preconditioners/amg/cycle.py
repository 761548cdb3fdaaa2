"""The cycle, an operator for balanced vectors: x = M b with M ≈ (D A D)⁻¹ and D = diag(√(ω / dᵢ)) (balancing.py).

Down: each level computes b_c for the next one. A dense inverse solves the coarsest level; if that is too large, only
the smoother is applied. Up: each level computes its x from the next level's. A level takes four products
(four_products.py), two on small levels of a GPU (two_products.py), or more with a polynomial smoother (polynomial.py).
In a W-cycle the levels below the finest go down and up twice.

M is as symmetric as A. It is positive definite if A is, since the eigenvalues of D A D lie in (0, ω] with ω < 2.
"""
from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np

from swell.core.operator import LinearOperator
from swell.formats.csr import CSR
from swell.formats.sell import SELL
from swell.preconditioners.amg.balancing import balancing, smoothing_matrix
from swell.preconditioners.amg.coarsest import inverse_of
from swell.preconditioners.amg.four_products import FourProducts
from swell.preconditioners.amg.polynomial import Polynomial, Relaxation
from swell.preconditioners.amg.smoother import relaxation, steps
from swell.preconditioners.amg.two_products import TwoProducts

CYCLES = "V", "W"
TWICE = 3               # levels below the finest that a W-cycle visits twice; all would double the launches a level
SMALL = {"cpu": 0, "cuda": 1 << 20}     # entries of A P, at most, for which launches cost more than memory traffic


class Cycle(LinearOperator):
    """A cycle over the levels of a hierarchy.

    Attributes
    ----------
    scale : float64 array, shape (n,)
        D of the finest level.
    levels : list of FourProducts, TwoProducts or Polynomial
    """

    scratch = ("_b", "_x")

    def __init__(self, hierarchy, dtype, symmetry):
        A = hierarchy.matrices[0]
        super().__init__(A.shape, np.result_type(dtype, np.complex64) if symmetry.complex else np.dtype(dtype), A.space)
        self.hierarchy, self.symmetry, s = hierarchy, symmetry, hierarchy.settings
        self.spd = self.hermitian = symmetry.hermitian
        self.symmetric, self.self_adjoint = symmetry.symmetric, symmetry.any
        self._adjoint = None
        self._steps, self._omega = steps(s.smoother, s.degree), relaxation(s.smoother, s.degree)
        self._scales = balancing(hierarchy, self._omega)
        self.levels = [self._level(level, *around) for level, around in zip(hierarchy.levels, pairwise(self._scales))]
        self._end = (inverse_of(symmetry)(hierarchy.last, self._scales[-1], self.dtype) if hierarchy.dense
                     else Smoothed(hierarchy, self._scales[-1], self.dtype, self._steps))
        self._b, self._x = ([self.space.empty(M.shape[0], self.dtype) for M in hierarchy.matrices[1:]]
                            for _ in range(2))
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def _level(self, level, fine, coarse):
        """Return the products of one `Level`, a new object; ``fine`` and ``coarse`` are the diagonals of D on it and on
        the next."""
        if len(self._steps) > 1:
            return Polynomial(level, fine, coarse, self.dtype, self._steps)
        few = level.AP.C.nnz <= SMALL[self.space.name] and self.hierarchy.settings.cycle == "V"
        if few and level.order is not None and self.symmetry.any:              # R S is then Sᴴ P's adjoint
            return TwoProducts(level, fine, coarse, self.dtype, self.symmetry.hermitian)
        return FourProducts(level, fine, coarse, self.dtype)

    @property
    def scale(self):
        return self._scales[0]

    def update(self, A):
        self.hierarchy.update(A)
        for old, new in zip(self._scales, balancing(self.hierarchy, self._omega)):
            old[...] = new
        for level in self.levels:
            level.update()
        self._end.update(self.hierarchy.last, self._scales[-1])
        if self._adjoint is not None:
            self._adjoint = None
            self.revision += 1
        self.space.synchronize()

    def apply(self, x, out, alpha=1, beta=0):
        self._apply(self.levels, self._end.solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self.hermitian:
            return self.apply(x, out, alpha, beta)
        if self._adjoint is None:
            self._adjoint = AdjointLevels(self)
        self._apply(self._adjoint.levels, self._adjoint.solve, x, out, alpha, beta)

    def _apply(self, levels, end, x, out, alpha, beta):
        if alpha == 1 and beta == 0:
            return self._solve(levels, end, 0, x, out)
        made = self.space.empty(self.shape[0], self.dtype)
        self._solve(levels, end, 0, x, made)
        self.space.axpby(alpha, made, beta, out)

    def _solve(self, levels, end, k, b, x):
        """Write x: the result of level k of ``levels``, and of those below it, for the right-hand side b, from x = 0.
        ``end`` solves the coarsest level."""
        if k == len(levels):
            return end(b, x)
        level, b_coarse, x_coarse = levels[k], self._b[k], self._x[k]
        level.descend(b, b_coarse)
        self._solve(levels, end, k + 1, b_coarse, x_coarse)
        level.ascend(b, x_coarse, x)
        if self.hierarchy.settings.cycle == "W" and 1 <= k <= TWICE:
            level.descend_again(b, x, b_coarse)
            self._solve(levels, end, k + 1, b_coarse, x_coarse)
            level.ascend_again(b, x_coarse, x)

    @property
    def nbytes(self):
        parts = *self.levels, self._end, *self._b, *self._x, *self._scales
        parts += () if self._adjoint is None else (*self._adjoint.levels, self._adjoint)
        return self.hierarchy.nbytes + sum(part.nbytes for part in parts)


class AdjointLevels:
    """The levels of the adjoint cycle, Mᴴ: with Sᴴ, R̃ᴴ and P̃ᴴ for S, P̃ and R̃. The order of steps is the same."""

    def __init__(self, cycle):
        steps, dtype, around = cycle._steps, cycle.dtype, [*pairwise(cycle._scales)]
        make = (lambda *given: Polynomial(*given, steps, True)) if len(steps) > 1 else (
            lambda *given: FourProducts(*given, True))
        self.levels = [make(level, *scales, dtype) for level, scales in zip(cycle.hierarchy.levels, around)]
        self._end = cycle._end.adjoint()
        self.solve = self._end.solve
        cycle.space.synchronize()

    @property
    def nbytes(self):
        return self._end.nbytes


class Smoothed:
    """The coarsest level if it is too large for a dense inverse: the smoother alone."""

    def __init__(self, hierarchy, scale, dtype, steps):
        A = hierarchy.last
        stored = (CSR() if A.space.name == "cpu" else SELL()).build
        self.S, self._steps = stored(smoothing_matrix(A, scale, dtype)), steps
        self._relaxation = Relaxation(self.S, steps) if len(steps) > 1 else None

    def adjoint(self):
        """Return a new object that smooths with Sᴴ."""
        made = copy.copy(self)
        made.S = self.S.convert(self.S.to_csr().transpose(conjugate=True))
        made._relaxation = Relaxation(made.S, self._steps) if self._relaxation else None
        return made

    def update(self, A, scale):
        """Recompute S, in place, for new values of A and its ``scale``, the diagonal of D."""
        self.S.update(smoothing_matrix(A, scale, self.S.dtype))

    def solve(self, b, x):
        """Write x: the result of the smoother's steps for the right-hand side b, from x = 0."""
        if self._relaxation:
            self._relaxation.start(b, x)
        else:
            self.S.apply_plus(b, b, x)                                         # x = b + S b

    @property
    def nbytes(self):
        return self.S.nbytes + (self._relaxation.nbytes if self._relaxation else 0)
