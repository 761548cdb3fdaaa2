"""Iterative refinement: x ← x + M (b − A x), with an operator M that belongs to the method.

For any matrix that M inverts well enough. It converges if ‖I − M A‖ < 1 in some norm, by this factor a step. If M holds
LU factors, this is Wilkinson's refinement (1963; Higham, Accuracy and Stability, chapter 12). If M holds the sweeps of
a smoother, it is a stationary iteration (Saad, Iterative Methods, section 4.1).

A step: 1 application of M, 1 product, 1 reduction. Storage: r and the storage of M. Reports the true residual
‖b − A x‖₂ in every step.
"""
from swell.krylov.method import Counts, Iteration


class Refinement(Iteration):
    """The iteration x ← x + M (b − A x), judged in every step."""

    def __init__(self, system):
        super().__init__(system)
        self.r, self.norm2 = self.vector("r"), self.scalars("norm2", 2)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)
        self.residual_norm2(self.r, self.norm2)
        self.judge.start(self.norm2)

    def improve(self):
        """Correct x once, in place: x = x + M r."""
        self.M.apply(self.r, self.x, 1, 1)                                     # x = x + M r

    def step(self):
        """Correct x once, then compute r = b − A x and its squared norms ``self.norm2``."""
        self.improve()
        self.A.residual(self.x, self.b, self.r)                                # r = b − A x
        self.residual_norm2(self.r, self.norm2)

    def body(self):
        self.step()
        self.judge.iteration(self.norm2)

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess), iterations, iterations + 1)
