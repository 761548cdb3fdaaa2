"""LSMR: least squares by minimal residuals of the normal equations, without forming them.

For any m × n matrix A: min ‖b − A x‖₂. Fong and Saunders, LSMR: an iterative algorithm for sparse least-squares
problems, 2011. In exact arithmetic LSMR and MINRES on AᴴA x = Aᴴb give the same x. ‖Aᴴ r‖ falls in every step, and in
practice ‖r‖ too, so that LSMR may stop earlier than LSQR. From x = 0 it finds the solution of least norm if A does not
have full rank.

An iteration: 1 product with A, 1 with Aᴴ, 2 reductions, no host read. Vector traffic besides the products: 10 words a
column and 3 a row. Storage: the vectors of golub_kahan.py, h, h̄ and y. Recurrences follow ‖Aᴴ r‖, and ‖r‖ as in
section 5.1. The reported norms are computed from A and x at the end.
"""
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
