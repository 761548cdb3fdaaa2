"""BiCGSTAB(l), preconditioned on the right: l steps of BiCG, then a residual polynomial of degree l.

For any square A; also for eigenvalues far from the real axis, where BiCGSTAB's polynomials of degree one stagnate.
Sleijpen and Fokkema 1993, algorithm 3.1. The polynomial is as in Sleijpen and van der Vorst 1995, section 4: it
combines the minimal residual without r̂_l with the shortest r̂_l. ``convex`` is the least cosine of their angle.

An iteration: 2 l products, 2 l + 1 applications of M, 2 l + 1 reductions, no host read. Vector traffic besides the
products: 3 l (l + 1) words a row for the BiCG part, 3 l for x, 3 l + 8 for the polynomial. Storage: 2 l + 2 vectors
and the shadow vector r̃; with an M two more. Reports ‖b − A x‖₂ of the recursive residual, after every iteration.

Differs from the textbook:

- One reduction yields the (l + 1)² inner products of r̂_0 … r̂_l. One thread solves their normal equations, and drops
  powers that depend on earlier ones.
- Powers of θ A replace powers of A, so that they neither overflow nor underflow. θ is a power of two near 1/‖A‖, found
  while iterating; multiplying by it rounds nothing.
- With an M, the loop gathers the correction of x before M is applied, and applies M to it once.
- The shadow vector is random with a fixed seed.
- A step of BiCG is left out if its inner products are only rounding error. The rest of the iteration is then a step of
  minimal residuals. The run ends as BREAKDOWN, and the solve resumes with another shadow vector.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.settings import positive, real
from swell.krylov.method import Counts, Method, ShadowIteration, part
from swell.krylov.slots import BiCGSTABL as S


@dataclass(frozen=True)
class BiCGSTABL(Method):
    """BiCGSTAB with residual polynomials of degree l, for any square matrix.

    Attributes
    ----------
    l : int
        Degree, 1 to 8; 1 is BiCGSTAB.
    convex : float
        Least cosine of the angle between the two combined residuals, in [0, 1); 0: the minimal residual.
    seed : int
        Seed of the random shadow vector.
    """

    l: int = 4
    convex: float = 0.7
    seed: int = 1

    problem = "any square matrix; indefinite and wave problems"
    cost = "2 l products, 2 l + 1 preconditioners, 2 l + 1 reductions"
    vectors = "2 l + 3 (2 l + 5 with a preconditioner)"
    distributed = True

    def __post_init__(self):
        positive(self, "l", most=8)
        positive(self, "seed", 0)
        if not real(self.convex) or not 0 <= self.convex < 1:
            raise InputError(f"BiCGSTABL(convex={self.convex!r}): expected a number from 0 to less than 1, such as 0.7")

    @property
    def stored(self):
        return 2 * self.l + 5

    def bind(self, system):
        return BiCGSTABLIteration(system, self)

    def window(self, n):
        return 1000 // self.l


class BiCGSTABLIteration(ShadowIteration):
    """The loop of BiCGSTAB(l)."""

    def __init__(self, system, settings):
        super().__init__(system, settings.seed)
        self.convex, l = float(settings.convex), settings.l
        self.l = l
        self.R, self.U = self.basis("R", l + 1), self.basis("U", l + 1)
        self.shadow = self.vector("shadow")
        self.hat, self.y = (None, self.x) if self.M is None else (self.vector("hat"), self.vector("y"))
        self.s = s = self.scalars("bicgstabl", len(S))
        self.gamma, self.projected, self.next = (part(s, *ends) for ends in (
            (S.GAMMA, S.UU), (S.PROJECTED, S.PRODUCT2), (S.SIGMA, S.NORM2)))
        self.c = self.dense("coefficients of R and U, of x", 2 * l + 2)
        self.sums = self.dense("R R", (l + 1) * (l + 2) // 2)
        self.space.reserve_sums(self.sums.size)
        self.step = self.loop.kernels("swell.krylov", "bicgstabl", self.dtype)

    def start(self, zero_guess):
        self.s.fill(0)                                                         # α = ω = 0;  θ is not known
        self.first_shadow(self.R[0], self.shadow, self.U[0], self.s, zero_guess)  # r̂_0 = b − A x;  r̃;  û_0 = r̂_0

    def body(self):
        A, step, R, U, s, l = self.A, self.step, self.R, self.U, self.s, self.l
        for j in range(l):
            step.direction(R, U, s, j)                                         # û_i = r̂_i − β û_i
            A.apply_dots(self._hat(U[j]), U[j + 1], self.shadow, self.gamma)   # û_j+1 = A û_j;  γ = (r̃, û_j+1)
            self.ranks.allreduce(self.gamma)
            step.half(R, U, self.y, s, j, j > 0 or self.M is None)             # α = ρ/γ;  r̂_i −= α û_i+1;  x += α û_0
            if j + 1 < l:
                A.apply_dots(self._hat(R[j]), R[j + 1], self.shadow, self.projected)    # r̂_j+1 = A r̂_j;  (r̃, r̂_j+1)
                self.ranks.allreduce(self.projected)
            else:
                A.apply(self._hat(R[j]), R[j + 1])
        single_rank = self.ranks.single
        step.polynomial(R, self.sums, self.c, s, l, self.convex, single_rank)  # γ_i: least ‖r̂_0 − Σ γ_i r̂_i‖
        if not single_rank:
            self.ranks.allreduce(self.sums)
            step.coefficients(self.sums, self.c, s, l, self.convex)
        step.combine(R, U, self.c, self.shadow, self.weights, self.y, s, l)    # r̂_0 −= Σ γ_i r̂_i;  û_0, x likewise
        self.ranks.allreduce(self.next)
        if self.M is not None:
            self.space.axpby(1, self._hat(self.y), 1, self.x)                  # x += M y
        step.settle(s)

    def _hat(self, v):
        """Return M v, which ``self.hat`` then holds; without an M, return v."""
        if self.M is None:
            return v
        self.M.apply(v, self.hat)
        return self.hat

    def counts(self, iterations, zero_guess):
        l = self.l
        return Counts(2 * l * iterations + (not zero_guess), (2 * l + 1) * iterations if self.M is not None else 0,
                      (2 * l + 1) * iterations + 1)
