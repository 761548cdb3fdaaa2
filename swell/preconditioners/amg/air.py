"""AIR: algebraic multigrid by local approximate ideal restriction. Manteuffel, Münzenmaier, Ruge and Southworth 2019.

For nonsymmetric matrices in which convection dominates, by upwind finite volumes or differences, with any share of
diffusion. The iterations of FGMRES or BiCGSTAB hardly grow with the number of unknowns. local_restriction.py builds the
levels, air_cycle.py applies them.

Setup: PMIS coarsening, a small dense system for each coarse row, R A P in double precision. An application has no
presmoothing: coarse correction, two Jacobi sweeps over fine rows, one over coarse rows, in single precision. It reads
some 2 to 3 times the entries of all levels' matrices. Storage: the levels in double precision for `update`, and the
matrices of the cycle.

Across ranks each rank builds the levels of its own rows alone.

Differs from the textbook: rows are scaled by the diagonal, and all levels share one order of rows (air_cycle.py).
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.columns import plain
from swell.core.encoding import printable
from swell.core.errors import FactorisationError, InputError
from swell.core.in_precision import bringing_near_one
from swell.core.operator import LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.core.settings import one_of, positive, share
from swell.preconditioners.amg import report
from swell.preconditioners.amg.air_cycle import AIRCycle
from swell.preconditioners.amg.hierarchy import Hierarchy
from swell.preconditioners.amg.local_restriction import LocalRestriction

BYTES = 250             # estimated memory of setup and cycle an entry of A, checked before anything is allocated


@dataclass(frozen=True)
class AIR(Preconditioner):
    """Algebraic multigrid by approximate ideal restriction.

    Attributes
    ----------
    strength : float
        Links of at least this share of their row's largest one decide about coarse rows. 0.5 coarsens less.
    neighbours : float
        Links of at least this share lead to the neighbours of a coarse row, in its local system. 0.2 has thinner
        levels.
    distance : {1, 2}
        Links between a coarse row and its neighbours, at most. 1 has thinner levels and more iterations.
    drop : float
        Entries of coarse matrices below this share of their row's largest one are added to the diagonal; 0: none.
    f_sweeps : int
        Jacobi sweeps over the fine rows of a level, 1 to 4; one over the coarse rows follows.
    coarsest : int
        Most rows of a level that is not coarsened further; a dense inverse solves it. 0: 300 on a CPU, 1000 on a GPU.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision.
    """

    strength: float = 0.3
    neighbours: float = 0.05
    distance: int = 2
    drop: float = 1e-3
    f_sweeps: int = 2
    coarsest: int = 0
    levels: int = 25
    dtype: str = "float32"

    problem = "nonsymmetric, convection dominates: upwind finite volumes or differences"
    cost = "coarse correction and three sweeps in single precision: some 2.5 times the entries of all levels"
    kinds = "f"
    against_scaling = "AIR scales rows itself, and a scaling of columns hides how strong links are: compare without it"

    def __post_init__(self):
        share(self, "strength", most=1)
        share(self, "neighbours", most=1)
        share(self, "drop", most=1)
        positive(self, "distance", most=2)
        positive(self, "f_sweeps", most=4)
        positive(self, "levels", most=100)
        positive(self, "coarsest", minimum=0, most=4096)
        one_of(self, "dtype", ("float32", "float64"))

    def build(self, A):
        """Return the cycle for a CSRMatrix, a new `AIROperator`, which also says what is raised."""
        return AIROperator(A, self)


class AIROperator(LinearOperator):
    """A cycle of AIR as a preconditioner of A.

    Parameters
    ----------
    A : CSRMatrix
    settings : AIR

    Attributes
    ----------
    hierarchy : Hierarchy

    Raises
    ------
    InputError
        If A is complex.
    FactorisationError
        If a diagonal entry is zero.
    OutOfMemory
        If the hierarchy would not fit; raised before it is built.
    """

    scratch = ("factor",)

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        check(A)
        A.space.check_fits(BYTES * A.nnz, f"AIR for {A.nnz} entries", "use precond='ilu0'")
        self.settings = settings
        self.hierarchy = Hierarchy(A.in_double(), settings, LocalRestriction(settings))
        self.cycle = AIRCycle(self.hierarchy, settings.f_sweeps, settings.dtype)
        self._magnitude, self.factor = A.norm_inf() or 1.0, A.space.empty(1, np.float64)
        self._kernels = A.space.kernels("swell.preconditioners.amg", "air_cycle", A.dtype)
        self.expect(1.0)

    @property
    def notes(self):
        h, s = self.hierarchy, self.settings
        if h.dense or not h.ended:
            return ()
        return (f"AIR: coarsening ended at {h.last.shape[0]} rows on level {len(h.levels) + 1}, since {h.ended} with "
                f"strength={s.strength:g}; Jacobi steps alone work there: try a smaller strength, or precond='ilu0'",)

    @property
    def arithmetic(self):
        return self.cycle.dtype

    def update(self, A):
        check(A)
        self._magnitude = A.norm_inf() or 1.0
        self.cycle.update(A.in_double())

    def expect(self, norm):
        """Set ``factor`` to a power of two that brings vectors of this norm, divided by A's, into the range of the
        cycle's precision."""
        self.space.from_host(bringing_near_one(norm / self._magnitude), plain(self.factor))

    def apply(self, x, out, alpha=1, beta=0):
        c, kind = self.cycle, out.dtype.type
        self._kernels.enter(x, c.places, c.diagonals[0], True, self.factor, c.b)
        c.solve()
        self._kernels.leave(c.x, c.places, c.diagonals[0], False, self.factor, out, kind(alpha), kind(beta))

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        c, kind = self.cycle, out.dtype.type
        self._kernels.enter(x, c.places, c.diagonals[0], False, self.factor, c.x)
        c.solve_adjoint()
        self._kernels.leave(c.b, c.places, c.diagonals[0], True, self.factor, out, kind(alpha), kind(beta))

    @property
    def revision(self):
        return self.cycle.revision

    @property
    def nbytes(self):
        return self.cycle.nbytes

    @property
    def summary(self):
        """The settings in a few words, for the title of the table of levels."""
        s = self.settings
        return f"approximate ideal restriction at distance {s.distance}, strength {s.strength:g}, {s.dtype}"

    # print, a prompt, a notebook
    __str__, __repr__, _repr_html_ = printable(report.text), printable(report.short), report.html

    def describe(self):
        h, s = self.hierarchy, self.settings
        rows = " ".join(str(M.shape[0]) for M in h.matrices)
        end = "dense inverse" if h.dense else "Jacobi steps"
        return (f"AIR(), {len(h.matrices)} levels of {rows} rows, the last by {end}; operator complexity "
                f"{h.operator_complexity:.2f}; distance {s.distance}, {s.f_sweeps} F sweeps and a C sweep, {s.dtype}")


def check(A):
    """Raise InputError if A is complex, FactorisationError if a diagonal entry is zero."""
    if A.dtype.kind == "c":
        raise InputError(f"AIR got a matrix of {A.dtype.name}: expected a real one; use precond='ilu0', or "
                         "'shifted_laplacian' for waves")
    facts = A.facts(search=False)
    if facts.zero_diagonal:
        raise FactorisationError(f"AIR needs a non-zero diagonal, and {facts.zero_diagonal} diagonal entries are zero "
                                 f"(the first in row {facts.first_zero}): use method='direct', or precond='ilu0' with "
                                 "method='gmres'")
