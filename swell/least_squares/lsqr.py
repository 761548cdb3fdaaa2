"""LSQR: least squares by conjugate gradients on the normal equations, without forming them.

For any m × n matrix A: min ‖b − A x‖₂. Paige and Saunders, LSQR: an algorithm for sparse linear equations and sparse
least squares, 1982. In exact arithmetic LSQR and CG on AᴴA x = Aᴴb give the same x; ‖r‖ falls in every step.
From x = 0 it finds the solution of least norm if A does not have full rank.

An iteration: 1 product with A, 1 with Aᴴ, 2 reductions, no host read. Vector traffic besides the products: 8 words a
column and 3 a row. Storage: the vectors of golub_kahan.py, w and y. Recurrences follow ‖r‖ and ‖Aᴴ r‖. The reported
norms are computed from A and x at the end.
"""
from dataclasses import dataclass

from swell.least_squares import slots
from swell.least_squares.golub_kahan import Bidiagonalisation, LeastSquaresMethod


@dataclass(frozen=True)
class LSQR(LeastSquaresMethod):
    """LSQR: ‖b − A x‖ falls in every step."""

    def bind(self, system, workspace, loop):
        return LSQRIteration(system, workspace, loop)


class LSQRIteration(Bidiagonalisation):
    """The loop of LSQR."""

    def __init__(self, system, workspace, loop):
        super().__init__(system, workspace, loop, "lsqr", slots.LSQR)
        self.w = workspace.array("w", system.columns, system.dtype)

    def start(self, limits):
        self.first(limits)
        self.step.start(self.v, self.w, self.s)                                # w = v/α;  φ̄ = β, ρ̄ = α

    def body(self):
        self.advance()
        self.step.update(self.v, self.w, self.y, self.s)                       # ρ = (ρ̄² + β²)^½;  c = ρ̄/ρ, s = β/ρ
                                                           # y = y + (c φ̄/ρ) w;  w = v/α − (s α/ρ) w
