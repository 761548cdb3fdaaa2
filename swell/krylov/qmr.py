"""QMR: quasi-minimal residuals by coupled two-term recurrences, without look-ahead, preconditioned on the right.

For any square A whose adjoint can be applied. Freund and Nachtigal 1994, algorithm 7.1; as in Barrett et al.,
Templates, figure 2.8, with M₁ = I. A Lanczos process uses A and Aᴴ. QMR combines its vectors to minimise the
coordinates of the residual: the residual falls smoothly where BiCG's jumps.

An iteration: 1 product with A and 1 with Aᴴ, 1 application of M and 1 of Mᴴ, 3 reductions, which ranks add up in 2
groups (and judge in the next iteration, as in cocr.py), no host read. Vector traffic without M: 21 words a row, plus 5
for the products. Storage: r, v, w, p, q, d, A d, A p, Aᴴ q; with an M two more; the matrix a second time, as Aᴴ.
Reports ‖b − A x‖₂ of the recursive residual.

Differs from the textbook: left vectors are conjugated, so that products with Aᴴ replace products with Aᵀ. v and w are
not scaled, but divided by their norms where they are used. The first w is random with a fixed seed. An inner product
that is only rounding error ends the run as BREAKDOWN, and the solve resumes from x with another w.
"""
from dataclasses import dataclass

from swell.krylov.method import Counts, ShadowIteration, ShadowMethod, part
from swell.krylov.slots import QMR as S


@dataclass(frozen=True)
class QMR(ShadowMethod):
    """Quasi-minimal residuals, for any square matrix, with products with the adjoint.

    Attributes
    ----------
    seed : int
        Seed of the random first left vector.
    """

    problem = "any square matrix with an adjoint"
    cost = "1 product and 1 with Aᴴ, 1 preconditioner and 1 with Mᴴ, 3 reductions (2 across ranks)"
    vectors = "9 (11 with a preconditioner), and Aᴴ"
    stored = 11
    adjoint = unit_vectors = True

    def bind(self, system):
        return QMRIteration(system, self.seed)


class QMRIteration(ShadowIteration):
    """The loop of QMR."""

    def __init__(self, system, seed):
        super().__init__(system, seed)
        self.r, self.v, self.w, self.p, self.q = (self.vector(name) for name in ("r", "v", "w", "p", "q"))
        self.d, self.Ad, self.Ap, self.Aq = (self.vector(name) for name in ("d", "A d", "A p", "adjoint A q"))
        self.vh, self.MAq = self.v, self.Aq
        if self.M is not None:
            self.vh, self.MAq = self.vector("v hat"), self.vector("adjoint M A q")
        self.s = s = self.scalars("qmr", len(S))
        self.epsilon, self.sums, self.next = (part(s, *ends) for ends in (
            (S.EPSILON, S.AP2), (S.NORM2, S.AP2), (S.NEXT_WV, S.NEXT_XI2)))
        self.step = self.loop.kernels("swell.krylov", "qmr", self.dtype)
        self.q.fill(0)
        for operator in (self.A, self.M):        # the first use builds an adjoint: do it outside of a capture
            if operator is not None and operator.capturable:
                operator.apply_adjoint(self.q, self.Aq)

    def start(self, zero_guess):
        self.first_shadow(self.r, self.w, self.v, self.s, zero_guess)          # r = b − A x;  v = r;  (w, v), ξ², ρ²
        if self.M is not None:
            self.M.apply(self.v, self.vh)                                      # v̂ = M v
        self.step.first(self.vh, self.w, self.p, self.q, self.d, self.Ad, self.s)               # p = v̂/ρ;  q = w/ξ

    def body(self):
        A, M, step, s = self.A, self.M, self.step, self.s
        A.apply_dots(self.p, self.Ap, self.q, self.epsilon)                    # A p;  ε = (q, A p)
        A.apply_adjoint(self.q, self.Aq)                                       # Aᴴ q
        if M is not None:
            M.apply_adjoint(self.Aq, self.MAq)                                 # Mᴴ Aᴴ q
        self.ranks.allreduce(self.sums)                                        # with the last iteration's norm²
        step.lanczos(self.Ap, self.MAq, self.v, self.w, s)                     # v = A p − β/ρ v;  w = Mᴴ Aᴴ q − β̄/ξ w
        if self.ended():
            return
        self.ranks.allreduce(self.next)
        if M is not None:
            M.apply(self.v, self.vh)                                           # v̂ = M v
        step.update(self.vh, self.w, self.Ap, self.weights, self.p, self.q, self.d, self.Ad, self.x, self.r, s,
                    self.ranks.single)
                          # d = η p + c d;  x = x + d;  r = r − A d;  p = v̂/ρ − (ξ δ/ε) p;  q = w/ξ − conj(ρ δ/ε) q

    def counts(self, iterations, zero_guess):
        begun = self.begun(iterations)
        return Counts(2 * (iterations + begun) + (not zero_guess),
                      2 * iterations + begun + 1 if self.M is not None else 0, 3 * iterations + 1)
