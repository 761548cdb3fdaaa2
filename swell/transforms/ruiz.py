"""Ruiz equilibration: the rows and columns of A' = L A R get p-norm 1. Ruiz 2001; Knight, Ruiz and Uçar 2011;
algorithm 4 of the finite-volume paper in its corrected form.

Each step divides L by √‖row‖ and R by √‖column‖ of the matrix scaled so far; L = R if |A| is symmetric. A step is one
product with |A|ᵖ (two if |A| is not symmetric) and some passes over vectors. A itself is scaled once, at the end. The
largest deviation from 1, (5.32), is read every fifth step. Asymptotically, each step halves it in the maximum norm, and
also if A is symmetric with a strong diagonal. Else each step reduces it by (1 + σ)/2, where σ is the second singular
value of the limit.

Differs from the paper in two points. The norms come from products; the paper scales all entries in each step. The first
step is in the maximum norm, which brings |A|ᵖ into range. For p < ∞ an unsymmetric matrix converges only if it has
total support. If the tolerance is not met after ``maxiter`` steps, the scaling reached is used, and the printed result
says so. This is valid: the judge uses the norm of the original residual.
"""
from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.formats.symmetry import modulus_symmetric
from swell.transforms.scaling import Scaling

CHECK = 5                   # the deviation is read every CHECK steps


@dataclass(frozen=True)
class RuizScaling:
    """Two-sided scaling to rows and columns of p-norm 1.

    Attributes
    ----------
    p : float
        The norm: at least 1; ``inf`` is the maximum norm.
    tolerance : float
        Largest allowed deviation of a norm from 1.
    maxiter : int
        Largest number of steps.
    symmetric : bool or None
        True for L = R. None means L = R if |A| is symmetric.
    """

    p: float = 2.0
    tolerance: float = 1e-8
    maxiter: int = 200
    symmetric: bool | None = None

    problem = "any matrix without empty rows or columns"
    cost = "4 bytes a row in judged iterations"

    def __post_init__(self):
        if isinstance(self.p, bool) or not isinstance(self.p, numbers.Real) or not self.p >= 1:
            raise InputError(f"RuizScaling(p={self.p!r}): expected a number of at least 1, or inf")
        if not isinstance(self.tolerance, numbers.Real) or not 0 < self.tolerance < 1:
            raise InputError(f"RuizScaling(tolerance={self.tolerance!r}): expected a number between 0 and 1")
        if self.symmetric not in (None, True, False):
            raise InputError(f"RuizScaling(symmetric={self.symmetric!r}): expected True, False or None")
        positive(self, "maxiter")

    def build(self, A):
        """Return a new RuizTransform for a CSR matrix A, which is not changed.

        Raises
        ------
        InputError
            If a row or column has only zeros, or if ``symmetric=True`` and |A| is not symmetric.
        """
        return RuizTransform(A, self)


class RuizTransform(Scaling):
    """The transform L A R with equilibrated rows and columns.

    Attributes
    ----------
    steps : int
        Number of steps done.
    deviation : float
        Largest deviation from 1, (5.32), over rows and columns.
    """

    def __init__(self, A, settings):
        symmetric = settings.symmetric
        if symmetric is not False:
            mirrored = modulus_symmetric(A)
            if symmetric and not mirrored:
                raise InputError("RuizScaling(symmetric=True): |A| is not symmetric; leave symmetric out")
            symmetric = mirrored
        super().__init__(A, symmetric)
        self.settings, self.symmetric = settings, symmetric
        self.update(A)

    def update(self, A):
        """Recompute the scaling vectors and the residual weights, in place, for another matrix A."""
        moduli = A.absolute().astype(np.float64)
        sides = [moduli] if self.symmetric else [moduli, moduli.transpose()]
        scales = self._iterate(moduli, self._first(sides))
        left, right = scales[0], scales[-1]
        shift = self._near_one(left)
        self.left[...] = left * shift
        if not self.symmetric:
            self.right[...] = right
        self._weights[...] = (left * shift) ** -2.0

    def _first(self, sides):
        """Return the first scaling vectors, 1 / √(largest modulus of each row), for each matrix in ``sides``.

        ``sides``: [|A|], or [|A|, |A|ᵀ]. Raises InputError for a row of zeros."""
        xp = self.space.xp
        scales = []
        for what, side in zip(("row", "column"), sides):
            largest = side.row_maxima(xp.ones(side.space.ranks.local_rows(side.shape[1])))
            with self.space.ranks.agreed():
                first, empty = self.space.find_true(largest == 0)
                if empty:
                    raise InputError(f"Ruiz scaling divides by norms, and {empty} {what}s of A contain only zeros "
                                     f"(the first is {what} {first}): the matrix is singular; remove them")
            scales.append(1 / xp.sqrt(largest))
        return scales

    def _iterate(self, moduli, scales):
        """Do steps in the p-norm until every row and column norm is within the tolerance; return new scaling vectors.

        ``moduli``: |A|. ``scales``: scaling vectors to start from, as `_first` returns them."""
        xp, p = self.space.xp, self.settings.p
        start, finite = scales, math.isfinite(p)
        root = 1 / p if finite else 1.0
        powers = moduli.scaled(start[0], start[-1])              # entries at most about 1
        if finite:
            powers = powers.power(p)
        sides = [powers] if self.symmetric else [powers, powers.transpose()]
        rows, greatest = self.space.ranks.local_rows(moduli.shape[0]), self.space.max_on_host
        factors = [xp.ones(rows) for _ in sides]                 # relative to start; to the power p if p is finite
        for step in range(self.settings.maxiter + 1):
            norms = []
            for k, side in enumerate(sides):
                other = factors[-1 - k]
                norms.append(factors[k] * (side.times(other) if finite else side.row_maxima(other)))
            self.steps = step
            if step % CHECK == 0 or step == self.settings.maxiter:
                self.deviation = max(0.0, *(greatest(abs(1 - norm**root)) for norm in norms))
                if self.deviation <= self.settings.tolerance:
                    break
            if step < self.settings.maxiter:
                factors = [factor / xp.sqrt(norm) for factor, norm in zip(factors, norms)]
        return [first * factor**root for first, factor in zip(start, factors)]

    def effects(self, A):
        lines = [f"{self.steps} steps, norms within {self.deviation:.1e} of 1"
                 + ("" if self.deviation <= self.settings.tolerance else
                    f", not the {self.settings.tolerance:g} asked for: raise maxiter, or choose p=inf")]
        return lines + super().effects(A)
