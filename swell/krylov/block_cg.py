"""Block conjugate gradients, preconditioned: k right-hand sides share one Krylov space.

For A = Aᴴ positive definite, M likewise. O'Leary, The block conjugate gradient algorithm and related methods, 1980.
The variant is Dubrulle's BCGrQ (Retooling the method of block conjugate gradients, 2001), with the inner product of M:
the residual block is R C, where R has orthonormal columns and C is small. Tichý, Meurant and Šimonová (Block CG
algorithms revisited, 2025) find it the most accurate variant in finite precision; they call it DR-BCG.

    X += P α,          α = ξ C,  ξ = (Pᴴ A P)⁻¹
    R −= A P ξ
    Rᴴ M R = ζᴴ ζ,     R = R ζ⁻¹,  C = ζ C
    P = M R + P ζᴴ

An iteration: 1 product and 1 application of M with k vectors, 2 reductions of k² sums (3 with M), no host read. Vector
traffic without M: 11 words a row and right-hand side, plus 2 for the product; 13 with M. Flops without M: 14 k a row
and right-hand side. Storage: k vectors each of R, P, Q = A P, and Z = M R if there is an M. Reports ‖b − A x‖₂ of the
recursive residual, from Rᴴ R and C.

C carries the sizes of the residuals. So R stays well conditioned when right-hand sides converge at different speeds.
Dependent vectors are found by a pivoted Cholesky factorisation of Rᴴ M R, scaled to a unit diagonal. They become zero
vectors, so that no shape changes and the host reads nothing. A right-hand side that has converged keeps its x; its
direction stays in the space, where it still helps the others. Right-hand sides that are solved at the start, and those
with NaN, are taken out of the block before the first iteration.

Differs from the textbook: R is orthonormalised by Cholesky QR with pivots in place of Householder reflections, twice at
the start and once in an iteration. It loses a direction whose relative size is below about 1e-7. The true residual at
the end of the solve shows this, and the solve then goes on from x. R = R ζ⁻¹ waits for the next update of R, which
saves a pass. If Pᴴ A P or Rᴴ M R is not positive definite, the iteration ends as INDEFINITE.
"""
from dataclasses import dataclass

import numpy as np

from swell.core.registry import name_of
from swell.formats.symmetry import require_hermitian
from swell.krylov.block import BlockIteration
from swell.krylov.method import Counts, Method
from swell.krylov.slots import BlockCG as S


@dataclass(frozen=True)
class BlockCG(Method):
    """Block conjugate gradients, for Hermitian positive definite matrices and several right-hand sides.

    They are solved together, at most 32 at a time, in one Krylov space. One right-hand side is solved as by ``cg``.
    """

    problem = "Hermitian positive definite, several right-hand sides"
    cost = "1 product, 1 preconditioner, 3 reductions"
    vectors = "3 (4 with a preconditioner)"
    stored = 4
    self_adjoint_only = unit_vectors = shared_space = True

    def check(self, A):
        if A.has_entries:
            require_hermitian(A, name_of("method", type(self)))

    def bind(self, system):
        return BlockCGIteration(system)

    def window(self, n):
        return 4000              # residual norms may stay for more than 1000 iterations before they fall


class BlockCGIteration(BlockIteration):
    """The loop of block CG."""

    def __init__(self, system):
        super().__init__(system, "block_cg")
        k, eps = self.count, np.finfo(self.dtype).eps
        self.tolerance = max(64 * k * np.finfo(np.float64).eps, k * (16 * float(eps)) ** 2)
        self.r, self.p, self.q = self.vector("r"), self.vector("p"), self.vector("q")
        self.z = self.r if self.M is None else self.vector("z")
        self.X, self.R, self.P, self.Q, self.Z = map(self.block, (self.x, self.r, self.p, self.q, self.z))
        self.matrices = self.small("small", (len(S), k, k))
        self.independent = self.small("independent", 1, "int32")
        self.norms, self.metric = self.of_slices("norms", k, k), self.of_slices("metric", k, k)
        if self.M is None and not self.w.size:
            self.metric = self.norms

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # R = B − A X
        self.residual_norm2(self.r, self.norm2)
        self.judge.start(self.norm2)
        self.step.begin(self.R, self.matrices, self.count)                       # C = I
        self._orthonormalise(True)                                             # ζᴴ ζ = Rᴴ Z;  C = ζ C
        self.step.scale(self.R, self.matrices, self.count, self.side)          # R = R ζ⁻¹
        self._orthonormalise(True)                                             # twice, as Cholesky QR needs
        self._directions(True)                                                 # P = Z ζ⁻¹

    def body(self):
        step, small = self.step, self.matrices
        self.A.apply(self.p, self.q)                                           # Q = A P
        self.gram(self.P, self.Q, self.metric)
        step.step(self.metric, small, self.independent, self.tolerance, self.count, self.side)     # ξ and α = ξ C
        step.residual(self.X, self.P, self.R, self.Q, self.w, small, self.norms, self.metric, self.rows,
                      self.count, self.side, self.height)                      # X = X + P α;  R = R ζ⁻¹ − Q ξ
        self._orthonormalise(False)                                            # ζᴴ ζ = Rᴴ Z;  C = ζ C
        self._directions(False)                                                # P = Z ζ⁻¹ + P ζᴴ

    def _orthonormalise(self, first):
        """Set Z = M R, ζ with ζᴴ ζ = Rᴴ Z, and C = ζ C; judge the residuals unless it is the ``first`` block."""
        if self.M is not None:
            self.M.apply(self.r, self.z)
        if first:
            self.gram(self.R, self.R, self.norms)
        if self.M is not None or first and self.metric is not self.norms:
            self.gram(self.R, self.Z, self.metric)
        self.step.orthonormalise(self.norms, self.metric, self.matrices, self.independent, self.tolerance, first,
                                 self.count, self.side)

    def _directions(self, first):
        self.step.directions(self.Z, self.P, self.matrices, first, self.count, self.side)

    def counts(self, iterations, zero_guess):
        applied = 0 if self.M is None else iterations + 2
        return Counts(iterations + (not zero_guess), applied, (2 if self.M is None else 3) * iterations + 5)
