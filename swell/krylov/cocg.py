"""COCG: conjugate orthogonal conjugate gradients.

For A = Aᵀ, complex symmetric, and M = Mᵀ. Van der Vorst and Melissen 1990, section 2: the recurrences of conjugate
gradients with the bilinear form xᵀ y, without conjugation, in place of the inner product. On a real system it is CG.

An iteration: 1 product, 1 application of M, 2 reductions, no host read. Vector traffic without M: 8 words a row, or 10
in a complex system, plus 2 for the product. Storage: r, p, q, and z if there is an M; in a complex system the conjugate
of p, and of r if there is an M. Reports ‖b − A x‖₂ of the recursive residual.

For a symmetric A, M is symmetric in Jacobi, block Jacobi, ILU(0) and ILU(k) with exact solves or equal sweeps for L and
U, SSOR, Chebyshev, and additive Schwarz of such. M is not symmetric with approximate inverses of L and U, in ILUT, in
restricted Schwarz, or in incomplete Cholesky, which conjugates.

Differs from the textbook: the conjugate of p is kept, so that a product fused with its (conjugating) inner products
gives pᵀ A p. x is updated together with p, not before r. The form xᵀ x can vanish for x ≠ 0. If the form is only
rounding error, or if a step would leave no digit of the residual, x stays and the run ends as BREAKDOWN.
"""
from dataclasses import dataclass

from swell.krylov.bilinear import BilinearIteration, BilinearMethod
from swell.krylov.method import Counts, part
from swell.krylov.slots import COCG as S


@dataclass(frozen=True)
class COCG(BilinearMethod):
    """Conjugate orthogonal conjugate gradients, for complex symmetric matrices, A = Aᵀ."""

    cost = "1 product, 1 preconditioner, 2 reductions"
    vectors = "4 (6 with a preconditioner)"

    def bind(self, system):
        return COCGIteration(system)


class COCGIteration(BilinearIteration):
    """The loop of COCG."""

    def __init__(self, system):
        super().__init__(system, "cocg", len(S))
        self.pc, self.conjugate_p = self.kept("conjugate p", self.p)
        self.rc, self.conjugate_r = self.kept("conjugate r", self.r, self.M is not None)
        self.mu, self.rho, self.sums = (part(self.s, *ends) for ends in (
            (S.MU, S.QQ), (S.NEXT_RHO, S.ZZ), (S.RR, S.NORM2)))

    def begin(self):
        self.step.begin(self.r, self.z, self.weights, self.p, self.pc, self.s)  # p = z;  ρ = rᵀ z
        return part(self.s, S.ZZ, S.LAST_RR)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.p, self.q, self.conjugate_p, self.mu)                # q = A p;  μ = pᵀ q
        self.ranks.allreduce(self.mu)
        step.residual(self.q, self.r, self.rc, self.weights, s)                # α = ρ/μ;  r = r − α q
        if M is not None:
            M.apply_dots(self.r, self.z, self.conjugate_r, self.rho)           # z = M r;  ρ' = rᵀ z
        self.ranks.allreduce(self.sums)
        step.direction(self.z, self.p, self.pc, self.x, s)                     # x = x + α p;  p = z + (ρ'/ρ) p

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess), iterations + 1 if self.M is not None else 0, 2 * iterations + 1)
