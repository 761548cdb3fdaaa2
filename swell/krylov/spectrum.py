"""The spectrum from CG's own coefficients: αₖ and βₖ make up the Lanczos matrix of the preconditioned operator.

    Tₖₖ = 1/αₖ + βₖ₋₁/αₖ₋₁,   Tₖ,ₖ₊₁ = √βₖ / αₖ          (Saad, Iterative Methods, section 6.7.3)

Its extreme eigenvalues approach the extremes of the (scaled, preconditioned) matrix's spectrum from inside, so that the
condition is a lower bound, near the truth once CG has converged.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swell.core.registry import name_of
from swell.formats.symmetry import require_hermitian
from swell.krylov.method import Iteration, Method

MOST = 20_000               # iterations whose coefficients are kept


class LanczosIteration(Iteration):
    """An iteration whose kernels keep CG's coefficients: α and β of each iteration, side by side.

    Attributes
    ----------
    unbroken : int
        Iterations up to the first restart, which alone belong to one Lanczos process.
    """

    unbroken = MOST

    def __init__(self, system):
        super().__init__(system)
        self.coefficients, self._on_host = self.space.mapped(2 * min(self.loop.maxiter, MOST), "float64")

    def spectrum(self, column=0):
        k = min(self.loop.iterations_of(column), self.coefficients.size // 2, self.unbroken)
        host = self._on_host.column(column) if self.space.columns > 1 else self._on_host
        pairs = host[:2 * k].copy()              # the loop has waited for the device
        return Spectrum(pairs[::2], pairs[1::2])


class LanczosMethod(Method):
    """Settings of a form of conjugate gradients: for a Hermitian A and M."""

    self_adjoint_only = True

    def check(self, A):
        if A.has_entries:
            require_hermitian(A, name_of("method", type(self)))

    def window(self, n):
        """Return 0, no limit: on an ill-conditioned system the residual may stay above ‖b‖ for thousands of steps."""
        return 0


@dataclass(frozen=True)
class Spectrum:
    """Coefficients of CG.

    Attributes
    ----------
    alphas, betas : ndarray, shape (k,)
        Step lengths and direction coefficients of the first k iterations.
    """

    alphas: np.ndarray
    betas: np.ndarray

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Estimated (least, largest) eigenvalue of the preconditioned operator; NaN before the first iteration."""
        from scipy.linalg import eigh_tridiagonal
        diagonal, off = self._lanczos
        if not diagonal.size:
            return float("nan"), float("nan")
        least, largest = (eigh_tridiagonal(diagonal, off, eigvals_only=True, select="i", select_range=(i, i))[0]
                          for i in (0, diagonal.size - 1))
        return float(least), float(largest)

    @cached_property
    def _lanczos(self):
        """The diagonal and the off-diagonal of the Lanczos matrix; empty if no coefficient is usable."""
        good = (self.alphas > 0) & (self.betas > 0)
        k = int(np.argmin(good)) + 1 if not good.all() else good.size       # the last β may be 0 or not be there
        a, b = self.alphas[:k], self.betas[:k]
        if not k or not (a > 0).all():
            return a[:0], a[:0]
        diagonal = 1 / a
        diagonal[1:] += b[:-1] / a[:-1]
        return diagonal, np.sqrt(b[:-1]) / a[:-1]

    def may_exceed(self, condition) -> bool:
        """True if the estimated condition may be more than ``condition``; one factorisation, of T − σ I, tells.

        σ is the Gershgorin bound of the largest eigenvalue over ``condition``."""
        from scipy.linalg.lapack import dpttrf
        diagonal, off = self._lanczos
        if diagonal.size < 2:
            return False
        sums = diagonal.copy()
        sums[:-1] += off
        sums[1:] += off
        return dpttrf(diagonal - sums.max() / condition, off)[2] != 0

    @property
    def condition(self) -> float:
        """The largest eigenvalue estimate over the least; NaN if the least is not positive."""
        least, largest = self.extremes
        return largest / least if least > 0 else float("nan")
