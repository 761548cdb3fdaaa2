"""LSMR: least squares by minimal residuals of the normal equations, without forming them.

For any m × n matrix A: min ‖b − A x‖₂. Fong and Saunders, LSMR: an iterative algorithm for sparse least-squares
problems, 2011. In exact arithmetic its x is that of MINRES on AᴴA x = Aᴴb: ‖Aᴴ r‖ falls in every step, and ‖r‖ in
practice too, so that it may be stopped earlier than LSQR. From x = 0 it finds the solution of least norm where A has
not full rank.

An iteration: 1 product with A, 1 with Aᴴ, 2 reductions, no host read. Vector traffic: 10 words a column and 3 a row
beside what the products move. Storage: golub_kahan.py, h, h̄ and y. Follows ‖Aᴴ r‖, and ‖r‖ as in section 5.1, by
recurrences; what is reported is computed from A and x at the end.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.least_squares import slots
from swell.least_squares.golub_kahan import Bidiagonalisation, LeastSquaresMethod


@dataclass(frozen=True)
class LSMR(LeastSquaresMethod):
    """LSMR: ‖Aᴴ(b − A x)‖ falls in every step."""

    def bind(self, system, workspace, loop):
        return LSMRIteration(system, workspace, loop)


class LSMRIteration(Bidiagonalisation):
    """The loop of LSMR."""

    def __init__(self, system, workspace, loop):
        super().__init__(system, workspace, loop, "lsmr", slots.LSMR)
        self.h, self.hbar = (workspace.array(name, system.columns, system.dtype) for name in ("h", "h bar"))

    def start(self, limits):
        self.first(limits)
        self.step.start(self.v, self.h, self.hbar, self.s)                     # h = v/α;  h̄ = 0;  ζ̄ = α β, ᾱ = α

    def body(self):
        self.advance()
        self.step.update(self.v, self.h, self.hbar, self.y, self.s)            # ρ = (ᾱ² + β²)^½, θ = s α;  ρ̄ likewise
                                       # h̄ = h − (θ̄ ρ/(ρ_old ρ̄_old)) h̄;  y = y + (ζ/(ρ ρ̄)) h̄;  h = v/α − (θ/ρ) h
