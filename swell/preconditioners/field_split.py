"""FieldSplit: a preconditioner for each field of unknowns, in a block diagonal, triangular or factored whole.

For systems of different unknowns, given by index sets: velocity and pressure, displacement and temperature. Balay et
al., PETSc Users Manual, PCFIELDSPLIT; Murphy, Golub and Wathen 2000; Elman, Silvester and Wathen, Finite Elements and
Fast Iterative Solvers, 2014, chapters 4 and 9. L and U are the blocks of A below and above its diagonal blocks. Mᵢ is
the inner preconditioner of field i, and D the diagonal blocks Mᵢ⁻¹:

    diagonal   M = D⁻¹                                       block Jacobi
    lower      M = (D + L)⁻¹                                 block Gauss–Seidel, from the first field to the last
    upper      M = (D + U)⁻¹                                 from the last to the first
    full       M = (D + U)⁻¹ D (D + L)⁻¹                     both: block LU, symmetric if A and the Mᵢ are

With two fields and ``schur``, M₂ approximates S⁻¹, the inverse of the Schur complement S = A₂₂ − A₂₁ A₁₁⁻¹ A₁₂
(schur_complement.py). With exact Mᵢ a Krylov method then ends after 1 step ("full"), 2 ("lower" and "upper") or 3
("diagonal", of a saddle point). "diagonal" takes |S|⁻¹, and is positive definite as minres needs it.

An application: a gather of x in the order of the fields, each Mᵢ once ("full": all but the last twice), a product with
L or U or both, a scatter. Storage: the blocks, the inner preconditioners, two vectors.

Differs from the textbook: "full" computes Mᵢ (r − L y − U z) instead of y − Mᵢ U z, without a third vector and D.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swell.core.errors import InputError, naming
from swell.core.operator import Composite
from swell.core.preconditioner import Preconditioner
from swell.core.settings import one_of, shown
from swell.formats.csr import CSR
from swell.formats.sell import SELL
from swell.preconditioners.fields import Fields
from swell.preconditioners.schur_complement import KINDS, Blocks, schur_inverse
from swell.preconditioners.user import resolve_preconditioner

ORDERS = "diagonal", "lower", "upper", "full"


@dataclass(frozen=True, eq=False)
class FieldSplit(Preconditioner):
    """A preconditioner for each field of unknowns.

    Attributes
    ----------
    fields : dict, int array, int or "saddle_point"
        The rows of each field: a dict from names to index arrays, boolean masks or slices; or the field of each row,
        shape (n,); or the number of fields, for unknowns that alternate. "saddle_point": "p" has the rows whose
        diagonal entry is zero or negative, "u" all others.
    inner : str, settings object or user's M; or a tuple or a dict of them
        The preconditioner of each field: one for all, or one a field, in the order or by the names of the fields.
    kind : {"lower", "diagonal", "upper", "full"}
        "lower": block Gauss–Seidel, from the first field on; "upper": from the last; "diagonal": block Jacobi; "full":
        block LU.
    schur : None, {"diagonal", "l1", "lsc"} or matrix
        The Schur complement that the second of two fields solves with. None: its block of A. A matrix approximates
        the positive one, C + B F⁻¹ Bᵀ for A = [F Bᵀ; B −C], such as a mass matrix; it stays when A has new values.
    """

    fields: Any = "saddle_point"
    inner: Any = "ilu0"
    kind: str = "lower"
    schur: Any = None

    problem = "several fields of unknowns, such as saddle points"
    cost = "the inner preconditioners, and products with the blocks between the fields"
    as_given = beside_nullspace = across_ranks = True

    def __post_init__(self):
        one_of(self, "kind", ORDERS)
        if isinstance(self.schur, str) and self.schur not in KINDS:
            raise InputError(f"FieldSplit(schur={self.schur!r}): expected {', '.join(map(repr, KINDS))}, a matrix or "
                             "None")
        if not (self.schur is None or isinstance(self.schur, str) or len(getattr(self.schur, "shape", ())) == 2):
            raise InputError(f"FieldSplit(schur=...) is of type {type(self.schur).__name__}: expected "
                             f"{', '.join(map(repr, KINDS))}, a matrix or None")
        several = isinstance(self.inner, (Mapping, tuple))
        each = self.inner.values() if isinstance(self.inner, Mapping) else self.inner if several else (self.inner,)
        for choice in each:
            if resolve_preconditioner(choice) is None:
                raise InputError(f"FieldSplit(inner={shown(self.inner)}): expected a preconditioner for each field, "
                                 "such as 'amg'")

    def inners(self, names):
        """Return the settings of each field's preconditioner, a list in the order of ``names``."""
        inner = self.inner
        if isinstance(inner, Mapping):
            if {*map(str, inner)} != {*names}:
                raise InputError(f"FieldSplit(inner) names {', '.join(map(repr, inner))}: expected the fields "
                                 f"{', '.join(map(repr, names))}")
            chosen = {str(name): choice for name, choice in inner.items()}
            inner = tuple(chosen[name] for name in names)
        if not isinstance(inner, tuple):
            inner = (inner,) * len(names)
        if len(inner) != len(names):
            raise InputError(f"FieldSplit(inner) has {len(inner)} preconditioners: expected one for each of the "
                             f"{len(names)} fields {', '.join(map(repr, names))}")
        return [resolve_preconditioner(choice) for choice in inner]

    def build(self, A):
        if not A.space.ranks.single:
            raise InputError("FieldSplit works on one device, and A is distributed over ranks: use "
                             "precond='schwarz(inner=ilu(drop=0.001))', or solve on one device")
        return FieldSplitOperator(A, self)


