"""Restarted block GMRES(m), preconditioned on the right: k right-hand sides share one Krylov space.

For any square A. Vital, Étude de quelques méthodes de résolution de problèmes linéaires de grande taille, 1990; Saad,
Iterative Methods, section 6.12. The orthogonalisation is the block form of DCGS2, as ``restarted.py`` has it for one
vector: every basis block is orthogonalised twice, and the basis is read twice in a step.

One step, with V the j finished blocks of k vectors, U the candidates (orthogonalised once), W = A M U:

    S = Vᴴ U,  T = Vᴴ W,  Uᴴ U,  Uᴴ W,  Wᴴ W                one reduction
    αᴴ α = Uᴴ U − Sᴴ S,    V_j = (U − V S) α⁻¹              the second pass over U
    H(:, j−1) += [S; α] Γ                                   corrects the block that U came from
    β = V_jᴴ W = α⁻ᴴ (Uᴴ W − Sᴴ T)
    H(:, j) = ([T; β] − H S) α⁻¹
    γᴴ γ = Wᴴ W − Tᴴ T − βᴴ β,   Γ = γ α⁻¹
    next U = (W − V T − V_j β) γ⁻¹                          the first pass over A M V_j

A step: 1 product and 1 application of M with k vectors, 1 reduction of (j + 2) k × 2 k sums, no host read; 16 (j + 3)
bytes and about 8 (j + 2) k flops a row and right-hand side, in double. Storage: m k basis vectors, U and W. Reports
‖b − A x‖₂ of each right-hand side: recursive inside a cycle, true at the end of each.

Deflation: right-hand sides that have ended, and residuals that depend on others, are taken out at the start of a cycle;
candidates that depend on the basis or on one another are taken out in every step. α is a pivoted Cholesky factor, so
such vectors are found by their pivots; they become zero vectors, with zero rows and columns in H, and no shape changes.
γ, whose pivots suffer from cancellation, only scales: its pivots are clamped from below.

Differs from the textbook: column blocks are finished one step late, so the residuals after j steps are judged in step
j + 1. The least-squares problem keeps a unitary 2 k × 2 k matrix for each step, the product of its reflections.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.columns import Columns, plain
from swell.core.settings import positive
from swell.core.slots import Norms
from swell.krylov.block import BlockIteration
from swell.krylov.method import Counts, Method
from swell.krylov.slots import BlockGMRES as S

MAX_RESTART = 500       # longest cycle
FLOOR = 2.0**8          # least relative pivot of γ, in ε: below it, cancellation has left rounding only


@dataclass(frozen=True)
class BlockGMRES(Method):
    """Block GMRES, for any square matrix and several right-hand sides: no residual ever grows.

    They are solved together, at most 32 at a time, in one Krylov space. One right-hand side is solved as by ``gmres``.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500. A step adds a vector for each right-hand side, so a cycle stores as many
        vectors as independent cycles of this length.
    """

    restart: int = 30

    problem = "any square matrix, several right-hand sides"
    cost = "1 product, 1 preconditioner, 1 reduction"
    vectors = "restart + 2"
    unit_vectors = shared_space = True

    def __post_init__(self):
        positive(self, "restart", most=MAX_RESTART)

    @property
    def stored(self):
        """Number of stored vectors for each right-hand side: V, U and W, and M's results."""
        return self.restart + 3

    def bind(self, system):
        return BlockGMRESIteration(system, self)

    def window(self, n):
        return max(300, 5 * self.restart)


