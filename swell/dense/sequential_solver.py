"""SS(PP): forward and backward substitution, sequential, on a CPU. Section 2.2.2 and Appendix D of the thesis.

y_i = (b_i − Σ l_ij y_j) / l_ii for j < i, then x_i = y_i − Σ u_ij x_j for j > i, row by row for all right-hand sides.
"""
from dataclasses import dataclass

from swell.dense.solver import BoundSolver, DenseSolver


@dataclass(frozen=True)
class SS(DenseSolver):
    """Forward and backward substitution, sequential, on a CPU."""

    cost = "2 n² a right-hand side, sequential"
    devices = ("cpu",)
    layout = "C"

    def bind(self, factors, trans):
        return Substitution(self, factors, trans)


class Substitution(BoundSolver):
    """SS for one matrix."""

    def substitute(self, X):
        self.space.kernels("swell.dense", "substitution", X.dtype).forward_backward(
            self.lu, self.row, self.column, int(self.unit == "L"), X, self.factors.n)
        return X
