"""Iterative refinement: x ← x + M (b − A x), where M is an operator that the method itself is built around.

For any matrix that M inverts well enough: it converges where ‖I − M A‖ < 1 in some norm, by that factor a step. With M
of LU factors it is Wilkinson's refinement (1963; Higham, Accuracy and Stability, chapter 12); with M of a smoother's
sweeps it is a stationary iteration (Saad, Iterative Methods, section 4.1).

A step: 1 application of M, 1 product, 1 reduction. Storage: r, and what M holds. Reports the true residual ‖b − A x‖₂
in every step.
"""
from __future__ import annotations

from swell.krylov.method import Counts, Iteration


class Refinement(Iteration):
    """x ← x + M (b − A x), judged in every step."""

    def __init__(self, system):
        super().__init__(system)
        self.r, self.norm2 = self.vector("r"), self.scalars("norm2", 2)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)
        self.residual_norm2(self.r, self.norm2)
        self.judge.start(self.norm2)

    def improve(self):
        """One correction of x by M."""
        self.M.apply(self.r, self.x, 1, 1)                                     # x = x + M r

    def step(self):
        """One correction, and what is left."""
        self.improve()
        self.A.residual(self.x, self.b, self.r)                                # r = b − A x
        self.residual_norm2(self.r, self.norm2)

    def body(self):
        self.step()
        self.judge.iteration(self.norm2)

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess), iterations, iterations + 1)
