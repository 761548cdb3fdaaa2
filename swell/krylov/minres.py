"""MINRES: minimal residuals by Lanczos' process.

For A = Aᴴ, definite or not, and M = Mᴴ positive definite. In each Krylov space it finds the residual of least M-norm,
(r, M r)^½. Paige and Saunders, Solution of sparse indefinite systems of linear equations, 1975, section 6. The
recurrence of the residual is (2.11) of Choi, Paige and Saunders, MINRES-QLP, 2011. A singular system that has solutions
converges.

An iteration: 1 product, 1 application of M, 3 reductions, which ranks add up in 2 groups (and judge in the next
iteration, as in cocr.py), no host read. Vector traffic: 13 words a row without M, or 14 with an M, plus 2 for the
product. Storage: r, two v, two d, A z, and z if there is an M. Reports ‖b − A x‖₂ of the recursive residual.

    A z_k = β_{k+1} v_{k+1} + α_k v_k + β_k v_{k−1},   z = M v,   (v, z) = 1          Lanczos
    γ_k d_k = z_k − δ_k d_{k−1} − ε_k d_{k−2}          the columns of R, which rotations (c, s) make of T
    x_k = x_{k−1} + c_k φ_{k−1} d_k,   φ_k = s_k φ_{k−1} = (r_k, M r_k)^½
    r_k = s_k² r_{k−1} − φ_k c_k v_{k+1}               r itself, not its M-norm: one vector, no product

Differs from the textbook:

- The judge needs ‖b − A x‖₂, so the method updates the residual as well as its M-norm.
- v and d are not scaled, but divided by β and γ where they are used.
- The update of d begins before M is applied, so that one z is enough.
- An M with (v, M v) ≤ 0 ends the run as INDEFINITE.
- The run ends as BREAKDOWN, and the solve resumes from x, if A r vanishes to rounding. It also ends so if rounding
  errors of long steps may reach a hundredth of r. This happens if b is not in the range of A.
- In these cases the last step is not made.
"""
from dataclasses import dataclass

import numpy as np

from swell.core.registry import name_of
from swell.formats.symmetry import require_hermitian
from swell.krylov.method import Counts, Iteration, Method, part
from swell.krylov.slots import MINRES as S


@dataclass(frozen=True)
class MINRES(Method):
    """Minimal residuals, for Hermitian matrices, definite or not."""

    problem = "Hermitian, definite or not; M positive definite"
    cost = "1 product, 1 preconditioner, 3 reductions (2 across ranks)"
    vectors = "6 (7 with a preconditioner)"
    self_adjoint_only = unit_vectors = distributed = True

    def check(self, A):
        if A.has_entries:
            require_hermitian(A, name_of("method", type(self)))

    def bind(self, system):
        return MINRESIteration(system)


class MINRESIteration(Iteration):
    """The loop of MINRES."""

    steps = 2                                    # two steps swap v and d with the older ones and back

    def __init__(self, system):
        super().__init__(system)
        self.r, self.v, self.v_old, self.d, self.d_old, self.q = (
            self.vector(name) for name in ("r", "v", "v old", "d", "d old", "A z"))
        self.z = self.v if self.M is None else self.vector("z")
        self.s = s = self.scalars("minres", len(S))
        self.first, self.alpha, self.alpha_and_norms, self.beta, self.next = (part(s, *ends) for ends in (
            (S.NORM2, S.ZZ), (S.ALPHA, S.QQ), (S.ALPHA, S.RR), (S.NEXT_BETA2, S.ZZ), (S.NEXT_BETA2, S.DD)))
        self.eps = float(np.finfo(self.dtype).eps)
        self.step = self.loop.kernels("swell.krylov", "minres", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.step.begin(self.r, self.r if self.M is None else self.z, self.weights, self.v, self.v_old, self.d,
                        self.d_old, self.s)                                    # v = r;  β² = (r, z)
        self.ranks.allreduce(self.first)
        self.step.judge_first(self.s)

    def body(self):
        own_z = self.z is not self.v
        self.iterate(self.v, self.v_old, self.d, self.d_old, self.z if own_z else self.v)
        if not self.loop.halted():
            self.iterate(self.v_old, self.v, self.d_old, self.d, self.z if own_z else self.v_old)

    def iterate(self, v, v_next, d, d_next, z):
        """Do one step. On entry ``v_next`` and ``d_next`` hold the previous step's v and d, and ``z`` holds M v.

        The new v and d overwrite ``v_next`` and ``d_next``; then z = M v_next. x and r are updated in place.
        """
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(z, self.q, z, self.alpha)                                 # q = A z;  α = (z, q)
        self.ranks.allreduce(self.alpha_and_norms)                             # with the last iteration's norms
        step.lanczos(self.q, z, v, v_next, d, d_next, s)             # v' = q − α v − β v_old;  d' = z − δ d − ε d_old
        if self.ended():
            return
        if M is not None:
            M.apply_dots(v_next, z, v_next, self.beta)                         # z = M v';  β'² = (v', z)
        self.ranks.allreduce(self.next)
        step.update(v_next, d_next, self.weights, self.x, self.r, s, self.eps, self.ranks.single)
                                                                     # x = x + c φ d'/γ;  r = s² r − s c φ v'/β'

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess) + self.begun(iterations),
                      iterations + 1 if self.M is not None else 0, 3 * iterations + 1)
