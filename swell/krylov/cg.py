"""Preconditioned conjugate gradients.

For A = Aᴴ positive definite, M likewise. Hestenes and Stiefel 1952; Saad, Iterative Methods, algorithm 9.1.

An iteration: 1 product, 1 application of M, 2 reductions, no host read. Vector traffic without M: 8 words a row
(x is updated together with p, so that p is read once for both) beside the two that the product moves.
Storage: r, p, q, and z where there is an M. Reports ‖b − A x‖₂ of the recursive residual (of the original system
where the system is scaled).

Differs from the textbook: x lags until the direction is updated; a curvature (p, A p) that is not positive ends the
iteration as INDEFINITE and leaves x as it was.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.krylov.method import Counts, Iteration, Method


@dataclass(frozen=True)
class CG(Method):
    """Conjugate gradients, for Hermitian positive definite matrices."""

    problem = "Hermitian positive definite"
    cost = "1 product, 1 preconditioner, 2 reductions"
    vectors = "3 (4 with a preconditioner)"

    def window(self, n):
        """Never: on an ill-conditioned system the residual stays above ‖b‖ for thousands of steps before it falls."""
        return 0

    def bind(self, system):
        return CGIteration(system)


class CGIteration(Iteration):
    """The loop of CG."""

    def __init__(self, system):
        super().__init__(system)
        self.r, self.p, self.q = self.vector("r"), self.vector("p"), self.vector("q")
        self.z = self.r if self.M is None else self.vector("z")
        self.s = self.scalars("cg", 6)
        self.step = self.loop.kernels("swell.krylov", "cg", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.step.begin(self.r, self.z, self.weights, self.p, self.s)          # p = z;  ρ = (r, z)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.p, self.q, self.p, s[1:3])                           # q = A p;  σ = (p, q)
        step.residual(self.q, self.r, self.weights, s)                         # α = ρ/σ;  r = r − α q
        if M is not None:
            M.apply_dots(self.r, self.z, self.r, s[3:5])                       # z = M r;  ρ' = (r, z)
        self.space.allreduce(s[3:6])
        step.direction(self.z, self.p, self.x, s)                              # x = x + α p;  p = z + (ρ'/ρ) p

    def counts(self, iterations, zero_guess):
        products = iterations + (not zero_guess)
        return Counts(products, iterations + 1 if self.M is not None else 0, 2 * iterations + 1)
