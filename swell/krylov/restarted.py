"""The cycle that GMRES and FGMRES share: Arnoldi's process with delayed twice-classical Gram–Schmidt, and a small QR.

The orthogonalisation is DCGS2 of Bielich, Langou, Thomas, Świrydowicz, Yamazaki and Boman, Low-synch Gram–Schmidt with
delayed reorthogonalization for Krylov solvers, 2022. The basis is read twice in a step, once for all inner products and
once for all updates.

One step, with V the j finished vectors, u the candidate (orthogonalised once, of norm about 1), w = A M u:

    s = Vᴴ u,  t = Vᴴ w,  (u, u),  (u, w),  (w, w)          one reduction
    α² = (u, u) − ‖s‖²,   v_j = (u − V s)/α                 the second pass over u
    H(:, j−1) += γ [s; α]                                   corrects the column that u came from
    β = v_jᴴ w = ((u, w) − sᴴ t)/α
    H(:, j) = ([t; β] − H s)/α                              since A M v_j = (w − A M V s)/α and A M V = V H
    next u = (w − V t − β v_j)/(γ α)                        the first pass over A M v_j

Column j is finished one step late, so the residual after j steps is known, and judged, in step j + 1.

With ``lengthen``, ``Solve`` doubles the restart, within memory, up to n or MAX_RESTART, and continues from x. It does
so if cycles are too slow to meet the tolerance before the iteration limit: two cycles of the given length, or one of a
longer length. It also does so if the run stagnates. Each solve begins with the given restart.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import IN_SINGLE, Idle, positive, switch, without_effect
from swell.core.slots import Norms
from swell.krylov.method import Counts, Iteration, Method
from swell.krylov.slots import GMRES as S
from swell.krylov.slots import GMRESSums as Sums

MAX_RESTART = 500       # longest cycle; gmres.cu sizes its shared arrays by the same number


@dataclass(frozen=True)
class RestartedMethod(Method):
    """Settings of GMRES and FGMRES."""

    restart: int = 30
    batch: int = 0
    basis: str = "full"
    lengthen: bool = True

    cost = "1 product, 1 preconditioner, 1 reduction"
    distributed = unit_vectors = True
    idle = Idle("basis", IN_SINGLE, "that is the basis' precision already"),

    def __post_init__(self):
        positive(self, "restart", most=MAX_RESTART)
        positive(self, "batch", 0)
        switch(self, "lengthen")
        if self.batch > self.restart:
            without_effect(self, f"with restart={self.restart}, the number of basis vectors",
                           "give a smaller batch", "batch")
        if self.basis not in ("full", "single"):
            raise InputError(f"{type(self).__name__}(basis={self.basis!r}): expected 'full', the precision of the "
                             "system, or 'single'")

    @property
    def stored(self):
        """Number of stored vectors: V, u and w, and Z if the method is flexible."""
        bases = 2 if self.flexible else 1
        return bases * (self.restart + 1) * (0.5 if self.basis == "single" else 1) + 3

    def bind(self, system):
        return RestartedIteration(system, self)

    def longer(self, n):
        restart = min(2 * self.restart, n, MAX_RESTART)
        return replace(self, restart=restart) if self.lengthen and restart > self.restart else None

    def window(self, n):
        return max(300, 5 * self.restart)


class RestartedIteration(Iteration):
    """The cycle of GMRES, and of FGMRES, which keeps the preconditioned vectors Z."""

    def __init__(self, system, settings):
        super().__init__(system)
        m = self.m = self.steps = min(settings.restart, max(self.n, 1))
        self.batch = settings.batch or m
        self.flexible = settings.flexible
        single = np.dtype(np.complex64 if self.dtype.kind == "c" else np.float32)
        self.stored = single if settings.basis == "single" else self.dtype
        self.V = self.basis("V", m, self.stored)
        self.Z = self.basis("Z", m, self.stored) if self.flexible else None
        self.u, self.w = self.vector("u"), self.vector("w")
        apart = self.M is not None if not self.flexible else self.stored != self.dtype
        self.z = self.vector("z") if apart else None
        self.norm2, small = self.scalars("norm2", len(Norms)), self.scalars("small", len(S))
        self.sums = self.dense("sums", 2 * m + len(Sums))
        self.space.reserve_sums(self.sums.size)
        self.H, R = self.dense("H", (m + 1, m)), self.dense("R", (m + 1, m))
        self.g, self.y = self.dense("g", m + 1), self.dense("y", m)
        self.columns = self.workspace.array("columns", 1, "int32")
        self.work = self.sums, self.H, R, self.dense("rotations", (m, 2)), self.g, small, self.columns
        self.step = self.loop.kernels("swell.krylov", "gmres", self.dtype)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def start(self, zero_guess):
        self.sums.fill(0)                                                      # ranks add up all places each step
        self.first_residual(self.u, zero_guess)
        self.residual_norm2(self.u, self.norm2)
        self.judge.start(self.norm2)
        self.step.first(self.u, self.norm2, self.g, self.columns)

    def body(self):
        step, u, m = self.step, self.u, self.m
        j = 0
        while j < m and not (j and self.loop.halted(formed=False)):
            z = self._precondition(j)                                          # z = M u
            self.A.apply(z, self.w)                                            # w = A z
            self.orthogonal_parts(j)                                           # s = Vᴴ u, t = Vᴴ w
            self.ranks.allreduce(self.sums)
            self.finish_vector(j)                                              # v_j, H(:, j), next u
            j += 1
        self.orthogonal_parts(j)                                               # the last candidate's second pass
        self.ranks.allreduce(self.sums)
        step.close(*self.work, self.y, j)                                      # R y = g
        self._correct()                                                        # x = x + M V y
        self.A.residual(self.x, self.b, u)                                     # r = b − A x
        self.residual_norm2(u, self.norm2)
        self.judge.cycle(self.norm2)
        step.first(u, self.norm2, self.g, self.columns)                        # u = r/‖r‖

    def orthogonal_parts(self, j):
        """Write all inner products of step j to ``self.sums``, ``batch`` basis vectors per launch."""
        for begin in range(0, max(j, 1), self.batch):
            self.step.dots(self.V, self.u, self.w, self.sums, begin, min(begin + self.batch, j))

    def finish_vector(self, j):
        """Do all updates of step j: V[j], H, and the next candidate u.

        The basis vectors before the last batch are subtracted from u and w first.
        """
        begin = 0
        while j - begin > self.batch:
            self.step.subtract(self.V, self.u, self.w, self.sums, begin, begin + self.batch)
            begin += self.batch
        self.step.update(self.V, self.u, self.w, *self.work, begin, j, self.flexible)

    def _precondition(self, j):
        """Return z = M u for the candidate u of step j; the flexible form keeps it as Z[j]."""
        if not self.flexible:
            if self.M is None:
                return self.u
            self.M.apply(self.u, self.z)
            return self.z
        z = self.Z[j] if self.z is None else self.z
        if self.M is None:
            self.space.copy(self.u, z)
        else:
            self.M.apply(self.u, z)
        if z is self.z:
            self.step.compress(z, self.Z[j])                                   # z = the stored Z[j], which updates x
        return z

    def _correct(self):
        """Add the correction of a cycle to x, in place: M V y, or Z y in the flexible form."""
        if self.flexible or self.M is None:
            basis = self.Z if self.flexible else self.V
            self.step.combine(basis, self.y, self.columns, self.x, True)
        else:
            self.step.combine(self.V, self.y, self.columns, self.w, False)
            self.M.apply(self.w, self.z)
            self.space.axpby(1, self.z, 1, self.x)

    def counts(self, iterations, zero_guess):
        cycles = -(-iterations // self.m)
        steps = iterations + (1 if iterations % self.m else 0)                 # a verdict inside a cycle: a step late
        applied = 0 if self.M is None else steps + (0 if self.flexible else cycles)
        return Counts(steps + cycles + (not zero_guess), applied, steps + 2 * cycles + 1)
