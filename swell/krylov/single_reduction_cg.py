"""Conjugate gradients with one reduction an iteration, for many ranks.

For A = Aᴴ positive definite, M likewise. Chronopoulos and Gear, s-step iterative methods for symmetric linear systems,
1989. Residuals are replaced as by van der Vorst and Ye, Residual replacement strategies for Krylov subspace iterative
methods, 2000, but at fixed intervals.

An iteration: 1 product, 1 application of M, 1 reduction (CG: 2), no host read. Vector traffic without M: 10 words a row
(CG: 8), plus 2 for the product. Storage: r, w, p, s, and u if there is an M.
Reports ‖b − A x‖₂ of the recursive residual (of the original system, if the system is scaled).

In exact arithmetic its iterates equal CG's. With u = M r and w = A u, the curvature of the new direction p = u + β p
follows from (u, w) and the old curvature, and A p = s from the recurrence s = w + β s. Rounding errors of s drive r
away from b − A x more than in CG. So every ``replace`` iterations r and s are computed anew, for two products, and u
and w from r, for a product and an application of M. ``drift`` is the largest drift found.

Differs from the textbook: the curvature of the new direction is a difference, which rounding may make negative. Then
the direction restarts with p = u, whose curvature (u, A u) is measured. If (u, A u) is not positive, the iteration ends
as INDEFINITE.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.settings import positive
from swell.krylov.method import Counts, part
from swell.krylov.slots import SingleReductionCG as S
from swell.krylov.spectrum import LanczosIteration, LanczosMethod


@dataclass(frozen=True)
class SingleReductionCG(LanczosMethod):
    """Conjugate gradients with all inner products in one reduction.

    Attributes
    ----------
    replace : int
        Iterations from one computation of the true residual to the next; 0: never.
    """

    replace: int = 50

    problem = "Hermitian positive definite, on many ranks"
    cost = "1 product, 1 preconditioner, 1 reduction"
    vectors = "4 (5 with a preconditioner)"
    distributed = True

    def __post_init__(self):
        positive(self, "replace", 0)

    def bind(self, system):
        return SingleReductionCGIteration(system, self)


class SingleReductionCGIteration(LanczosIteration):
    """The loop of Chronopoulos and Gear."""

    def __init__(self, system, settings):
        super().__init__(system)
        self.replace = settings.replace
        self.steps = settings.replace or 1
        self.r, self.w, self.p, self.q = (self.vector(name) for name in ("r", "w", "p", "s"))
        self.u = self.r if self.M is None else self.vector("u")
        self.s = s = self.scalars("single_reduction_cg", len(S))
        self.gamma, self.delta, self.sums = part(s, S.GAMMA, S.UU), part(s, S.DELTA, S.WW), part(s, S.GAMMA, S.NORM2)
        self.step = self.loop.kernels("swell.krylov", "single_reduction_cg", self.dtype)

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        self.s.fill(0)                                                         # no drift yet
        self.p.fill(0)                                                         # p = s = 0
        self.q.fill(0)
        self.step.norm(self.r, self.weights, self.s)
        self._products()
        self.ranks.allreduce(self.sums)
        self.step.first(self.s)                                                # α = γ/δ, β = 0

    def body(self):
        for k in range(self.steps):
            if k and self.loop.halted():
                return
            self.step.advance(self.u, self.w, self.p, self.q, self.x, self.r, self.weights, self.s)
            self._products()                                                   # p = u + β p;  s = w + β s
            self.ranks.allreduce(self.sums)                                    # x = x + α p;  r = r − α s
            self.step.settle(self.s, self.coefficients)                        # β = γ/γ_;  α = γ/(δ − β γ/α)
        if self.replace and not self.loop.halted():
            self._replace()

    def _products(self):
        """Set u = M r, w = A u, and the scalars γ = (r, u) and δ = (u, w)."""
        if self.M is not None:
            self.M.apply_dots(self.r, self.u, self.r, self.gamma)
        self.A.apply_dot(self.u, self.w, self.u, self.delta)

    def _replace(self):
        """Set r = b − A x and s = A p by products, then u = M r and w = A u; the drift of r is recorded."""
        self.A.residual(self.x, self.b, self.w)
        self.step.take(self.w, self.r, self.s)                                 # r = b − A x, and its drift
        self.A.apply(self.p, self.q)
        if self.M is not None:
            self.M.apply(self.r, self.u)
        self.A.apply(self.u, self.w)

    @property
    def drift(self) -> float:
        """The largest ‖r − (b − A x)‖₂ over all replaced residuals r, on this rank's rows."""
        return float(np.sqrt(self.space.to_host(self.s)[S.DRIFT2].real))

    def counts(self, iterations, zero_guess):
        times = iterations // self.replace if self.replace else 0
        return Counts(iterations + 1 + 3 * times + (not zero_guess),
                      iterations + 1 + times if self.M is not None else 0, iterations + 1)
