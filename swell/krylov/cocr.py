"""COCR: conjugate orthogonal conjugate residuals.

For A = Aᵀ, complex symmetric, and M = Mᵀ; cocg.py names such M. Sogabe and Zhang 2007, algorithm 1, preconditioned as
in their section 4: conjugate residuals with the bilinear form xᵀ y in place of the inner product. COCR takes as many
products as COCG, and its residual falls more smoothly. On a real system it is the method of conjugate residuals, for
indefinite matrices too.

An iteration: 1 product, 1 application of M, 3 reductions, which ranks add up in 2 groups, no host read. Vector traffic
without M: 12 words a row, or 14 in a complex system, plus 2 for the product; 4 more with an M.
Storage: r, p, q, A r; with an M also z and M q; in a complex system the conjugates of z and q. Reports ‖b − A x‖₂ of
the recursive residual.

Across ranks, iteration k is judged during k + 1: ranks add up its norm with the first sums of k + 1. The last iteration
therefore costs one more product.

Differs from the textbook: A p and M r come from recurrences (q = A z + β q, z −= α M q). Conjugates are kept for fused
products. A form that is only rounding error ends the run as BREAKDOWN.
"""
from dataclasses import dataclass

from swell.krylov.bilinear import BilinearIteration, BilinearMethod
from swell.krylov.method import Counts, part
from swell.krylov.slots import COCR as S


@dataclass(frozen=True)
class COCR(BilinearMethod):
    """Conjugate orthogonal conjugate residuals, for complex symmetric matrices, A = Aᵀ."""

    cost = "1 product, 1 preconditioner, 3 reductions (2 across ranks)"
    vectors = "5 (8 with a preconditioner)"

    def bind(self, system):
        return COCRIteration(system)


class COCRIteration(BilinearIteration):
    """The loop of COCR."""

    def __init__(self, system):
        super().__init__(system, "cocr", len(S))
        self.az = self.vector("A z")
        preconditioned = self.M is not None
        self.t = self.vector("M q") if preconditioned else self.q
        self.own = self.z if preconditioned else self.workspace.array("no z", 0, self.dtype)
        self.zc, self.conjugate_z = self.kept("conjugate z", self.z)
        self.qc, self.conjugate_q = self.kept("conjugate q", self.q, preconditioned)
        self.rho, self.rho_and_norm, self.mu, self.mu_and_qq = (part(self.s, *ends) for ends in (
            (S.NEXT_RHO, S.AZ2), (S.NEXT_RHO, S.NORM2), (S.MU, S.TT), (S.MU, S.QQ)))

    def begin(self):
        self.step.begin(self.r, self.z, self.weights, self.p, self.q, self.zc, self.s)          # p = q = 0
        return part(self.s, S.NORM2, S.NORM2)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.z, self.az, self.conjugate_z, self.rho)              # A z;  ρ' = zᵀ A z
        self.ranks.allreduce(self.rho_and_norm)                                # with the last iteration's norm²
        step.direction(self.z, self.az, self.p, self.q, self.qc, s)            # β = ρ'/ρ;  p = z + β p;  q = A z + β q
        if self.ended():
            return
        if M is not None:
            M.apply_dots(self.q, self.t, self.conjugate_q, self.mu)            # t = M q;  μ = qᵀ t
        self.ranks.allreduce(self.mu_and_qq)
        step.residual(self.p, self.q, self.t, self.weights, self.x, self.r, self.own, self.zc, s,
                      self.ranks.single)
                                                          # α = ρ'/μ;  x = x + α p;  r = r − α q;  z = z − α t

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess) + self.begun(iterations),
                      iterations + 1 if self.M is not None else 0, 3 * iterations + 1)
