"""One level of BDDC as an operator, M ≈ A⁻¹: elimination of interiors, and on the interface

    M_Γ = Gᵀ (K + Ψ S_c⁻¹ Φᴴ) G        (Mandel and Dohrmann 2003; Li and Widlund 2006; Tu and Li 2008)

over all subdomains; G gathers weighted copies. With exact interior solves the eigenvalues of M A are 1 and the
eigenvalues of M_Γ S; if A is positive definite, then Φ = Ψ, and the least of them is 1.

    z_Γ = M_Γ (r_Γ − A_ΓI A_II⁻¹ r_I),   z_I = A_II⁻¹ (r_I − A_IΓ z_Γ)

Across ranks, each rank has its own subdomains in full, and a copy of the interface and of the coarse problem. An
application sums three vectors over the ranks (``Subdomains.sum``): the interface residual, the coarse residual and z_Γ.

Interiors that are not positive definite have resonances: A_II may be singular although A is not. Robin terms between
subdomains do not reach them, since these are Dirichlet problems. So an interior next to a resonance is refused.
"""
from __future__ import annotations

import numpy as np

from swell.core.columns import plain
from swell.core.compilation import timed
from swell.core.errors import FactorisationError, InputError
from swell.core.operator import Composite
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc import local
from swell.preconditioners.bddc.adaptive import adaptive_constraints
from swell.preconditioners.bddc.blocks import InteriorBlocks, Inverses
from swell.preconditioners.bddc.coarse import DENSE, DenseCoarse, InexactCoarse, SparseCoarse, assembled, next_level
from swell.preconditioners.bddc.constraints import Constraints
from swell.preconditioners.bddc.corners import missing_corners
from swell.preconditioners.bddc.deluxe import deluxe, diagonal
from swell.preconditioners.bddc.front_solves import FrontInverses, FrontSolver
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.interiors import Interiors
from swell.preconditioners.bddc.mechanisms import advice, is_mechanism, loose
from swell.preconditioners.bddc.problems import eliminations
from swell.preconditioners.bddc.renumbering import equal
from swell.preconditioners.bddc.schur import schur
from swell.preconditioners.bddc.symmetry import HERMITIAN, double
from swell.preconditioners.bddc.unknowns import Unknowns

RESONANT = 1e-10         # smallest eigenvalue over norm of an interior that is not refused
WORK = 8                 # work arrays in double precision, each as large as the local problems inverted together
BATCH_BYTES = {"cpu": 16 << 20, "cuda": 256 << 20}  # most bytes of local problems inverted as one batch: a CPU's cache
                         # holds them, and they keep a GPU busy (a guess until it is measured)


