"""Restarted GMRES(m), preconditioned on the right, with delayed twice-classical Gram–Schmidt.

For any square A. Saad and Schultz 1986; the orthogonalisation is DCGS2 of Bielich, Langou, Thomas, Świrydowicz,
Yamazaki and Boman, Low-synch Gram–Schmidt with delayed reorthogonalization for Krylov solvers, 2022.

A step: 1 product, 1 application of M, 1 reduction, no host read; the basis is read twice, once for all inner products
and once for all updates: 8 (2 j + 7) bytes a row in double. A cycle adds a product for the true residual, a reduction
and an application of M. Storage: m basis vectors, u and w. Reports ‖b − A x‖₂: recursive inside a cycle, true at the
end of each.

``batch``: so many vectors a launch, for inner products and for updates, as in section 3.2 of Ma, Hu, Yuan and Liu,
Developing a multi-GPU-enabled preconditioned GMRES with inexact triangular solves for block sparse matrices, 2021.
Every further launch reads u and w again and, of the updates, writes them: 0, all in one, is fastest.

``basis="single"``: V (and Z) are stored in single precision and all arithmetic stays in double; u and w stay double:
4 (2 j + 13) bytes a row. Aliaga, Anzt, Grützmacher, Quintana-Ortí and Tomás, Compressed basis GMRES on high-performance
graphics processing units, 2023. Then A M V = V H holds to 6e-8 ‖A M‖ only, so a cycle cannot reduce the residual
further than about by that times the condition; the true residual at its end says how far it came, and the next goes on
from there.

One step, with V the j finished vectors, u the candidate (orthogonalised once, of norm about 1), w = A M u:

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

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import IN_SINGLE, Idle, positive, without_effect
from swell.krylov.method import Counts, Iteration, Method

MOST = 500              # steps of a cycle that the small dense work has room for, as in gmres.cu
SINGLE_BASIS = Idle("basis", IN_SINGLE, "that is the basis' precision already")


@dataclass(frozen=True)
class GMRES(Method):
    """Generalised minimal residuals, for any square matrix: the residual never grows.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500.
    batch : int
        Basis vectors that one launch of inner products, or of updates, handles; 0: all.
    basis : {"full", "single"}
        Precision in which the basis is stored: that of the system, or single.
    """

    restart: int = 30
    batch: int = 0
    basis: str = "full"

    problem = "any square matrix; the residual never grows"
    cost = "1 product, 1 preconditioner, 1 reduction"
    vectors = "restart + 2; single: restart / 2 + 2"
    distributed = True
    idle = SINGLE_BASIS,

    def __post_init__(self):
        check(self)

    @property
    def stored(self):
        return basis_vectors(self)

    def bind(self, system):
        return GMRESIteration(system, self)

    def flexible_form(self):
        from swell.krylov.fgmres import FGMRES
        return FGMRES(self.restart, self.batch, self.basis)

    def window(self, n):
        return max(300, 5 * self.restart)


def check(settings):
    """Raise InputError for settings of GMRES or FGMRES that mean nothing."""
    positive(settings, "restart", most=MOST)
    positive(settings, "batch", 0)
    if settings.batch > settings.restart:
        without_effect(settings, f"with restart={settings.restart}, the most vectors that there are",
                       "give a smaller batch", "batch")
    if settings.basis not in ("full", "single"):
        raise InputError(f"{type(settings).__name__}(basis={settings.basis!r}): expected 'full', the precision of the "
                         "system, or 'single'")


def basis_vectors(settings) -> float:
    """Vectors of the system's precision that GMRES or FGMRES stores: V, u and w, and where it is flexible Z."""
    bases = 2 if settings.flexible else 1
    return bases * (settings.restart + 1) * (0.5 if settings.basis == "single" else 1) + 3


class GMRESIteration(Iteration):
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
        self.norm2 = self.scalars("norm2", 2)
        self.sums = self.scalars("sums", 2 * m + 3)
        self.space.reserve_sums(2 * m + 3)
        self.H = self.scalars("H", (m + 1, m))
        self.R = self.scalars("R", (m + 1, m))
        self.rotations = self.scalars("rotations", (m, 2))
        self.g, self.y = self.scalars("g", m + 1), self.scalars("y", m)
        self.small = self.scalars("small", 2)
        self.columns = self.workspace.array("columns", 1, "int32")
        self.dense = self.sums, self.H, self.R, self.rotations, self.g, self.small, self.columns
        self.step = self.loop.kernels("swell.krylov", "gmres", self.dtype)
        self.judge = self.loop.kernels("swell.core", "judging", self.dtype)

    def start(self, zero_guess):
        self.sums.fill(0)                                                      # all are added up, later ones too
        self.first_residual(self.u, zero_guess)
        self.residual_norm2(self.u, self.norm2)
        self.judge.start(self.norm2)
        self.step.first(self.u, self.norm2, self.g, self.columns)

    def body(self):
        step, u, m = self.step, self.u, self.m
        j = 0
        while j < m and not (j and self.loop.halted()):
            z = self._precondition(j)                                          # z = M u
            self.A.apply(z, self.w)                                            # w = A z
            self.orthogonal_parts(j)                                           # s = Vᴴ u, t = Vᴴ w
            self.space.allreduce(self.sums)
            self.finish_vector(j)                                              # v_j, H(:, j), next u
            j += 1
        self.orthogonal_parts(j)                                               # the last candidate's second pass
        self.space.allreduce(self.sums)
        step.close(*self.dense, self.y, j)                                     # R y = g
        self._correct()                                                        # x = x + M V y
        self.A.residual(self.x, self.b, u)                                     # r = b − A x
        self.residual_norm2(u, self.norm2)
        self.judge.cycle(self.norm2)
        step.first(u, self.norm2, self.g, self.columns)                        # u = r/‖r‖

    def orthogonal_parts(self, j):
        """All inner products of a step, ``batch`` vectors a launch."""
        for begin in range(0, max(j, 1), self.batch):
            self.step.dots(self.V, self.u, self.w, self.sums, begin, min(begin + self.batch, j))

    def finish_vector(self, j):
        """All updates of a step: what is more than one batch is subtracted from u and w first."""
        begin = 0
        while j - begin > self.batch:
            self.step.subtract(self.V, self.u, self.w, self.sums, begin, begin + self.batch)
            begin += self.batch
        self.step.update(self.V, self.u, self.w, *self.dense, begin, j, self.flexible)

    def _precondition(self, j):
        """M u for the candidate."""
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
            self.step.compress(z, self.Z[j])                                   # x is updated by what is stored
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
