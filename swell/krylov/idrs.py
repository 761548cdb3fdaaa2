"""IDR(s): induced dimension reduction, preconditioned on the right.

For any square A. Sonneveld and van Gijzen 2008; the variant with bi-orthogonality of van Gijzen and Sonneveld 2011,
algorithm 913, figure 2. Residuals are forced into a space that shrinks by s dimensions every s + 1 products, so that
exact arithmetic ends after n + n/s products.

An iteration: s + 1 products, s + 1 applications of M, s + 3 reductions, which ranks add up in s + 2 groups, no host
read. Vector traffic without M, for s = 4: 99 words a row, or 89 in a complex system, plus 10 for the products.
Storage: 2 s + 2 vectors, s real ones (the shadow space P), and two more with an M. Reports ‖b − A x‖₂ of the recursive
residual, after every iteration.

Differs from the textbook:

- One reduction yields the s inner products of A u_k with P. From these and the triangle Pᴴ G, one thread computes the
  coefficients that the paper's modified Gram–Schmidt computes one after the other.
- P is real, random with a fixed seed, and not orthonormalised.
- ω is as in Sleijpen and van der Vorst 1995: the cosine of (r, A r) is kept above 0.7.
- A step is left out if its inner product is only rounding error. The run then ends as BREAKDOWN after the iteration,
  and the solve resumes with another P.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.core.slots import Norms
from swell.krylov.method import Counts, Iteration, Method, part
from swell.krylov.slots import IDRS as S


@dataclass(frozen=True)
class IDRS(Method):
    """Induced dimension reduction, for any square matrix: near GMRES in products, in short recurrences.

    Attributes
    ----------
    s : int
        Dimension of the shadow space, 1 to 8.
    seed : int
        Seed of the random shadow space.
    """

    s: int = 4
    seed: int = 1

    problem = "any square matrix"
    cost = "s + 1 products, s + 1 preconditioners, s + 3 reductions (s + 2 across ranks)"
    vectors = "3 s + 2 (3 s + 4 with a preconditioner)"
    distributed = True

    def __post_init__(self):
        positive(self, "s", most=8)
        positive(self, "seed", 0)

    @property
    def stored(self):
        return 3 * self.s + 4

    def bind(self, system):
        return IDRSIteration(system, self)

    def window(self, n):
        return 2000 // (self.s + 1)


class IDRSIteration(Iteration):
    """The loop of IDR(s)."""

    def __init__(self, system, settings):
        super().__init__(system)
        self.seed = settings.seed
        s = self.count = max(1, min(settings.s, self.n))
        self.r, self.t = self.vector("r"), self.vector("t")
        self.G, self.U = self.basis("G", s), self.basis("U", s)
        self.P = self.basis("P", s, self.dtype.type(0).real.dtype)
        self.v, self.hat = (self.r, self.r) if self.M is None else (self.vector("v"), self.vector("hat"))
        self.PG = self.dense("P G", (s, s))
        self.f, self.alpha, self.gamma = self.dense("f", s + 1), self.dense("alpha", s + 1), self.dense("gamma", s)
        self.pp = self.n / 3                     # squared length of a row of P: numbers in [−1, 1) have mean square 1/3
        self.small, self.norm2 = self.scalars("idrs", len(S)), self.scalars("norm2", len(Norms))
        self.rt, self.sums = part(self.small, S.RT, S.TT), part(self.small, S.RR, S.TT)
        self.space.reserve_sums(s + 2)
        self.step = self.loop.kernels("swell.krylov", "idrs", self.dtype)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def start(self, zero_guess):
        for k in range(self.count):
            self.space.random(self.seed + 16 * self.attempt + k, self.P[k])
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        self.residual_norm2(self.r, self.norm2)
        self.judge.start(self.norm2)
        self.G.fill(0)                                                         # G = U = 0
        self.U.fill(0)
        self.step.begin(self.P, self.r, self.f, self.count)                    # f = Pᴴ r
        self.ranks.allreduce(self.f)
        self.step.prepare(self.PG, self.f, self.gamma, self.small, self.count)                 # Pᴴ G = I, ω = 1

    def body(self):
        A, M, step, small, s = self.A, self.M, self.step, self.small, self.count
        G, U, r, x, dense = self.G, self.U, self.r, self.x, (self.PG, self.f, self.gamma)
        single_rank = self.ranks.single
        for k in range(s):
            if M is not None:
                step.reduce(r, G, self.gamma, self.v, k, s)                    # v = r − Σ γ_i g_i
                M.apply(self.v, self.hat)                                      # v̂ = M v
            step.expand(self.hat, G, U, self.gamma, small, k, s, M is None)    # u_k = ω v̂ + Σ γ_i u_i
            A.apply(U[k], G[k])                                                # g_k = A u_k
            step.project(self.P, G, *dense, self.alpha, small, k, s, self.pp, single_rank)     # Pᴴ g_k;  α_i, β, γ_i
            if not single_rank:
                self.ranks.allreduce(self.alpha)
                step.column(*dense, self.alpha, small, k, s, self.pp)
            step.update(G, U, x, r, self.alpha, small, k, s)                   # g_k −= Σ α_i g_i, u_k likewise
        if M is not None:                                                      # r −= β g_k;  x += β u_k
            M.apply(r, self.hat)
        A.apply_dots(self.hat, self.t, r, self.rt)                             # t = A M r;  (r, t), (t, t)
        self.ranks.allreduce(self.sums)
        step.finish(self.P, self.hat, self.t, self.weights, x, r, *dense, small, s, single_rank)  # x += ω M r, r −= ω t
        if not single_rank:                                                    # f = Pᴴ r
            self.ranks.allreduce(self.f)
            step.settle(*dense, small, s)

    def counts(self, iterations, zero_guess):
        s = self.count
        return Counts((s + 1) * iterations + (not zero_guess), (s + 1) * iterations if self.M is not None else 0,
                      (s + 3) * iterations + 2)
