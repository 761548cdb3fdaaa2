"""Smoothing by a polynomial of higher degree (smoother.py).

The steps for Ã e = r from e = 0, with Ã = I − S, give e = q(S) r for a polynomial q. Horner's rule evaluates it: one
launch for each product with S, vectors included.
"""
from __future__ import annotations

from numpy.polynomial import Polynomial as Poly

from swell.preconditioners.amg.four_products import FourProducts


def coefficients(steps) -> list[float]:
    """Return the coefficients of q, from the constant on; ``steps`` is the result of `smoother.steps`.

    A step is z = a z + b r, x = x + β z, r = r − Ã z, with x, z and r as polynomials in S times the first r."""
    of_A = Poly([1, -1])                                                       # Ã = 1 − S
    x, z, r = Poly([0]), Poly([0]), Poly([1])
    for a, b, beta in steps:
        z = a * z + b * r
        x, r = x + beta * z, r - of_A * z
    return [float(c) for c in x.coef[:len(steps)]]


class Relaxation:
    """The smoother's steps on Ã x = b, Ã = I − S.

    Parameters
    ----------
    S : CSRMatrix, SELL or SharedRows
    steps : list of (float, float, float)
        The result of `smoother.steps`, two or more.
    """

    scratch = ("r", "_y")

    def __init__(self, S, steps):
        self.S, self._q, space = S, coefficients(steps), S.space
        self.r = space.empty(S.shape[0], S.dtype)
        self._y = [space.empty(S.shape[0], S.dtype) for _ in range(min(len(steps) - 2, 2))]

    def start(self, b, x):
        """Write x: the result of the steps from x = 0; the old x is never read."""
        self._add(b, b, 0, x)

    def resume(self, b, x):
        """Change x in place by the steps, from the given x. Overwrites ``self.r``."""
        self.residual(b, x)
        self._add(self.r, x, 1, x)

    def residual(self, b, x):
        """Write ``self.r`` = b − Ã x."""
        self.S.apply_sum(x, 1, b, 1, x, -1, self.r)

    def _add(self, r, base, share, x):
        """Write x = q(S) r + share · base; x may be ``base``, but not r."""
        *lower, factor = self._q
        y = r
        for k, q in reversed([*enumerate(lower)]):                             # y = S y + q r
            out = self._y[k % len(self._y)] if k else x
            self.S.apply_sum(y, factor, r, q, base, 0 if k else share, out)
            y, factor = out, 1

    @property
    def nbytes(self):
        return self.r.nbytes + sum(y.nbytes for y in self._y)


class Polynomial:
    """One level with a polynomial smoother; see `Relaxation` for ``steps``, `FourProducts` for the other parameters."""

    scratch = ("_x",)

    def __init__(self, level, fine, coarse, dtype, steps, adjoint=False):
        self._products = FourProducts(level, fine, coarse, dtype, adjoint)
        self._relaxation = Relaxation(self._products.S, steps)
        self._x = level.A.space.empty(fine.size, dtype)

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level`."""
        self._products.update()

    def descend(self, b, coarse):
        """Write the next level's right-hand side to ``coarse``, from this level's right-hand side b. Keeps this level's
        x for `ascend`."""
        self._relaxation.start(b, self._x)
        self._relaxation.residual(b, self._x)
        self._products.R.apply(self._relaxation.r, coarse)                     # b_c = R̃ r

    def ascend(self, b, coarse, x):
        """Write x, this level's result for the right-hand side b; ``coarse`` is the next level's result. `descend` ran
        before."""
        self._products.P.apply_plus(coarse, self._x, x)                        # x = x + P̃ x_c
        self._relaxation.resume(b, x)

    def descend_again(self, b, x, coarse):
        """Write the next level's right-hand side to ``coarse``, from the residual of this level's x."""
        self._relaxation.residual(b, x)
        self._products.R.apply(self._relaxation.r, coarse)                     # b_c = R̃ r

    def ascend_again(self, b, coarse, x):
        """Change x in place: correct and smooth it; ``coarse`` is the next level's result."""
        self._products.P.apply(coarse, x, 1, 1)                                # x = x + P̃ x_c
        self._relaxation.resume(b, x)

    @property
    def nbytes(self):
        return self._products.nbytes + self._relaxation.nbytes + self._x.nbytes
