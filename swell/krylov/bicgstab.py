"""BiCGSTAB, preconditioned on the right.

For any square A. Van der Vorst 1992; Saad, Iterative Methods, algorithm 7.7.

An iteration: 2 products, 2 applications of M, 3 reductions, no host read. Vector traffic without M: 15 words a row,
plus 4 for the products. Storage: r, p, v, t, the shadow vector r̂, and two more vectors if there is an M.
Reports ‖b − A x‖₂ of the recursive residual.

Differs from the textbook: the shadow vector is random with a fixed seed, since r̂ = r₀ breaks down on acoustics
problems. s overwrites r. An inner product that is only rounding error ends the run as BREAKDOWN. The solve then resumes
from x with another shadow vector, as long as this brings progress.
"""
from dataclasses import dataclass

from swell.krylov.method import Counts, ShadowIteration, ShadowMethod, part
from swell.krylov.slots import BiCGSTAB as S


@dataclass(frozen=True)
class BiCGSTAB(ShadowMethod):
    """Stabilised bi-conjugate gradients, for any square matrix, in short recurrences.

    Attributes
    ----------
    seed : int
        Seed of the random shadow vector.
    """

    cost = "2 products, 2 preconditioners, 3 reductions"
    vectors = "5 (7 with a preconditioner)"

    def bind(self, system):
        return BiCGSTABIteration(system, self.seed)


class BiCGSTABIteration(ShadowIteration):
    """The loop of BiCGSTAB."""

    def __init__(self, system, seed):
        super().__init__(system, seed)
        self.r, self.p, self.v, self.t = (self.vector(name) for name in ("r", "p", "v", "t"))
        self.shadow = self.vector("shadow")
        self.ph = self.p if self.M is None else self.vector("p hat")
        self.sh = self.r if self.M is None else self.vector("s hat")
        self.s = s = self.scalars("bicgstab", len(S))
        self.gamma, self.st, self.sums = part(s, S.GAMMA, S.VV), part(s, S.ST, S.TT), part(s, S.RR, S.NEXT_RHO)
        self.step = self.loop.kernels("swell.krylov", "bicgstab", self.dtype)

    def start(self, zero_guess):
        self.first_shadow(self.r, self.shadow, self.p, self.s, zero_guess)     # r = b − A x;  r̂;  p = r;  ρ = (r̂, r)

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        if M is not None:
            M.apply(self.p, self.ph)                                           # p̂ = M p
        A.apply_dots(self.ph, self.v, self.shadow, self.gamma)                 # v = A p̂;  γ = (r̂, v)
        self.ranks.allreduce(self.gamma)
        step.half(self.v, self.r, s)                                           # α = ρ/γ;  s = r − α v
        if M is not None:
            M.apply(self.r, self.sh)                                           # ŝ = M s
        A.apply_dots(self.sh, self.t, self.r, self.st)                         # t = A ŝ;  (s, t), (t, t)
        self.ranks.allreduce(self.st)
        step.update(self.ph, self.sh, self.t, self.shadow, self.weights, self.x, self.r, s)
        self.ranks.allreduce(self.sums)                                        # x = x + α p̂ + ω ŝ;  r = s − ω t
        step.direction(self.r, self.v, self.p, s)                              # p = r + β (p − ω v)

    def counts(self, iterations, zero_guess):
        products = 2 * iterations + (not zero_guess)
        return Counts(products, 2 * iterations if self.M is not None else 0, 3 * iterations + 1)
