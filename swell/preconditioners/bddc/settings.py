"""BDDC, balancing domain decomposition by constraints, for A = Σ Rᵢᵀ Aᵢ Rᵢ: C. Dohrmann 2003; Mandel and Dohrmann
2003; on more levels Mandel, Sousedík and Dohrmann 2008. L. M. Čejka's thesis, section 3.2, takes the matrices for its
dense decomposers from BDDC.

Condition number of M A: at most C (1 + log H/h)² for two levels with enough constraints (corners and edges in 3D), for
any number of subdomains. Every further level multiplies it by such a factor. The smallest eigenvalue is 1.

Setup, for every different subdomain: a factorisation of its interior, which subdomains with equal interiors share
(elimination.py), its Schur complement (schur.py), and a dense decomposition of the Schur complement bordered by
constraints (local.py). Storage: the interior factors, and a dense inverse for every different subdomain. An
application: two interior solves, a dense product for every subdomain, one coarse solve.

A is symmetric positive definite in this theory. Complex symmetric, Hermitian indefinite and nonsymmetric A work in
GMRES, BiCGSTAB or COCG without a bound: interiors are factored by LU, and a nonsymmetric A has two coarse bases
(symmetry.py, local.py). For waves the subdomains must be small: an interior with resonances below the frequency is
indefinite (`level.py`).

Differs from the textbook: it acts on all of A, not on the interface, so that any Krylov method can use it. Interior
solves may be approximate (``interior="ic0"``), which costs iterations; Schur complements are always exact.

The library computes dense products: on a CPU their bits depend on the number of threads of NumPy's BLAS.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.operator import Wrapper
from swell.core.preconditioner import Preconditioner
from swell.core.registry import rank_operator, resolve
from swell.core.settings import choose_by_none, describe, positive, real, without_effect
from swell.preconditioners.bddc.definite import is_definite
from swell.preconditioners.bddc.inverse import DEFAULT, STORED, decomposer_of, solver_of
from swell.preconditioners.bddc.level import Level
from swell.preconditioners.bddc.splitting import split
from swell.preconditioners.bddc.subdomains import SubdomainSource
from swell.preconditioners.bddc.symmetry import HERMITIAN, double, symmetry_of
from swell.preconditioners.bddc.unknowns import Unknowns
from swell.preconditioners.near_nullspace import check_word
from swell.preconditioners.schwarz import Schwarz
from swell.preconditioners.schwarz import subdomains as owners

MISMATCH = {4: 1e-4, 8: 1e-9}   # accepted error of Σ Rᵢᵀ Aᵢ Rᵢ x over a bound of |A x|, by bytes of a real number


@dataclass(frozen=True)
class BDDC(Preconditioner):
    """Balancing domain decomposition by constraints.

    Attributes
    ----------
    levels : int
        2, or more: BDDC also solves the coarse problem.
    constraints : str
        Letters: c, values at corners; e, averages over edges; f, averages over faces. With c, nodes become corners
        where neighbouring subdomains could still move against each other (corners.py).
    near_nullspace : "constants" or array, shape (n,) or (n, k)
        Vectors that edges and faces represent: a constraint for each that is independent there. "constants": an average
        of each unknown of a node. For elasticity ``swell.rigid_body_modes(points)``: averages and first moments.
    nodes : int array, shape (n,), optional
        The node of each row, numbers 0 to m − 1 without holes. Default: blocks of consecutive rows, as A's pattern
        shows them.
    corners : list of int, optional
        Rows on the interface whose nodes become corners, beside the nodes that BDDC finds.
    averages : {"constraints", "basis"}
        "constraints": edge and face constraints border the local matrices. "basis": a change of basis makes them
        unknowns, so that local matrices are smaller and definite (basis.py). Both give the same operator.
    weights : {"stiffness", "cardinality", "deluxe"}
        Weights that combine the copies of an interface dof. "deluxe": a matrix for each face, edge and corner, from the
        Schur complements of its subdomains (deluxe.py), for Hermitian positive definite A. Fewer iterations where
        subdomains or coefficients are irregular; more memory.
    dense_lu : str, Decomposer or None
        Decomposer of the bordered local problems, such as "getrf", "pcm(x=8)" or "icm(x=32, tolerance=1e-6)". A
        tolerance too loose for an inverse is made smaller, with a note. None: "getrf"; on a CPU Cholesky where local
        problems are inverted, Hermitian, and definite with their constraints.
    interior : str or settings object
        Solver of the interiors. "direct": on a CPU the factors that Schur complements need anyway (front_solves.py), on
        a GPU cuDSS. "blocks": these factors on either; on a GPU they are dense and block tridiagonal, for many
        subdomains with equal interiors, or with enough memory (blocks.py). Or another direct or an approximate
        solver: an incomplete factorisation such as "ic0", for a nonsymmetric A "ilu0", or a cycle such as "amg".
    subdomains : Subdomains or None
        The subdomain matrices, from `swell.pde.poisson_cube`, `swell.pde.helmholtz.subdomains`, or
        `swell.distributed.from_subdomains` on a rank. None: A is split. Its symmetric part must then have no positive
        entries off the diagonal or negative row sums (finite volumes, upwind schemes, most finite differences).
    domains : int
        Without ``subdomains``: the number of subdomains, of all ranks; None: so that each has about 4096 rows.
    partition : {"graph", "rows"}
        Without ``subdomains``: split A by parts of its graph (needs pymetis), or by consecutive rows; each rank splits
        its own rows.
    adaptive : float
        0: no adaptive constraints. Above 1, such as 10: an edge or face gets a constraint for each eigenvalue above
        this value (adaptive.py), on every level, for coefficients that jump within subdomains. Edges and faces are
        those in ``constraints``. For real symmetric positive definite matrices.
    coarse : str or settings object
        Solver of the coarse problem of the last level. "exact": a dense inverse, or above 2000 coarse unknowns the
        direct solver; or a preconditioner that is its own adjoint, such as "smoothed_aggregation", for very many
        subdomains.
    dense_solver : str or DenseSolver
        "inverse": local and dense coarse problems are inverted, and an application is a product. Or the solver of
        `swell.dense` that solves them with their factors in each application: "trsm", "getrs", "is", "ss". An update
        then gives ICM the last factors as its estimates. It must take the factors of ``dense_lu``.
    """

    levels: int = 2
    constraints: str = "cef"
    weights: str = "stiffness"
    dense_lu: Any = None
    interior: Any = "direct"
    subdomains: Any = field(default=None, repr=False, compare=False)
    domains: int | None = None
    partition: str = "graph"
    adaptive: float = 0.0
    coarse: Any = "exact"
    near_nullspace: Any = field(default="constants", repr=False, compare=False)
    nodes: Any = field(default=None, repr=False, compare=False)
    corners: Any = field(default=None, repr=False, compare=False)
    averages: str = "constraints"
    dense_solver: Any = STORED

    problem = "finite elements or volumes, in subdomains"
    cost = "two interior solves, a dense product a subdomain, one coarse solve"
    as_given = True
    across_ranks = True

    def __post_init__(self):
        positive(self, "levels", 2)
        choose_by_none(self, 0, "domains")
        positive(self, "domains")
        letters = self.constraints
        if not isinstance(letters, str) or not letters or set(letters) - set("cef") or len(set(letters)) < len(letters):
            raise InputError(f"BDDC(constraints={letters!r}): expected some of the letters c (corners), e (edges) "
                             "and f (faces), such as 'cef'")
        if not real(self.adaptive) or not (self.adaptive == 0 or 1 < self.adaptive < np.inf):
            raise InputError(f"BDDC(adaptive={self.adaptive!r}): expected 0, or a number above 1, such as 10")
        if self.adaptive and not set(letters) & set("ef"):
            raise InputError(f"BDDC(adaptive={self.adaptive:g}, constraints={letters!r}): adaptive constraints belong "
                             "to edges (e) and faces (f): add one of them, such as 'cef'")
        check_word(self.near_nullspace, "BDDC")
        if self.corners is not None and "c" not in letters:
            raise InputError(f"BDDC(corners=..., constraints={letters!r}): the corners have no constraints: add c to "
                             "the letters, or leave corners out")
        for name, known in (("weights", ("stiffness", "cardinality", "deluxe")), ("partition", ("graph", "rows")),
                            ("averages", ("constraints", "basis"))):
            if getattr(self, name) not in known:
                raise InputError(f"BDDC({name}={getattr(self, name)!r}): expected {' or '.join(map(repr, known))}")
        if self.adaptive and self.weights == "deluxe":
            raise InputError(f"BDDC(adaptive={self.adaptive:g}, weights='deluxe'): adaptive constraints are found for "
                             "scalar weights: take weights='stiffness', or leave adaptive out")
        if self.dense_lu is not None and decomposer_of(self) is None:
            raise InputError(f"BDDC(dense_lu={self.dense_lu!r}): expected a decomposer")
        if self.dense_solver != STORED:
            self._check_dense_solver()
        if self.interior != "blocks":
            self._check_solver("interior", "'direct', 'blocks', or an incomplete factorisation such as 'ic0'")
        if self.coarse != "exact":
            self._check_solver("coarse", "'exact', or a preconditioner such as 'smoothed_aggregation'")
        if self.subdomains is not None and not isinstance(self.subdomains, SubdomainSource):
            raise InputError(f"BDDC(subdomains=...) is of type {type(self.subdomains).__name__}: expected "
                             "swell.Subdomains([(matrix, dofs), ...])")
        if self.subdomains is not None and self.domains:
            raise InputError(f"BDDC(subdomains=..., domains={self.domains}): the subdomains are given: leave domains "
                             "out")
        if self.subdomains is not None:
            without_effect(self, "with subdomains, which are given", "let A be split", "partition")

    def _check_dense_solver(self):
        """Raise InputError unless ``dense_solver`` names a solver that takes the factors of ``dense_lu``."""
        solver, decomposer = solver_of(self), decomposer_of(self) or resolve("decomposer", DEFAULT)
        if solver is None:
            raise InputError(f"BDDC(dense_solver={self.dense_solver!r}): expected 'inverse', or a solver such as "
                             "'trsm'")
        if not issubclass(decomposer.factors, solver.accepts):
            units = " or ".join(kind.unit for kind in solver.accepts)
            raise InputError(f"BDDC(dense_lu={describe(decomposer)}, dense_solver={describe(solver)}): this solver "
                             f"takes factors with the unit diagonal in {units}, and the decomposer leaves it in "
                             f"{decomposer.factors.unit}: take 'trsm' or 'is', or dense_lu='getrf'")
        if self.averages == "basis":
            raise InputError(f"BDDC(averages='basis', dense_solver={describe(solver)}): a change of basis needs stored "
                             "inverses: take averages='constraints', or leave dense_solver out")

    def _check_solver(self, field, expected):
        """Raise InputError, with the text ``expected``, unless a field names a preconditioner."""
        value, why = getattr(self, field), ""
        try:
            if resolve("precond", value) is not None:
                return
        except InputError as error:
            why = f": {error}"
        raise InputError(f"BDDC({field}={value!r}): expected {expected}{why}")

    def tightened(self):
        """Return these settings with smaller tolerances of the decomposer and the dense solver; None if both are
        exact."""
        decomposer, solver = decomposer_of(self), solver_of(self)
        decomposer = decomposer and decomposer.tightened()
        solver = solver and solver.tightened()
        if not (decomposer or solver):
            return None
        return replace(self, dense_lu=decomposer or self.dense_lu, dense_solver=solver or self.dense_solver)

    def dense(self) -> str:
        """Return the decomposer and the dense solver as text."""
        solver = solver_of(self)
        decomposer = decomposer_of(self) or resolve("decomposer", DEFAULT)
        return describe(decomposer) + (f" and {describe(solver)}" if solver else "")

    def build(self, A):
        """Return the preconditioner of a CSRMatrix, a new operator.

        Raises
        ------
        InputError
            If the subdomain matrices do not add up to A, it cannot be split, or the constraints are too few for a
            subdomain.
        FactorisationError
            If A is singular, or a subdomain resonates.
        """
        return (BDDCOperator if A.space.ranks.single else rank_operator("bddc"))(A, self)


class BDDCOperator(Wrapper):
    """z = M r for one matrix.

    Attributes
    ----------
    level, inner : Level
        The first level; ``level.next`` is the next one, or None.
    """

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, self.level, self._owner = settings, None, None
        self._taken, self._tightened = settings, ()                  # with the tolerances that have been small enough
        self.update(A)

    def update(self, A):
        """Set up anew for new values of A with the same pattern; given subdomain matrices must add up to A. The last
        dense factors are the estimates of ICM, where a ``dense_solver`` has kept them."""
        watch = Stopwatch()
        wide = A if A.dtype == double(A.dtype) else A.astype(double(A.dtype))
        subdomains = self.settings.subdomains
        if subdomains is None:
            subdomains = self._split(wide)
        else:
            subdomains = subdomains.present()
            subdomains.check(A)
            self._compare(wide, subdomains, MISMATCH[np.finfo(A.dtype).dtype.itemsize])
        symmetry = symmetry_of(subdomains)
        if self.settings.adaptive and (symmetry is not HERMITIAN or subdomains.dtype.kind == "c"):
            kind = "complex" if subdomains.dtype.kind == "c" else "not symmetric"
            raise InputError(f"BDDC(adaptive={self.settings.adaptive:g}): adaptive constraints bound energies, which "
                             f"real symmetric subdomain matrices have; these are {kind}: leave adaptive out")
        if self.settings.weights == "deluxe" and symmetry is not HERMITIAN:
            raise InputError("BDDC(weights='deluxe'): the weights compare energies, which Hermitian subdomain matrices "
                             f"have; these are {symmetry.value}: take weights='stiffness'")
        A.space.synchronize()
        self._checks = watch.seconds
        self._set_up(A, subdomains.part(wide), subdomains, symmetry)

    def _set_up(self, A, part, subdomains, symmetry):
        """Set ``level``. While M is indefinite and its local problems are inexact, all of them get a smaller tolerance:
        each alone may look good. Later updates begin with it. A is the matrix in its own precision, ``part`` its
        form for the `Level`."""
        while True:
            self.inner = self.level = Level(part, subdomains, self._taken, self._taken.levels, A.dtype,
                                            Unknowns.of(A, self.settings), symmetry, self.level)
            self.level.notes += self._tightened
            tighter = self._taken.tightened()
            if (tighter is None or symmetry is not HERMITIAN or not self.level.definite or self.level.variable
                    or is_definite(A, self.level)):
                return
            self._tightened = (f"BDDC: M was indefinite with {self._taken.dense()}: all local problems were solved "
                               f"with {tighter.dense()}",)
            self._taken = tighter

    def _split(self, A):
        """Return A as a new `Subdomains` (subdomains.py), by `split`, which assigns each pair of coupled rows to a
        subdomain. The settings ``domains`` and ``partition`` choose the owner of each row, at the first call only."""
        if self._owner is None:
            self._owner = owners(A, Schwarz(domains=self.settings.domains, partition=self.settings.partition))
        return split(A.to_scipy(), self._owner)

    @staticmethod
    def _compare(A, subdomains, tolerance):
        """Raise InputError unless the subdomain matrices add up to A: compare both products with one random vector.
        ``tolerance`` is relative to the largest entry of A times the number of entries of its longest row."""
        space, n = A.space, A.space.ranks.local_rows(A.shape[0])
        x = space.empty(n, A.dtype)
        space.random(0, x)
        difference = abs(space.to_host(A.times(x)) - subdomains.times(space.to_host(x)))
        largest = space.max_on_host(A.row_maxima(space.xp.ones(n)))
        if difference.max(initial=0) > tolerance * largest * space.max_on_host(A.row_lengths()):
            row = subdomains.name_of(int(difference.argmax()))
            raise InputError(f"BDDC: the subdomain matrices do not add up to A: row {row} "
                             f"differs by {difference.max():.2e}, where A has entries up to {largest:.2e}; "
                             "their sum must equal A; new values of A need new subdomain matrices")

    @property
    def iterations(self):
        """Iterations of ICM in the last setup, of all levels; 0 for other decomposers."""
        total, level = 0, self.level
        while level is not None:
            total, level = total + level.iterations, level.next
        return total

    @property
    def timings(self):
        """Seconds of the setup's parts, a dict; each value is summed over all levels. "checks" is the time to check the
        input and split A; `Level` explains the other parts."""
        total, level = {"checks": self._checks}, self.level
        while level is not None:
            for part, seconds in level.timings.items():
                total[part] = total.get(part, 0.0) + seconds
            level = level.next
        return total

    def describe(self):
        return f"{describe(self.settings)}: {self.level.describe()}"