class BlockGMRESIteration(BlockIteration):
    """The cycle of block GMRES."""

    def __init__(self, system, settings):
        super().__init__(system, "block_gmres")
        k, n, padded = self.count, self.b.size, self.space.padded(self.b.size)
        m = self.m = self.steps = min(settings.restart, max(self.n, 1))
        eps = float(np.finfo(self.dtype).eps)
        self.tolerance = max(64 * k * np.finfo(np.float64).eps, k * (16 * eps) ** 2)
        self.floor = FLOOR * eps
        self.V = self.small("V", (m * k, padded), self.dtype)[:, :n]
        self.UW = self.small("U and W", (2 * k, padded), self.dtype)[:, :n]
        self.u, self.w = self._vectors(self.UW[:k]), self._vectors(self.UW[k:])
        self.z = self.u if self.M is None else self.vector("z")
        self.X, self.W, self.norms = self.block(self.x), self.UW[k:], plain(self.norm2).reshape(k, len(Norms))
        self.partial, self.metric = self.of_slices("partial", (m + 2) * k, 2 * k), self.of_slices("metric", k, k)
        self.sums = self.small("sums", ((m + 2) * k, 2 * k))
        H, R = self.small("H", ((m + 1) * k, m * k)), self.small("R", ((m + 1) * k, m * k))
        self.g, self.y = self.small("g", ((m + 1) * k, k)), self.small("y", (m * k, k))
        self.matrices, self.columns = self.small("small", (len(S), k, k)), self.small("columns", 1, "int32")
        self.work = self.sums, H, R, self.small("turns", (m, 2 * k, 2 * k)), self.g, self.matrices, self.columns

    def _vectors(self, array):
        """Return the rows of ``array`` in the form that A and M take: Columns, or one array."""
        return Columns(array) if self.count > 1 else array[0]

    def start(self, zero_guess):
        self.first_residual(self.u, zero_guess)                                # U = B − A X
        self.residual_norm2(self.u, self.norm2)
        self.judge.start(self.norm2)
        self._begin()

    def _begin(self):
        """Begin a cycle with the residuals in U: normalise them, and take out those that depend on others."""
        step = self.step
        step.first(self.UW, self.norms, self.g, self.columns, self.count)      # u_l = r_l/‖r_l‖
        self.gram(self.UW[:self.count], self.UW[:self.count], self.metric)
        step.normalise(self.metric, self.g, self.matrices, self.tolerance, self.count, self.side)
        step.scale(self.UW, self.matrices, self.count, self.side)                # U = U α⁻¹

    def body(self):
        step, m, k = self.step, self.m, self.count
        j = 0
        while j < m and not (j and self.loop.halted(formed=False)):
            if self.M is not None:
                self.M.apply(self.u, self.z)                                   # Z = M U
            self.A.apply(self.z, self.w)                                       # W = A Z
            self._orthogonal_parts(j)                                          # S = Vᴴ U, T = Vᴴ W
            step.coefficients(*self.work, self.tolerance, self.floor, j, k, self.side)           # α, β, γ, H(:, j)
            step.update(self.V, self.UW, self.sums, self.matrices, j, k, self.side)           # V_j, next U
            j += 1
        self._orthogonal_parts(j)                                              # the last candidates' second pass
        step.close(*self.work, self.y, self.tolerance, j, k, self.side)        # R y = g
        if self.M is None:
            step.combine(self.V, self.y, self.columns, self.X, True, k, self.side)          # X = X + V y
        else:
            step.combine(self.V, self.y, self.columns, self.W, False, k, self.side)
            self.M.apply(self.w, self.z)
            self.space.axpby(1, self.z, 1, self.x)                             # X = X + M V y
        self.A.residual(self.x, self.b, self.u)                                # U = B − A X
        self.residual_norm2(self.u, self.norm2)
        step.judge_cycles(self.norms, k)
        self._begin()

    def _orthogonal_parts(self, j):
        """Write [U W V]ᴴ [U W] to ``self.sums``, for j basis blocks."""
        self.step.dots(self.V, self.UW, self.partial, self.rows, j, self.count, self.height)
        self.step.collect(self.partial, self.sums, j, self.count)

    def counts(self, iterations, zero_guess):
        cycles = -(-iterations // self.m)
        steps = iterations + (1 if iterations % self.m else 0)                 # a verdict inside a cycle: a step late
        applied = 0 if self.M is None else steps + cycles
        return Counts(steps + cycles + (not zero_guess), applied, steps + 3 * cycles + 2)
