"""COCR: conjugate orthogonal conjugate residuals.

For A = Aᵀ, complex symmetric, and M = Mᵀ (which M is: cocg.py). Sogabe and Zhang 2007, algorithm 1, preconditioned as
in their section 4: conjugate residuals with the bilinear form xᵀ y in place of the inner product. Its residual falls
more smoothly than that of COCG, at as many products. On a real system it is the method of conjugate residuals, for
indefinite matrices too.

An iteration: 1 product, 1 application of M, 3 reductions, which ranks add up in 2 groups, no host read. Vector
traffic without M: 12 words a row beside the two that the product moves, 14 in a complex system; 4 more with an M.
Storage: r, p, q, A r; with an M also z and M q; in a complex system the conjugates of z and q. Reports ‖b − A x‖₂ of
the recursive residual.

Across ranks an iteration is judged in the next one, its norm being added up with that one's first sums: the last costs
one product more.

Differs from the textbook: A p and M r come from recurrences (q = A z + β q, z −= α M q), conjugates are kept for fused
products, and a form that vanishes to rounding ends the run as BREAKDOWN.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.formats.symmetry import require_symmetric
from swell.krylov.cocg import conjugate
from swell.krylov.method import Counts, Iteration, Method


@dataclass(frozen=True)
class COCR(Method):
    """Conjugate orthogonal conjugate residuals, for complex symmetric matrices, A = Aᵀ."""

    problem = "complex symmetric, A = Aᵀ"
    cost = "1 product, 1 preconditioner, 3 reductions (2 across ranks)"
    vectors = "5 (8 with a preconditioner)"
    distributed = True
    self_adjoint_only = True
    symmetric_only = True

    def check(self, A):
        if A.has_entries:
            require_symmetric(A, "cocr")

    def bind(self, system):
        return COCRIteration(system)


class COCRIteration(Iteration):
    """The loop of COCR."""

    def __init__(self, system):
        super().__init__(system)
        self.r, self.p, self.q, self.az = (self.vector(name) for name in ("r", "p", "q", "A z"))
        preconditioned = self.M is not None
        self.z, self.t = (self.vector("z"), self.vector("M q")) if preconditioned else (self.r, self.q)
        self.zc = self.conjugate_vector("conjugate z")
        self.qc = self.conjugate_vector("conjugate q", preconditioned)
        self.own = self.z if preconditioned else self.workspace.array("no z", 0, self.dtype)
        self.s = self.scalars("cocr", 9)
        self.step = self.loop.kernels("swell.krylov", "cocr", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.step.begin(self.r, self.z, self.weights, self.p, self.q, self.zc, self.s)
        self.space.allreduce(self.s[4:5])
        self.step.judge_first(self.s)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.z, self.az, conjugate(self.z, self.zc), s[1:3])      # A z;  ρ' = zᵀ A z
        self.space.allreduce(s[1:5])                                           # with the norm² of the iteration before
        step.direction(self.z, self.az, self.p, self.q, self.qc, s)            # β = ρ'/ρ;  p = z + β p;  q = A z + β q
        if self.ended():
            return
        if M is not None:
            M.apply_dots(self.q, self.t, conjugate(self.q, self.qc), s[5:7])   # t = M q;  μ = qᵀ t
        self.space.allreduce(s[5:8])
        step.residual(self.p, self.q, self.t, self.weights, self.x, self.r, self.own, self.zc, s, self.space.alone)
                                                          # α = ρ'/μ;  x = x + α p;  r = r − α q;  z = z − α t

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess) + self.begun(iterations),
                      iterations + 1 if self.M is not None else 0, 3 * iterations + 1)
