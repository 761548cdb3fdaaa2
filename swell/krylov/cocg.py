"""COCG: conjugate orthogonal conjugate gradients.

For A = Aᵀ, complex symmetric, and M = Mᵀ. Van der Vorst and Melissen 1990, section 2: the recurrences of conjugate
gradients with the bilinear form xᵀ y, without conjugation, in place of the inner product. On a real system it is CG.

An iteration: 1 product, 1 application of M, 2 reductions, no host read. Vector traffic without M: 8 words a row
beside the two that the product moves, 10 in a complex system. Storage: r, p, q, z where there is an M; in a complex
system the conjugate of p, and of r where there is an M. Reports ‖b − A x‖₂ of the recursive residual.

M is symmetric for a symmetric A in Jacobi, block Jacobi, ILU(0) and ILU(k) with exact solves or equal sweeps for L and
U, SSOR, Chebyshev, and additive Schwarz of such; not with approximate inverses of L and U, in ILUT and restricted
Schwarz, nor in incomplete Cholesky, which conjugates.

Differs from the textbook: the conjugate of p is kept, so that a product fused with its (conjugating) inner products
gives pᵀ A p; x lags until the direction is updated. The form vanishes for vectors that do not: where it does, to
rounding, or where a step would drown the residual, x stays and the run ends as BREAKDOWN.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.formats.symmetry import require_symmetric
from swell.krylov.method import Counts, Iteration, Method


@dataclass(frozen=True)
class COCG(Method):
    """Conjugate orthogonal conjugate gradients, for complex symmetric matrices, A = Aᵀ."""

    problem = "complex symmetric, A = Aᵀ"
    cost = "1 product, 1 preconditioner, 2 reductions"
    vectors = "4 (6 with a preconditioner)"
    distributed = True
    self_adjoint_only = True
    symmetric_only = True

    def check(self, A):
        if A.has_entries:
            require_symmetric(A, "cocg")

    def bind(self, system):
        return COCGIteration(system)


class COCGIteration(Iteration):
    """The loop of COCG."""

    def __init__(self, system):
        super().__init__(system)
        self.r, self.p, self.q = self.vector("r"), self.vector("p"), self.vector("q")
        self.z = self.r if self.M is None else self.vector("z")
        self.pc = self.conjugate_vector("conjugate p")
        self.rc = self.conjugate_vector("conjugate r", self.M is not None)
        self.s = self.scalars("cocg", 8)
        self.step = self.loop.kernels("swell.krylov", "cocg", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.s.fill(0)
        self.step.begin(self.r, self.z, self.weights, self.p, self.pc, self.s)  # p = z;  ρ = rᵀ z
        self.space.allreduce(self.s)
        self.step.judge_first(self.s)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.p, self.q, conjugate(self.p, self.pc), s[1:3])       # q = A p;  μ = pᵀ q
        self.space.allreduce(s[1:3])
        step.residual(self.q, self.r, self.rc, self.weights, s)                # α = ρ/μ;  r = r − α q
        if M is not None:
            M.apply_dots(self.r, self.z, conjugate(self.r, self.rc), s[3:5])   # z = M r;  ρ' = rᵀ z
        self.space.allreduce(s[3:7])
        step.direction(self.z, self.p, self.pc, self.x, s)                     # x = x + α p;  p = z + (ρ'/ρ) p

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess), iterations + 1 if self.M is not None else 0, 2 * iterations + 1)


def conjugate(vector, kept):
    """The conjugate of a vector: ``kept``, or in a real system, where that is empty, the vector itself."""
    return kept if kept.size else vector
