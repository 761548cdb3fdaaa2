"""Flexible restarted GMRES(m): the preconditioner may change from step to step.

For any square A and any M, linear or not. Saad 1993. The cycle is that of ``gmres.py`` (``flexible=True``): the
preconditioned vectors z_j = M(u_j) are kept, A Z = V H, and x += Z y. The second pass of the orthogonalisation may
not use the linearity of A M, and does not need it: w = A z_j is orthogonalised as it stands.

A step: 1 product, 1 application of M, 1 reduction. Storage: 2 m + 2 vectors. Reports ‖b − A x‖₂.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.krylov.gmres import MOST, GMRESIteration
from swell.krylov.method import Method


@dataclass(frozen=True)
class FGMRES(Method):
    """Flexible GMRES, for any square matrix and a preconditioner that varies.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500.
    """

    restart: int = 30

    problem = "any square matrix, with a preconditioner that varies"
    cost = "1 product, 1 preconditioner, 1 reduction"
    vectors = "2 restart + 2"
    flexible = True

    def __post_init__(self):
        positive(self, "restart", most=MOST)

    def bind(self, system):
        return GMRESIteration(system, self.restart, flexible=True)

    def window(self, n):
        return max(300, 5 * self.restart)
