"""Jacobi scaling: A' = D^−½ A D^−½ with D = |diag A| / 4ᵏ, where 4ᵏ is near the largest |aᵢᵢ|.

The scaled system has a diagonal of constant modulus 4ᵏ, and stays symmetric or Hermitian. With CG it gives the same
iterates as the Jacobi preconditioner, without applying one. The factor 4ᵏ keeps the residual weights D in the range of
single precision. For a positive definite matrix, the condition number is within a factor of the best that a diagonal
scaling can reach; the factor is at most the largest number of entries in a row: van der Sluis 1969, (5.33) of the
finite-volume paper.
"""
from dataclasses import dataclass

import numpy as np

from swell.formats.diagonal import nonzero_diagonal
from swell.transforms.scaling import Scaling


@dataclass(frozen=True)
class JacobiScaling:
    """Two-sided scaling to a constant diagonal."""

    problem = "any matrix with a diagonal without zeros"
    cost = "4 bytes a row in judged iterations"

    def build(self, A):
        """Return a new JacobiTransform for a CSR matrix A, which is not changed.

        Raises
        ------
        InputError
            If a diagonal entry is zero.
        """
        return JacobiTransform(A)


class JacobiTransform(Scaling):
    """The transform S A S with S = D^−½."""

    def __init__(self, A):
        super().__init__(A)
        self.update(A)

    def update(self, A):
        """Recompute the scaling vector and the residual weights, in place, from the diagonal of another matrix A."""
        with A.space.ranks.agreed():
            d = abs(nonzero_diagonal(A, "Jacobi scaling")).astype(np.float64)
        least, largest = A.diagonal_range()
        self.uniform = largest <= least
        if d.size:
            d /= 4.0 ** (np.frexp(largest)[1] // 2)          # exact; the weights then fit in single precision
        self.left[...] = 1 / np.sqrt(d)
        self._weights[...] = d

    def effects(self, A):
        lines = super().effects(A)
        if lines and A.nnz:
            lines.append(f"condition at most {A.longest_row()} times that of the best diagonal scaling")
        return lines
