"""Restarted GMRES(m), preconditioned on the right, with delayed twice-classical Gram–Schmidt.

For any square A. Saad and Schultz 1986; the orthogonalisation is DCGS2 of Bielich, Langou, Thomas, Świrydowicz,
Yamazaki and Boman, Low-synch Gram–Schmidt with delayed reorthogonalization for Krylov solvers, 2022.

A step: 1 product, 1 application of M, 1 reduction, no host read; the basis is read twice, once for all inner products
and once for all updates. A cycle adds a product for the true residual, a reduction and an application of M.
Storage: m + 1 basis vectors and w. Reports ‖b − A x‖₂: recursive inside a cycle, true at the end of each.

One step, with V the j finished vectors, u = V[j] the candidate (orthogonalised once, of norm about 1), w = A M u:

    s = Vᴴ u,  t = Vᴴ w,  (u, u),  (u, w),  (w, w)          one reduction
    α² = (u, u) − ‖s‖²,   v_j = (u − V s)/α                 the second pass over u
    H(:, j−1) += γ [s; α]                                   corrects the column that u came from
    β = v_jᴴ w = ((u, w) − sᴴ t)/α
    H(:, j) = ([t; β] − H s)/α                              since A M v_j = (w − A M V s)/α and A M V = V H
    next u = (w − V t − β v_j)/(γ α)                        the first pass over A M v_j

Differs from the textbook: column j is finished one step late, so the residual after j steps is known, and judged, in
step j + 1.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.krylov.method import Counts, Iteration, Method

MOST = 500              # steps of a cycle that the small dense work has room for, as in gmres.cu


@dataclass(frozen=True)
class GMRES(Method):
    """Generalised minimal residuals, for any square matrix: the residual never grows.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500.
    """

    restart: int = 30

    problem = "any square matrix; the residual never grows"
    cost = "1 product, 1 preconditioner, 1 reduction"
    vectors = "restart + 2"

    def __post_init__(self):
        positive(self, "restart", most=MOST)

    def bind(self, system):
        return GMRESIteration(system, self.restart, flexible=False)

    def flexible_form(self):
        from swell.krylov.fgmres import FGMRES
        return FGMRES(self.restart)

    def window(self, n):
        return max(300, 5 * self.restart)


class GMRESIteration(Iteration):
    """The cycle of GMRES, and of FGMRES, which keeps the preconditioned vectors Z."""

    def __init__(self, system, restart, flexible):
        super().__init__(system)
        m = self.m = self.steps = min(restart, max(self.n, 1))
        self.flexible = flexible
        self.V = self._basis("V", m + 1)
        self.Z = self._basis("Z", m) if flexible else None
        self.w = self.vector("w")
        self.z = self.vector("z") if self.M is not None and not flexible else None
        self.norm2 = self.scalars("norm2", 2)
        self.sums = self.scalars("sums", 2 * m + 3)
        self.space.reserve_sums(2 * m + 3)
        self.H = self.scalars("H", (m + 1, m))
        self.R = self.scalars("R", (m + 1, m))
        self.rotations = self.scalars("rotations", (m, 2))
        self.g, self.y = self.scalars("g", m + 1), self.scalars("y", m)
        self.small = self.scalars("small", 2)
        self.columns = self.workspace.array("columns", 1, "int32")
        self.step = self.loop.kernels("swell.krylov", "gmres", self.dtype)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def _basis(self, name, count):
        """That many vectors as the rows of one array."""
        return self.workspace.array(name, (count, self.space.padded(self.n)), self.dtype)[:, :self.n]

    def start(self, zero_guess):
        self.first_residual(self.V[0], zero_guess)
        self.residual_norm2(self.V[0], self.norm2)
        self.judge.start(self.norm2)
        self.step.first(self.V, self.norm2, self.g, self.columns)

    def body(self):
        step, V, m = self.step, self.V, self.m
        small = (self.sums, self.H, self.R, self.rotations, self.g, self.small, self.columns)
        j = 0
        while j < m and not (j and self.loop.halted()):
            z = self._precondition(j)                                          # z = M u
            self.A.apply(z, self.w)                                            # w = A z
            step.dots(V, self.w, self.sums, j)                                 # s = Vᴴ u, t = Vᴴ w
            self.space.allreduce(self.sums)
            step.update(V, self.w, *small, j, self.flexible)                   # v_j, H(:, j), next u
            j += 1
        step.dots(V, V[j], self.sums, j)                                       # the last candidate's second pass
        self.space.allreduce(self.sums)
        step.close(*small, self.y, j)                                          # R y = g
        self._correct()                                                        # x = x + M V y
        self.A.residual(self.x, self.b, V[0])                                  # r = b − A x
        self.residual_norm2(V[0], self.norm2)
        self.judge.cycle(self.norm2)
        step.first(V, self.norm2, self.g, self.columns)                        # v₀ = r/‖r‖

    def _precondition(self, j):
        """M u for the candidate u = V[j]."""
        if self.M is None:
            if not self.flexible:
                return self.V[j]
            self.space.copy(self.V[j], self.Z[j])
            return self.Z[j]
        z = self.Z[j] if self.flexible else self.z
        self.M.apply(self.V[j], z)
        return z

    def _correct(self):
        """x += M V y, or x += Z y."""
        if self.flexible or self.M is None:
            basis = self.Z if self.flexible else self.V
            self.step.combine(basis, self.y, self.columns, self.x, True)
        else:
            self.step.combine(self.V, self.y, self.columns, self.w, False)
            self.M.apply(self.w, self.x, 1, 1)

    def counts(self, iterations, zero_guess):
        cycles = -(-iterations // self.m)
        steps = iterations + (1 if iterations % self.m else 0)                 # a verdict inside a cycle: a step late
        applied = 0 if self.M is None else steps + (0 if self.flexible else cycles)
        return Counts(steps + cycles + (not zero_guess), applied, steps + 2 * cycles + 1)
