"""Smoothing by a polynomial of higher degree (smoother.py).

The steps for Ã e = r from e = 0, with Ã = I − S, give e = q(S) r for a polynomial q. Horner's rule evaluates it: one
launch for each product with S, vectors included.
"""
from __future__ import annotations

import copy

from numpy.polynomial import Polynomial as Poly

from swell.formats.csr import CSR
from swell.formats.sell import SELL
from swell.preconditioners.amg.balancing import smoothing_matrix


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
    """One level with a polynomial smoother.

    Parameters
    ----------
    products : FourProducts
    steps : list of (float, float, float)
        As in `Relaxation`.
    """

    scratch = "b_coarse", "x_coarse"

    def __init__(self, products, steps):
        self._products, self._steps, self._relaxation = products, steps, Relaxation(products.S, steps)
        self.b_coarse, self.x_coarse = products.b_coarse, products.x_coarse

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level`."""
        self._products.update()

    def adjoint(self):
        return Polynomial(self._products.adjoint(), self._steps)

    def down(self, b, x, again):
        if not again:
            self._relaxation.start(b, x)
        self._relaxation.residual(b, x)
        self._products.R.apply(self._relaxation.r, self.b_coarse)              # b_c = R̃ r

    def up(self, b, x, again):
        self._products.P.apply(self.x_coarse, x, 1, 1)                         # x = x + P̃ x_c
        self._relaxation.resume(b, x)

    @property
    def nbytes(self):
        return self._products.nbytes + self._relaxation.nbytes


class Smoothed:
    """The last level if it is too large for a dense inverse: smoothing from x = 0. A single step is done twice, as on
    other levels.

    Parameters
    ----------
    A : CSRMatrix
    scale : float64 array
        The diagonal of D.
    dtype : numpy.dtype
    steps : list of (float, float, float)
        As in `Relaxation`.
    """

    def __init__(self, A, scale, dtype, steps):
        self._use((CSR() if A.space.name == "cpu" else SELL()).build(self._matrix(A, scale, dtype)), steps)

    def _use(self, S, steps):
        self.S, self._steps, self._relaxation = S, steps, Relaxation(S, steps if len(steps) > 1 else [(0, 1, 1)] * 2)

    def _matrix(self, A, scale, dtype):
        """Return S, a new CSRMatrix."""
        return smoothing_matrix(A, scale, dtype)

    def adjoint(self):
        made = copy.copy(self)
        made._use(self.S.convert(self.S.to_csr().transpose(conjugate=True)), self._steps)
        return made

    def update(self, A, scale):
        """Recompute S, in place, for new values of A and its ``scale``."""
        self.S.update(self._matrix(A, scale, self.S.dtype))

    def solve(self, b, x):
        self._relaxation.start(b, x)

    @property
    def nbytes(self):
        return self.S.nbytes + self._relaxation.nbytes
