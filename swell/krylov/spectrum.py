"""What CG's own coefficients say of the spectrum: αₖ and βₖ make up the Lanczos matrix of the preconditioned operator.

    Tₖₖ = 1/αₖ + βₖ₋₁/αₖ₋₁,   Tₖ,ₖ₊₁ = √βₖ / αₖ          (Saad, Iterative Methods, section 6.7.3)

Its extreme eigenvalues approach those of the (scaled, preconditioned) matrix from inside, so that the condition is a
lower bound, near the truth once CG has converged.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

MOST = 20_000               # iterations whose coefficients are kept


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
        """(least, largest) eigenvalue, by estimate; NaN before the first iteration."""
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

    @property
    def condition(self) -> float:
        """Largest over least eigenvalue."""
        least, largest = self.extremes
        return largest / least if least > 0 else float("nan")