class Level(Composite):
    """BDDC for one matrix and its subdomains.

    Parameters
    ----------
    A : CSRMatrix
        The result of ``subdomains.part``.
    symmetry : Symmetry
        Of A and all subdomain matrices.
    unknowns : Unknowns
        Nodes, near null vectors and the user's corners, numbered as ``subdomains.names``.
    before : Level or None
        The level of earlier values with the same subdomains: its dense factors are ICM's estimates.

    Attributes
    ----------
    definite : bool
        All interiors are positive definite.
    interface : Interface
    constraints : Constraints
    locals : list of Locals
    coarse : LinearOperator or None
        S_c⁻¹: the next ``Level`` if there is one; None without constraints.
    timings : dict
        Seconds of the parts of the setup: interface (classes, weights, copies, constraints), schur (with layers and
        their factors), interior, adaptive, decomposers (local and dense coarse problems), coarse. Together they are
        the whole setup.
    """

    capturable = False       # the library's direct solver solves the interiors
    variable, notes = False, ()                  # the setup sets both

    scratch = ("_g", "_z", "_u", "_given", "_c", "_rc", "_uc")

    def __init__(self, A, subdomains, settings, levels, dtype, unknowns, symmetry=HERMITIAN, before=None):
        super().__init__(A.shape[:1] * 2, np.dtype(dtype), A.space)
        self.symmetry = symmetry
        self.settings, self.subdomains, self.timings, self.next = settings, subdomains, {}, None
        with timed(self.timings, "interface", self.space):
            self.interface = Interface(A, subdomains, unknowns)
            if "c" in settings.constraints:
                self.interface.make_corners(missing_corners(self.interface, settings.constraints))
            self.constraints = Constraints(self.interface, settings.constraints)
            if settings.weights != "deluxe":
                self._weights = self.interface.weights(subdomains, settings.weights)
        with timed(self.timings, "interior", self.space):
            try:
                self.interiors = Interiors(A, self.interface, subdomains, settings.interior, unknowns, symmetry,
                                           self.dtype)
            except FactorisationError as error:
                raise FactorisationError(f"BDDC: the interiors of the subdomains could not be factored ({error}): A "
                                         "need not be singular: take other subdomains, for waves smaller ones, or add "
                                         "damping") from None
            self._g, self._z = (self.space.empty(self.interface.dofs.size, self.dtype) for _ in range(2))
        self._schur()
        self._adaptive()
        with timed(self.timings, "interface", self.space):
            gather = (deluxe(self.space, subdomains, self.interface, self._complements)
                      if settings.weights == "deluxe" else diagonal(self.interface, self._weights))
        self.notes = (*subdomains.notes, *self.interface.notes, *self.constraints.notes)
        self._locals({} if before is None else local.factors_of(before.locals))
        with timed(self.timings, "interface", self.space):
            self._gathers(gather)
        self._coarse(levels, before)
        solvers = self.parts
        self.notes = tuple(dict.fromkeys((*self.notes, *(note for p in self.locals for note in p.notes),
                                          *(note for s in solvers for note in s.notes))))
        self.variable = any(s.variable for s in (*solvers, *(p.K for p in self.locals)))
        self.self_adjoint = False if not symmetry.mirrors or any(s.self_adjoint is False for s in solvers) else None
        self.spd = (self.definite and self.self_adjoint is None
                    and (self.coarse is None or self.coarse.spd) and all(p.positive for p in self.locals))
        if symmetry is HERMITIAN and not self.definite:
            self.notes += ("BDDC: interiors of subdomains are not positive definite, nor is A: they were factored by "
                           "LU, and M is not positive definite either; cg needs that it is: take gmres",)

    # -- setup -----------------------------------------------------------------------------------------------------

    def _schur(self):
        """Set ``_complements``, the Schur complement S of every subdomain; equal subdomains share one array.

        Equal interiors share one factorisation. With ``interior="blocks"`` these factors also make the solver of
        ``interiors``."""
        space, blocks = self.space, self.interiors.by_factors
        with timed(self.timings, "schur", self.space):
            problems = eliminations(space, self.subdomains, self.interface)
        self._check_memory(problems, blocks)
        self.definite = self.symmetry is HERMITIAN
        self._complements, self._like = [None] * len(self.subdomains), np.zeros(len(self.subdomains), np.int64)
        inverses, places = [], []
        for interior in problems:
            with timed(self.timings, "schur", self.space):
                factors = interior.factors(self.symmetry)
                if factors is not None and not factors.definite:
                    self._refuse_resonance(factors, interior)
                    self.definite = False
                for one in interior.subdomains:
                    S = schur(one.A, one.order, one.own, factors, self.symmetry)
                    for k in one.members:
                        self._complements[k], self._like[k] = S, one.members[0]
            if blocks and factors is not None:
                with timed(self.timings, "interior", self.space):
                    inverses.append(Inverses(factors, self.dtype) if space.name != "cpu" else
                                    FrontInverses(factors, self.dtype, self.symmetry))
                    places.append(interior.places(self.subdomains, self.interface))
        if inverses:
            with timed(self.timings, "interior", self.space):
                solver = FrontSolver if space.name == "cpu" else InteriorBlocks
                self.interiors.solver = solver(space, inverses, places, self.interiors.size, self.dtype, self.definite)
        self.definite = all(self.subdomains.from_all_ranks([self.definite]))

    def _refuse_resonance(self, factors, interior):
        """Raise FactorisationError if an interior of the list ``interior.subdomains`` is next to a resonance.
        ``factors``: its Elimination."""
        eigenvalue, vector = factors.resonance()
        largest = float(factors.A.norm_inf())
        if eigenvalue > RESONANT * largest:
            return
        one = interior.subdomains[0]
        told = self.subdomains.resonance(one.members[0], one.order, self.space.to_host(vector))
        raise FactorisationError(
            f"BDDC: the interior of subdomain {one.members[0]} resonates: its matrix has the eigenvalue "
            f"{eigenvalue:.1e}, and entries up to {largest:.1e}{told}: take more and smaller subdomains, whose first "
            "resonances are higher, or add damping (or coefficients are too far apart for double precision)")

    def _check_memory(self, problems, blocks):
        """Raise OutOfMemory if the dense matrices will not fit. ``problems`` is the result of `eliminations` in
        problems.py; ``blocks``: the interior inverses are stored too."""
        rows = np.array([one.own.size for interior in problems for one in interior.subdomains])
        most, squares = int(rows.max(initial=0)), int((rows ** 2).sum())
        size = double(self.dtype).itemsize
        batch_bytes = max(size * most ** 2, min(BATCH_BYTES[self.space.name], size * squares))
        entries = [interior.entries for interior in problems]
        kept = self.dtype.itemsize * sum(entries) if blocks else 0
        others = "'ic0'" if self.space.name == "cpu" else "'direct' or 'ic0'"
        # An inverse replaces its Schur complement. The factors L and E of only one interior exist at a time.
        self.space.check_fits(WORK * batch_bytes + size * (squares + 2 * max(entries)) + kept,
                              f"BDDC, {rows.size} different local problems with up to {most} dofs on the interface,"
                              + (f" and the factors of {len(entries)} different interiors," if blocks else ""),
                              "take smaller subdomains" + (f", or interior={others}" if blocks else ""))

    def _adaptive(self):
        """Add the adaptive constraints of edges and faces, if the settings ask for them."""
        if not self.settings.adaptive:
            return
        with timed(self.timings, "adaptive", self.space):
            self.constraints.add(adaptive_constraints(
                self.space, self.subdomains, self.interface, self.constraints, self._complements, self._weights,
                self.settings.constraints, self.settings.adaptive))

    def _locals(self, before):
        """Set ``locals``, the inverses of the bordered matrices [S Cᵀ; C 0], and free the Schur complements.

        Subdomains with equal matrices and constraints share one inverse; problems of one size are inverted together.
        ``before``: the result of `local.factors_of` for earlier values."""
        settings, itemsize = self.settings, double(self.dtype).itemsize
        constraints = [self.constraints.matrix(k) for k in range(len(self.subdomains))]
        complements, of_size, self.locals = self._complements, {}, []
        del self._complements                    # as large as the inverses: each is freed when its inverse is there
        with timed(self.timings, "decomposers", self.space):
            for members in equal((self._like[k:k + 1], C) for k, (C, _) in enumerate(constraints)):
                shape = constraints[members[0]][0].shape
                of_size.setdefault((*shape, len(members)), []).append(members)
            for (count, size, _), problems in of_size.items():
                batch = max(1, BATCH_BYTES[self.space.name] // max(1, itemsize * (count + size) ** 2))
                for some in (problems[a:a + batch] for a in range(0, len(problems), batch)):
                    self.locals.append(local.local_problems(
                        self.space, settings, some, [complements[members[0]] for members in some],
                        [constraints[members[0]] for members in some], self.dtype, self._hint, self.symmetry,
                        before))
                    for k in (k for members in some for k in members):
                        complements[k] = None

    def _hint(self, k, S, C):
        """Return advice, sentences for a message, on constraints that would make the local problem of subdomain number
        k nonsingular. ``S`` and ``C``: its Schur complement and constraints."""
        return advice(self.interface, self.settings, k, self.space.to_host(S), C)

    def _gathers(self, weighted):
        """Set the sparse matrices that gather the copies of interface dofs and coarse unknowns for the local problems,
        their adjoints, which sum copies, and the work vectors.

        Copies are ordered by problem size, local problem, dof and member; the rows of ``weighted``, from `diagonal` or
        `deluxe`, by subdomain."""
        space = self.space
        numbers = np.split(np.arange(weighted.shape[0]), np.cumsum([c.size for c in self.interface.copies])[:-1])
        copies, coarse = (
            np.concatenate([np.stack([of[m] for m in members], axis=1).ravel()
                            for p in self.locals for members in p.members])
            for of in (numbers, self.constraints.coarse))
        self._gather = CSRMatrix.from_scipy(weighted[copies].astype(self.dtype), space)
        self._gather_coarse = CSRMatrix(space, space.xp.arange(coarse.size + 1), space.from_host(coarse),
                                        space.xp.ones(coarse.size, self.dtype), (coarse.size, self.constraints.count))
        self._scatter, self._scatter_coarse = self._gather.transpose(True), self._gather_coarse.transpose()
        self._u, self._given = (space.empty(copies.size, self.dtype) for _ in range(2))
        self._c = space.empty(coarse.size, self.dtype)
        self._blocks, a, b = [], 0, 0
        for p in self.locals:
            (m, k, c), g = p.basis.shape, p.members.shape[1]
            u, coarse = slice(a, a + m * k * g), slice(b, b + m * c * g)
            self._blocks.append((self._given[u].reshape(m, k, g), self._u[u].reshape(m, k, g),
                                 self._c[coarse].reshape(m, c, g)))
            a, b = u.stop, coarse.stop
        self._rc, self._uc = (space.empty(self.constraints.count, self.dtype) for _ in range(2))

    def _coarse(self, levels, before):
        """Assemble the coarse matrix S_c and set ``coarse``, its solver: a `Level` if ``levels`` > 2, else a dense
        inverse or a sparse direct solver; None without constraints."""
        self.coarse = None
        if not self.constraints.count:
            return
        space, settings = self.space, self.settings
        with timed(self.timings, "coarse", self.space):
            matrices = [None] * len(self.subdomains)
            for p in self.locals:
                for members, coarse in zip(p.members, p.coarse, strict=True):
                    for m in members:
                        matrices[m] = coarse
            matrices, coarse = (self.subdomains.from_all_ranks(parts) for parts in (matrices, self.constraints.coarse))
            if levels > 2:
                larger = next_level(coarse, self.constraints.count, matrices, self.subdomains.groups)
                every = CSRMatrix.from_scipy(larger.assemble(), space)
            else:
                every = CSRMatrix.from_scipy(assembled(coarse, self.constraints.count, matrices), space)
        if levels > 2:
            above = Unknowns(self.constraints.classes, self.constraints.modes())
            try:
                self.coarse = self.next = Level(every, larger, settings, levels - 1, self.dtype, above,
                                                 self.symmetry, before and before.next)
            except (FactorisationError, InputError):
                if self.definite and self.constraints.count <= DENSE:
                    self._dense_coarse(every, None)            # if S_c is singular, this says why
                raise
        elif settings.coarse != "exact":
            with timed(self.timings, "coarse", self.space):
                self.coarse = InexactCoarse(every.astype(self.dtype), settings.coarse, self.symmetry)
        elif self.constraints.count <= DENSE:
            with timed(self.timings, "decomposers", self.space):
                self.coarse = self._dense_coarse(every, before and before.coarse)
        else:
            with timed(self.timings, "coarse", self.space):
                self.coarse = SparseCoarse(every.astype(self.dtype), self.definite)

    def _dense_coarse(self, matrix, before):
        """Return the dense solver of S_c, a CSRMatrix; ``before``: the solver for earlier values. Raises InputError if
        subdomains can move against each other, else FactorisationError if S_c is singular."""
        dense = matrix.to_scipy().toarray()
        try:
            return DenseCoarse(self.space, dense, self.settings, self.dtype, self.symmetry, before, self.definite)
        except FactorisationError as error:
            if error.singular and is_mechanism(dense, self.constraints.modes()):
                raise loose(self.interface, self.settings, self.constraints.count) from None
            raise

    @property
    def parts(self):
        return tuple(solver for solver in (self.interiors.solver, self.coarse) if solver is not None)

    # -- application -----------------------------------------------------------------------------------------------

    def apply(self, x, out, alpha=1, beta=0, adjoint=False):
        """Write out = α M x + β out, or with Mᴴ; x and out may be the same array."""
        g, z, interiors = self._g, self._z, self.interiors
        interiors.reduce(x, g, adjoint)
        if g.size:
            self.subdomains.sum(g)                                             # r_Γ − A_ΓI A_II⁻¹ r_I
            self._on_interface(g, z, adjoint)
            interiors.put(out, interiors.outer, z[interiors.place], alpha, beta)
        interiors.extend(z, out, alpha, beta, adjoint)                         # z_I = A_II⁻¹ (r_I − A_IΓ z_Γ)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta, adjoint=not (self.symmetry is HERMITIAN and self.self_adjoint is None))

    def _on_interface(self, g, z, adjoint):
        """Write z = M_Γ g, or M_Γᴴ g, for vectors on the interface, M_Γ = Gᵀ (K + Ψ S_c⁻¹ Φᴴ) G."""
        xp = self.space.xp
        self._gather.apply(g, self._given)
        for p, (residual, u, c) in zip(self.locals, self._blocks, strict=True):
            p.K.apply(xp, plain(residual), plain(u), adjoint)
            if c.size:
                xp.matmul(p.bases(adjoint)[1], plain(residual), out=plain(c))
        if self.coarse is not None:
            self._scatter_coarse.apply(self._c, self._rc)
            self.subdomains.sum(self._rc)
            (self.coarse.apply_adjoint if adjoint else self.coarse.apply)(self._rc, self._uc)
            self._gather_coarse.apply(self._uc, self._c)
            for p, (_, u, c) in zip(self.locals, self._blocks, strict=True):
                if c.size:
                    sums = plain(u)
                    sums += p.bases(adjoint)[0] @ plain(c)
        self._scatter.apply(self._u, z)
        self.subdomains.sum(z)

    # -- description -----------------------------------------------------------------------------------------------

    @property
    def sizes(self):
        """Number of rows of each bordered matrix that was inverted, a list of int."""
        return [p.rows for p in self.locals if p.rows for _ in p.members]

    @property
    def iterations(self):
        """Iterations of ICM in the setup, for the local and dense coarse problems of this level; 0 without ICM."""
        return sum(p.iterations for p in (*self.locals, self.coarse) if isinstance(p, (local.Locals, DenseCoarse)))

    @property
    def nbytes(self):
        parts = (self.interiors, self.coarse, self._gather, self._scatter)
        return sum(p.nbytes for p in parts if p is not None) + sum(p.nbytes for p in self.locals)

    def describe(self):
        if not self.interface.dofs.size:
            return f"{self.subdomains.describe()} without interface"
        sizes = self.sizes
        more = f", {self.constraints.more} adaptive constraints" if self.constraints.more else ""
        more += f", {k} near null vectors" if (k := self.interface.modes.shape[1]) > 1 else ""
        coarse = "no coarse problem" if self.coarse is None else self.coarse.describe()
        return (f"{self.subdomains.describe()}, {self.interface.dofs.size} dofs on the interface "
                f"({self.interface.describe()}), {len(sizes)} different local problems of "
                f"{min(sizes, default=0)} to {max(sizes, default=0)} rows{more}; {coarse}")

