"""Preconditioned conjugate gradients.

For A = Aᴴ positive definite, M likewise. Hestenes and Stiefel 1952; Saad, Iterative Methods, algorithm 9.1.

An iteration: 1 product, 1 application of M, 2 reductions, no host read. Vector traffic without M: 8 words a row, plus 2
for the product; x and p are updated together, so that p is read once for both.
Storage: r, p, q, and z if there is an M. Reports ‖b − A x‖₂ of the recursive residual (of the original system, if the
system is scaled).

Differs from the textbook: x is updated together with p, not before r. If the curvature (p, A p) is not positive, the
iteration ends as INDEFINITE and leaves x unchanged. A smoother, if one is named, sweeps over x before the first
iteration, and on request between iterations: CG then restarts from the smoothed x, with p = z.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.settings import describe, positive, without_effect
from swell.krylov.method import Counts, part
from swell.krylov.slots import CG as S
from swell.krylov.spectrum import LanczosIteration, LanczosMethod


@dataclass(frozen=True)
class CG(LanczosMethod):
    """Conjugate gradients, for Hermitian positive definite matrices.

    Attributes
    ----------
    before : int
        Sweeps of the smoother (``smoother=...``) before the first iteration.
    between : int
        Sweeps of the smoother after every ``every`` iterations; CG then restarts from x. 0: none.
    every : int
        Iterations from one group of sweeps to the next.
    """

    before: int = 10
    between: int = 0
    every: int = 50

    problem = "Hermitian positive definite"
    cost = "1 product, 1 preconditioner, 2 reductions"
    vectors = "3 (4 with a preconditioner)"
    distributed = True
    smooths = True

    def __post_init__(self):
        positive(self, "before", 0)
        positive(self, "between", 0)
        positive(self, "every")
        if not self.between:
            without_effect(self, "without between",
                           f"give between=5, say, the sweeps after each {self.every} iterations", "every")
            if not self.before:
                without_effect(self, "with between=0: a smoother would have no sweep to do",
                               "give between=5, say", "before")

    def check_unsmoothed(self):
        if self != CG():
            raise InputError(f"{describe(self)} says when a smoother sweeps, and none is named: add "
                             "smoother='gauss_seidel(direction=symmetric)', or take plain 'cg'")

    def bind(self, system):
        return CGIteration(system, self)


class CGIteration(LanczosIteration):
    """The loop of CG."""

    def __init__(self, system, settings):
        super().__init__(system)
        self.settings = settings
        self.between = settings.between if self.S is not None else 0
        if self.between:
            self.steps = self.unbroken = settings.every
        self.r, self.p, self.q = self.vector("r"), self.vector("p"), self.vector("q")
        self.z = self.r if self.M is None else self.vector("z")
        self.s = s = self.scalars("cg", len(S))
        self.first, self.rho = part(s, S.RHO, S.NORM2), part(s, S.RHO, S.RHO)
        self.sigma = part(s, S.SIGMA, S.QQ)
        self.next_rho, self.next = part(s, S.NEXT_RHO, S.ZZ), part(s, S.NORM2, S.NEXT_RHO)
        self.step = self.loop.kernels("swell.krylov", "cg", self.dtype)

    def start(self, zero_guess):
        if self.S is not None and self.settings.before and not self.attempt:
            self.S.smooth(self.b, self.x, self.settings.before)
            zero_guess = False
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.step.begin(self.r, self.z, self.weights, self.p, self.s)          # p = z;  ρ = (r, z)
        self.ranks.allreduce(self.first)
        self.step.judge_first(self.s)

    def body(self):
        for k in range(self.steps):
            if k and self.loop.halted():
                return
            self.iterate()
        if self.between and not self.loop.halted():
            self.smooth()

    def smooth(self):
        """Sweep ``between`` times over x, then restart CG from the new x: r, z, p and ρ are set anew."""
        self.S.smooth(self.b, self.x, self.between)
        self.A.residual(self.x, self.b, self.r)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.space.copy(self.z, self.p)                                        # p = z
        self.space.dot(self.r, self.z, self.rho)                               # ρ = (r, z)
        self.ranks.allreduce(self.rho)

    def iterate(self):
        """Do one step of conjugate gradients, in place in x, r and p, with its convergence test."""
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dot(self.p, self.q, self.p, self.sigma)                        # q = A p;  σ = (p, q)
        self.ranks.allreduce(self.sigma)
        step.residual(self.q, self.r, self.weights, s)                         # α = ρ/σ;  r = r − α q
        if M is not None:
            M.apply_dots(self.r, self.z, self.r, self.next_rho)                # z = M r;  ρ' = (r, z)
        self.ranks.allreduce(self.next)
        step.direction(self.z, self.p, self.x, s, self.coefficients)           # x = x + α p;  p = z + (ρ'/ρ) p

    def counts(self, iterations, zero_guess):
        starts = 1 + (iterations // self.settings.every if self.between else 0)
        sweeps = 0 if self.S is None else self.settings.before * (not self.attempt) + self.between * (starts - 1)
        smoothed = self.S is not None and self.settings.before and not self.attempt
        return Counts(iterations + starts - 1 + (not zero_guess or bool(smoothed)),
                      sweeps + (iterations + starts if self.M is not None else 0), 2 * iterations + starts)
