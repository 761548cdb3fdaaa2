"""TFQMR: transpose-free quasi-minimal residuals, preconditioned on the right.

For any square A. Freund 1993, algorithm 5.1. Two steps m = 2k − 1, 2k are an iteration.

An iteration: 2 products, 2 applications of M, 4 reductions, which ranks add up in 2 groups (and judge in the next
iteration, as in cocr.py), no host read. Vector traffic without M: 27 words a row, plus 4 for the products.
Storage: r, w, y, v, d, A y (twice), the shadow vector r̂, and M y if there is an M.

Freund's quantity τ √(m + 1) is only an upper bound of the residual norm, and for the scaled system if there is a
scaling. This method carries the residual itself. x is the average (1 − c²) x + c² x̃ of the last x and the iterate x̃
with residual w. Therefore r = (1 − c²) r + c² w (Zhou and Walker 1994), for 2 words a row and step. The judge and the
report use ‖b − A x‖₂ of this recursive residual, as in every other method.

Differs from the textbook: the recursive residual; the judge speaks after every other step; the shadow vector is random
with a fixed seed; d is in the space of x, so that M need not be applied to it; breakdowns as in bicgstab.py.
"""
from dataclasses import dataclass

from swell.krylov.method import Counts, ShadowIteration, ShadowMethod, part
from swell.krylov.slots import TFQMR as S


@dataclass(frozen=True)
class TFQMR(ShadowMethod):
    """Transpose-free quasi-minimal residuals, for any square matrix: a smoother descent than BiCGSTAB's.

    Attributes
    ----------
    seed : int
        Seed of the random shadow vector.
    """

    cost = "2 products, 2 preconditioners, 4 reductions (2 across ranks)"
    vectors = "8 (9 with a preconditioner)"
    stored = 9

    def bind(self, system):
        return TFQMRIteration(system, self.seed)


class TFQMRIteration(ShadowIteration):
    """The loop of TFQMR."""

    def __init__(self, system, seed):
        super().__init__(system, seed)
        self.r, self.w, self.y, self.v, self.d = (self.vector(name) for name in ("r", "w", "y", "v", "d"))
        self.odd, self.even, self.shadow = (self.vector(name) for name in ("A y odd", "A y even", "shadow"))
        self.yh = self.y if self.M is None else self.vector("y hat")
        self.s = s = self.scalars("tfqmr", len(S))
        self.sigma, self.sums = part(s, S.NORM2, S.VV), part(s, S.ODD2, S.NEXT_RHO)
        self.step = self.loop.kernels("swell.krylov", "tfqmr", self.dtype)

    def start(self, zero_guess):
        self.first_shadow(self.r, self.shadow, self.w, self.s, zero_guess)     # r = b − A x;  r̂;  w = r;  ρ = (r̂, r)
        self.step.clear(self.r, self.y, self.v, self.even, self.d, self.s)     # y = r;  v = A y = d = 0;  τ = ‖r‖

    def body(self):
        step, s = self.step, self.s
        self._product(self.odd)                                                # A y
        step.direction(self.odd, self.even, self.shadow, self.v, s)            # v = A y + β (A y_ + β v);  σ = (r̂, v)
        self.ranks.allreduce(self.sigma)                                       # with the last iteration's norm²
        step.odd(self.yh, self.v, self.odd, self.d, self.y, self.w, s)         # α = ρ/σ;  d = ŷ + c d;  y = y − α v
        if self.ended():                                                       # w = w − α A ŷ;  ‖w‖²
            return
        self._product(self.even)
        step.even(self.even, self.shadow, self.w, s)                           # w = w − α A ŷ;  ‖w‖², ρ' = (r̂, w)
        self.ranks.allreduce(self.sums)
        step.update(self.yh, self.even, self.w, self.weights, self.d, self.x, self.r, self.y, s, self.ranks.single)
                                                          # x = x + η d, twice;  r likewise;  y = w + (ρ'/ρ) y

    def _product(self, out):
        """Set out = A M y; with an M, ``self.yh`` = M y too."""
        if self.M is not None:
            self.M.apply(self.y, self.yh)                                      # ŷ = M y
        self.A.apply(self.yh, out)

    def counts(self, iterations, zero_guess):
        products = 2 * iterations + self.begun(iterations)
        return Counts(products + (not zero_guess), products if self.M is not None else 0, 4 * iterations + 1)
