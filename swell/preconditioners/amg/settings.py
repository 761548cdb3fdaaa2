"""AMG: classical algebraic multigrid. Ruge and Stüben 1987; in the form for GPUs of Li, Sjögreen and Yang 2021.

For symmetric positive (semi)definite matrices whose large off-diagonal entries are negative: diffusion, pressure, heat,
finite volumes and linear elements, isotropic or not, with jumping coefficients. The number of CG iterations hardly
depends on the number of unknowns. hierarchy.py builds the levels, cycle.py applies them.

Setup: PMIS coarsening, extended+i interpolation with at most 4 entries a row, Galerkin products in double precision.
An application is a V(1, 1) cycle: two products with A and one each with P and Pᵀ on each level, in single precision.
Together they read some 6.5 times the entries of A. Storage: the levels in double precision for `update`, and the
matrices of the cycle.

Differs from the textbook: the ℓ1 diagonal balances smoother and matrices. So all entries of the cycle are about 1, and
a smoothing step is a plain product (cycle.py). Rows with large positive entries stay on every level (strength.py).
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.in_precision import InPrecision
from swell.core.preconditioner import Preconditioner
from swell.core.settings import positive, real
from swell.formats.symmetry import require_hermitian
from swell.preconditioners.amg import report
from swell.preconditioners.amg.cycle import VCycle
from swell.preconditioners.amg.hierarchy import Hierarchy
from swell.preconditioners.amg.smoother import NAMES

BYTES = 120             # estimated memory of setup and cycle an entry of A, checked before anything is allocated


@dataclass(frozen=True)
class AMG(Preconditioner):
    """Classical algebraic multigrid: a V-cycle.

    Attributes
    ----------
    strength : float
        θ: a link is strong if −aᵢⱼ is at least θ times the largest −aᵢₖ of its row. 0.5 coarsens 3D problems less.
    max_row_sum : float
        Rows whose entries sum to more than this share of their diagonal have no strong links; 1 or more: no such rule.
    interpolation : {"extended", "direct"}
        Extended+i; or direct interpolation, which is cheaper and takes more iterations.
    pmax : int
        Most entries of a row of P.
    smoother : {"chebyshev", "l1_jacobi"}
        Chebyshev polynomials of the fourth kind, or plain steps; both with the ℓ1 diagonal.
    degree : int
        Products with A in a smoothing step, 1 to 4.
    positive : float
        Rows with an aᵢⱼ above this share of aᵢᵢ stay on every level, if at most one row in a hundred has one; 0: off.
    coarsest : int
        Most rows of a level that is not coarsened further; a dense inverse solves it. 0: 300 on a CPU, 1000 on a GPU.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision.
    """

    strength: float = 0.25
    max_row_sum: float = 0.9
    interpolation: str = "extended"
    pmax: int = 4
    smoother: str = "chebyshev"
    degree: int = 1
    positive: float = 0.05
    coarsest: int = 0
    levels: int = 25
    dtype: str = "float32"

    problem = "symmetric positive definite, large off-diagonal entries negative"
    cost = "a V-cycle: some 6.5 times the entries of A in single precision"
    hermitian_only = True
    kinds = "f"
    against_scaling = "AMG takes its interpolation from row sums, which a scaling changes: compare without it"

    def __post_init__(self):
        for name, most in (("pmax", 16), ("degree", 4), ("levels", 100)):
            positive(self, name, most=most)
        positive(self, "coarsest", minimum=0, most=4096)
        for name in ("strength", "max_row_sum", "positive"):
            if not real(getattr(self, name)) or not getattr(self, name) >= 0:
                raise InputError(f"AMG({name}={getattr(self, name)!r}): expected a number of at least 0")
        if self.strength > 1:
            raise InputError(f"AMG(strength={self.strength!r}): expected at most 1, as 0.25 is")
        for name, choices in (("interpolation", ("extended", "direct")), ("smoother", NAMES),
                              ("dtype", ("float32", "float64"))):
            if getattr(self, name) not in choices:
                raise InputError(f"AMG({name}={getattr(self, name)!r}): expected {' or '.join(map(repr, choices))}")

    def build(self, A):
        """Return the V-cycle for a symmetric CSRMatrix, a new `AMGOperator`.

        Raises
        ------
        InputError
            If A is complex, or not symmetric.
        FactorisationError
            If a diagonal entry is not positive, or the coarsest level is indefinite.
        OutOfMemory
            If the hierarchy would not fit; raised before it is built.
        """
        return AMGOperator(A, self)


class AMGOperator(InPrecision):
    """The V-cycle as a preconditioner of A.

    Attributes
    ----------
    hierarchy : Hierarchy
    """

    def __init__(self, A, settings):
        check(A)
        A.space.check_fits(BYTES * A.nnz, f"algebraic multigrid for {A.nnz} entries", "use precond='ic0' or "
                           "scaling='jacobi', or several GPUs")
        self.hierarchy, self._root = Hierarchy(_double(A), settings), root(A)
        cycle = VCycle(self.hierarchy, settings.dtype)
        super().__init__(cycle, cycle.scale, A.dtype)
        self.settings = settings

    @property
    def notes(self):
        h, s = self.hierarchy, self.settings
        if h.dense or not h.ended:
            return ()
        rows = h.last.shape[0]
        return (f"AMG: coarsening ended at {rows} rows on level {len(h.levels) + 1}, since {h.ended} with "
                f"strength={s.strength:g} and max_row_sum={s.max_row_sum:g}; the smoother alone works there: try a "
                "smaller strength, or precond='ic0'",)

    def update(self, A):
        check(A)
        self._root = root(A)
        self.inner.update(_double(A))

    def expect(self, norm):
        """Set the factor that brings vectors of about this norm into the range of the cycle's precision. The vectors in
        the cycle are shorter by √‖A‖∞; this is taken into account."""
        super().expect(norm / self._root)

    def __str__(self):
        return report.text(self)                 # print(solver.M)

    def describe(self):
        h = self.hierarchy
        rows = " ".join(str(M.shape[0]) for M in h.matrices)
        end = "dense inverse" if h.dense else "smoother alone"
        s = self.settings
        return (f"AMG(), {len(h.matrices)} levels of {rows} rows, the last by {end}; operator complexity "
                f"{h.operator_complexity:.2f}; {s.smoother} of degree {s.degree}, {s.dtype}")


def root(A) -> float:
    """Return √‖A‖∞, or 1 for a matrix without entries."""
    return math.sqrt(A.norm_inf()) or 1.0


def _double(A):
    """Return A if it is in double precision, else a copy in double precision."""
    return A if A.dtype == np.float64 else A.astype(np.float64)


def check(A):
    """Raise InputError unless A is real and symmetric, FactorisationError unless its diagonal is positive."""
    if A.dtype.kind == "c":
        raise InputError(f"AMG got a matrix of {A.dtype.name}: expected a real one; use precond='ilu0', or "
                         "'shifted_laplacian' for waves")
    require_hermitian(A, "AMG")
    facts = A.facts(search=False)
    if facts.zero_diagonal:
        raise FactorisationError(f"AMG needs a positive diagonal, and {facts.zero_diagonal} diagonal entries are zero "
                                 f"(the first in row {facts.first_zero}): use method='direct', or "
                                 "precond='ilu0' with method='gmres'")
    if A.shape[0] and facts.gershgorin[0] <= 0:
        raise FactorisationError(
            f"AMG needs a positive diagonal, and the least diagonal entry is {facts.gershgorin[0]:.2e}: negate A and b "
            "if the whole diagonal is negative; else use precond='ilu0' with method='gmres', or method='direct'")
