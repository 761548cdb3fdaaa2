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

MAX_ITERATIONS = 20_000     # iterations whose coefficients are kept


class LanczosIteration(Iteration):
    """An iteration whose kernels keep CG's coefficients: α and β of each iteration, side by side.

    Attributes
    ----------
    unbroken : int
        Iterations up to the first restart, which alone belong to one Lanczos process.
    """

    unbroken = MAX_ITERATIONS

    def __init__(self, system):
        super().__init__(system)
        self.coefficients, self._on_host = self.space.mapped(2 * min(self.loop.maxiter, MAX_ITERATIONS), "float64")

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
        good = (self.alphas > 0) & (self.betas > 0)
        k = int(np.argmin(good)) + 1 if not good.all() else good.size       # the last β may be 0 or not be there
        a, b = self.alphas[:k], self.betas[:k]
        if not k or not (a > 0).all():
            return float("nan"), float("nan")
        diagonal = 1 / a
        diagonal[1:] += b[:-1] / a[:-1]
        off = np.sqrt(b[:-1]) / a[:-1]
        least, largest = (eigh_tridiagonal(diagonal, off, eigvals_only=True, select="i", select_range=(i, i))[0]
                          for i in (0, k - 1))
        return float(least), float(largest)

    def may_exceed(self, condition) -> bool:
        """True if the estimated condition may be more than ``condition``: if T − σ I is not positive definite.

        σ is 3 max Tₖₖ over ``condition``: T is positive definite, so its largest eigenvalue is at most 3 max Tₖₖ. This
        takes some microseconds, and ``condition`` itself a hundred times as long."""
        from scipy.linalg.lapack import dpttrf
        if self.alphas.size < 2:
            return False
        inverse, betas = 1 / self.alphas, self.betas[:-1]
        diagonal = inverse.copy()
        diagonal[1:] += betas * inverse[:-1]
        with np.errstate(invalid="ignore"):
            off = np.sqrt(betas) * inverse[:-1]
        return dpttrf(diagonal - 3 * diagonal.max() / condition, off)[2] != 0

    @property
    def condition(self) -> float:
        """The largest eigenvalue estimate over the least; NaN if the least is not positive."""
        least, largest = self.extremes
        return largest / least if least > 0 else float("nan")