class FieldSplitOperator(Composite):
    """z = M r for one matrix.

    Attributes
    ----------
    fields : Fields
    inner : list of LinearOperator
        Mᵢ.
    """

    scratch = ("_t", "_z")

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, self.fields = settings, Fields(A, settings.fields)
        self._kind, fields, count = settings.kind, self.fields, len(self.fields)
        inners = settings.inners(fields.names)
        self._blocks = None
        if settings.schur is not None:
            if count != 2:
                raise InputError(f"FieldSplit(schur={shown(settings.schur)}) needs two fields, and there are {count}: "
                                 "leave schur out")
            self._blocks = Blocks(A, fields, isinstance(settings.schur, str) and settings.schur == "l1")
        self._own = [None if self._blocks else fields.block(A, i, fields.own(i)) for i in range(count)]
        self.inner = [self._built(i, inner) for i, inner in enumerate(inners)]
        self._from_entries = [inner.from_entries for inner in inners]
        self._L = [self._strip(A, i, fields.before(i), ("lower", "full")) for i in range(count)]
        self._U = [self._strip(A, i, fields.after(i), ("upper", "full")) for i in range(count)]
        self._t, self._z = (self.space.xp.zeros(fields.starts[-1], A.dtype) for _ in range(2))
        together = [M.self_adjoint for M in self.inner]
        self.self_adjoint = (False if settings.kind in ("lower", "upper") and count > 1 or False in together
                             else True if all(together) else None)
        self.spd = settings.kind == "diagonal" and all(M.spd for M in self.inner)

    def _strip(self, A, i, columns, kinds):
        """Return the `Strip` of the rows of field i and these columns; None if it is not needed or has no entries."""
        if self._kind not in kinds or columns.start == columns.stop:
            return None
        block = self.fields.block(A, i, columns)
        return Strip(block) if block.matrix.nnz else None

    def _matrix(self, i):
        """The matrix of the preconditioner of field i, without a Schur complement."""
        return self._own[i].matrix if self._blocks is None else self._blocks.A11

    def _built(self, i, inner):
        """Return the preconditioner of field i, built from its settings ``inner``; its errors name the field."""
        with naming(f"field {self.fields.names[i]!r}"):
            if self._blocks is not None and i == 1:
                return schur_inverse(self._blocks, self.settings.schur, inner)
            return inner.build(self._matrix(i))

    def update(self, A):
        """Recompute all blocks and inner preconditioners, in place, for new values of A with the same pattern."""
        if self._blocks is not None:
            self._blocks.update(A)
        for part in (*self._own, *self._L, *self._U):
            if part is not None:
                part.update(A)
        for i, M in enumerate(self.inner):
            with naming(f"field {self.fields.names[i]!r}"):
                if self._blocks is not None and i == 1:
                    M.update(self._blocks)
                elif self._from_entries[i]:
                    M.update(self._matrix(i))

    def apply(self, x, out, alpha=1, beta=0):
        self.fields.split(x, self._t)
        if self._kind == "diagonal":
            for i, M in enumerate(self.inner):
                self._solve(i, M.apply)                                        # zᵢ = Mᵢ rᵢ
        if self._kind in ("lower", "full"):
            for i, M in enumerate(self.inner):
                self._subtract(self._L[i], self.fields.before(i), i)           # tᵢ = rᵢ − Lᵢ z
                self._solve(i, M.apply)                                        # zᵢ = Mᵢ tᵢ
        if self._kind in ("upper", "full"):
            for i in self._backwards:
                self._subtract(self._U[i], self.fields.after(i), i)            # tᵢ = tᵢ − Uᵢ z
                self._solve(i, self.inner[i].apply)                            # zᵢ = Mᵢ tᵢ
        self.fields.join(self._z, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.fields.split(x, self._t)
        if self._kind == "diagonal":
            for i, M in enumerate(self.inner):
                self._solve(i, M.apply_adjoint)
        if self._kind in ("upper", "full"):
            for i, M in enumerate(self.inner):
                self._solve(i, M.apply_adjoint)                                # zᵢ = Mᵢᴴ tᵢ
                self._scatter(self._U[i], i, self.fields.after(i))             # t = t − Uᵢᴴ zᵢ, fields after i
        if self._kind in ("lower", "full"):
            for i in reversed(range(len(self.inner))):
                if self._kind == "lower" or i in self._backwards:
                    self._solve(i, self.inner[i].apply_adjoint)
                self._scatter(self._L[i], i, self.fields.before(i))            # t = t − Lᵢᴴ zᵢ, fields before i
        self.fields.join(self._z, out, alpha, beta)

    @property
    def _backwards(self):
        """The fields from the last to the first; "full" has solved the last one already."""
        return range(len(self.inner) - (2 if self._kind == "full" else 1), -1, -1)

    def _solve(self, i, apply):
        """zᵢ = Mᵢ tᵢ by ``apply``; with the sign of S for a Schur complement, but in "diagonal"."""
        field = self.fields.own(i)
        signed = self._blocks is not None and i == 1 and self._kind != "diagonal"
        apply(self._t[field], self._z[field], self._blocks.sign if signed else 1)

    def _subtract(self, strip, columns, i):
        """tᵢ = tᵢ − strip z."""
        if strip is not None:
            strip.operator.apply(self._z[columns], self._t[self.fields.own(i)], -1, 1)

    def _scatter(self, strip, i, columns):
        """t = t − stripᴴ zᵢ in ``columns``."""
        if strip is not None:
            strip.operator.apply_adjoint(self._z[self.fields.own(i)], self._t[columns], -1, 1)

    @property
    def parts(self):
        return tuple(self.inner)

    @property
    def revision(self):
        signs = 0 if self._blocks is None else self._blocks.sign
        return signs + super().revision + sum(
            strip.operator.revision for strip in (*self._L, *self._U) if strip is not None)

    @property
    def notes(self):
        return tuple(f"field {name!r}: {note}" for name, M in zip(self.fields.names, self.inner) for note in M.notes)

    @property
    def nbytes(self):
        held = (*self._own, *self._L, *self._U, self._blocks, *self.inner, self.fields, self._t, self._z)
        return sum(part.nbytes for part in held if part is not None)

    def describe(self):
        each = "; ".join(f"{name!r}, {rows.size} rows, {'Schur complement ' if self._blocks and i else ''}"
                         f"{M.describe()}"
                         for i, (name, rows, M) in enumerate(zip(self.fields.names, self.fields.rows, self.inner)))
        return f"FieldSplit(kind={self._kind!r}): {each}"


class Strip:
    """A block beside the diagonal, in the format of its device's products."""

    def __init__(self, block):
        self._block = block
        self.operator = (CSR() if block.matrix.space.name == "cpu" else SELL()).build(block.matrix)

    def update(self, A):
        """Take the values of A, which has the same pattern."""
        self._block.update(A)
        self.operator.update(self._block.matrix)

    @property
    def nbytes(self):
        apart = self.operator is not self._block.matrix
        return self._block.nbytes + (self.operator.nbytes if apart else 0)
