"""Two-sided diagonal scaling as a transform: A' = L A R, b' = L b, x = R x', with positive diagonals L and R.

The judge uses the norm of the original residual, r = L⁻¹ r', with the weights w = L⁻² in single precision. This costs 4
bytes per row in the iterations that it judges (``Stopping(every=...)``), and nothing in the others. The final check
uses the original matrix.
"""
from __future__ import annotations

import copy
import math

import numpy as np

from swell.core.columns import plain
from swell.core.transform import Transform

RANGE = 2.0**60         # weights beyond RANGE or 1/RANGE are scaled near 1 by a power of 4, to fit in float32


class Scaling(Transform):
    """Base of the scalings; a subclass computes L, R and the weights.

    Attributes
    ----------
    left, right : real arrays of the space, shape (n,)
        The diagonals L and R; one and the same array if the scaling is symmetric.
    """

    def __init__(self, A, symmetric=True):
        self.space, self.dtype = A.space, A.dtype
        real, rows = np.dtype(A.dtype.char.lower()), A.space.ranks.local_rows(A.shape[0])
        self.left = A.space.empty(rows, real)
        self.right = self.left if symmetric else A.space.empty(rows, real)
        self._weights = A.space.empty(rows, np.float32)

    def matrix(self, A):
        return A.scaled(self.left, self.right)

    def forward_b(self, b, out):
        self.space.xp.multiply(plain(b), self.left, out=plain(out))

    def forward_x(self, x, out):
        self.space.xp.divide(plain(x), self.right, out=plain(out))

    def backward_x(self, x, out):
        self.space.xp.multiply(plain(x), self.right, out=plain(out))

    def adjoint(self):
        if self.right is self.left:
            return self
        made = copy.copy(self)
        made.left, made.right = self.right * self.right.dtype.type(self._near_one(self.right)), self.left
        made._weights = (made.left.astype(np.float64) ** -2).astype(np.float32)
        return made

    def _near_one(self, left):
        """Return a power of 2 to multiply L by, to keep residual weights in range; 1 in ordinary cases."""
        if not left.size:
            return 1.0
        largest = (-self.space.max_on_host(-left)) ** -2.0
        return 1.0 if 1 / RANGE < largest < RANGE else 2.0 ** (math.frexp(largest)[1] // 2)

    def residual_weights(self):
        return self._weights

    def effects(self, A):
        """Return lines for the printed configuration: a bound on the condition number of A, the scaled matrix.

        There are none if A is not positive definite."""
        bound = gershgorin(A)
        if not bound:
            return []
        if np.isfinite(bound):
            return [f"condition at most {bound:.2e} by Gershgorin's circles"]
        return ["Gershgorin's circles do not bound the condition: the matrix is not strictly dominant"]


def gershgorin(A) -> float:
    """The bound (5.31) on the condition number of a Hermitian matrix, from its Gershgorin circles.

    It is max (aᵢᵢ + Rᵢ) / min (aᵢᵢ − Rᵢ) with Rᵢ = Σ |aᵢⱼ|, j ≠ i. It is inf if a circle reaches zero, and 0 if an aᵢᵢ
    is not positive: A is then not positive definite.
    """
    if not A.shape[0]:
        return 1.0
    center, least, largest = A.gershgorin()
    if not center > 0:
        return 0.0
    return largest / least if least > np.finfo(A.dtype).eps * largest else float("inf")
