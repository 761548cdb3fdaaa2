"""Incomplete Cholesky: A ≈ L Lᴴ with L on a given pattern. Saad, Iterative Methods, section 10.3.

- ``ic``: IC(0), on the pattern of A's lower triangle. Meijerink and van der Vorst 1977. ``ic0`` is short for it.
- ``ic(level=2)``: IC(2), with fill up to level 2 (fill.py). Watts 1981.

Setup computes L with (L Lᴴ)ᵢⱼ = aᵢⱼ on its pattern: exactly (row by row on a CPU, by levels on a GPU), or by
``factor_sweeps`` fixed-point sweeps over all entries at once (Chow and Patel 2015). The sweeps use two buffers, so that
they give the same bits every time. If a pivot is not positive, A + α diag(A) is factored instead, α doubling from 1e-3
until all pivots are positive (Manteuffel 1980). The result and the description report α.

An application: a solve with L and one with Lᴴ (triangular.py), at the cost of ``solve``. On a CPU one stored L serves
both solves, and the solve with Lᴴ also computes the inner products that CG needs.

Differs from the textbook: the ordering is internal. The factorisation visits the rows in another order, but no vector
is permuted. "multicolor" makes as many levels as colours; "twisted" makes two independent halves, which two threads of
a CPU solve at once.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.preconditioner import Preconditioner
from swell.core.settings import describe
from swell.formats.csr import CSRMatrix
from swell.formats.symmetry import require_hermitian
from swell.preconditioners.fill import cholesky_pattern
from swell.preconditioners.incomplete import Factorisation, IncompleteOperator, check
from swell.preconditioners.level_schedule import Schedule
from swell.preconditioners.triangular import resolve_solve
from swell.transforms.permutation import Permutation


@dataclass(frozen=True)
class IC(Preconditioner):
    """Incomplete Cholesky, without fill or with fill up to a level.

    Attributes
    ----------
    level : int
        Fill up to this level is kept; 0: no fill.
    solve : str or TriangularSolve
        The solves with L and Lᴴ: "exact", "sweeps(count=3)", or a settings object.
    factor : str
        "exact", or "sweeps": the fixed-point iteration of Chow and Patel.
    factor_sweeps : int
        Number of these sweeps.
    ordering : str or Ordering
        Elimination order of the rows: "natural", "multicolor", "twisted", or any registered ordering.
    shift : float
        Least α of the factored matrix A + α diag(A); setup raises α if a pivot is not positive. A larger α makes L
        better conditioned, so that a few triangular sweeps come nearer to an exact solve.
    """

    level: int = 0
    solve: Any = "exact"
    factor: str = "exact"
    factor_sweeps: int = 5
    ordering: Any = "natural"
    shift: float = 0.0

    problem = "Hermitian positive definite"
    cost = "two triangular solves"
    hermitian_only = True

    def __post_init__(self):
        check(self, ("exact", "sweeps"))

    def build(self, A):
        """Return the operator (L Lᴴ)⁻¹ for a Hermitian matrix.

        Raises
        ------
        InputError
            If A is not Hermitian.
        FactorisationError
            If a diagonal entry is not positive.
        """
        return ICOperator(A, self)


IC0 = IC                    # the literature's name of level 0


class ICOperator(IncompleteOperator):
    """z = L⁻ᴴ L⁻¹ r for one matrix.

    Attributes
    ----------
    factor : CSRMatrix
        L, in elimination order, its diagonal last in each row.
    """

    hermitian = True

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self._check(A)
        self.order = self._find_order(A)
        ordered = self._ordered(A)
        indptr, indices = cholesky_pattern(ordered, settings.level) if settings.level else lower_pattern(ordered)
        xp = A.space.xp
        self._lower = CSRMatrix(A.space, indptr, indices, xp.empty(indices.size, A.dtype), A.shape)
        self.factor = CSRMatrix(A.space, indptr, indices, xp.empty_like(self._lower.data), A.shape)
        self._exact = settings.factor == "exact"
        if not self._exact:
            self._factor = FixedPointFactor(self._lower, self.factor, settings.factor_sweeps)
        elif A.space.name == "cpu":
            self._factor = SequentialFactor(self._lower, self.factor)
        else:
            self._factor = LevelFactor(self._lower, self.factor, Schedule(self._lower, True))
        self._refactor(ordered)
        solve = resolve_solve(settings.solve)
        self.L = solve.build(self.factor, lower=True, order=self.order)
        self.L.prepare_adjoint()
        self.notes, self.variable = (*self.notes, *self.L.notes), self.L.variable
        # Sweeps with Lᴴ are the adjoint of sweeps with L only if both have the same count.
        self.spd = self.hermitian = self.self_adjoint = solve.symmetric

    def _check(self, A):
        """Raise InputError unless A is Hermitian, FactorisationError unless its diagonal is positive."""
        require_hermitian(A, self._name)
        if A.facts(search=False).positive_diagonal:
            return
        d = A.diagonal().real
        first, bad = A.space.find_true(~(d > 0))  # sync
        if bad:
            raise FactorisationError(f"{self._name}: the diagonal entry of row {first} is {float(d[first]):.3g}; a "
                                     "positive definite matrix has a positive diagonal: use method='gmres' or 'direct'")

    def _ordered(self, A):
        """Return A with rows and columns in elimination order: a new CSRMatrix, or A itself in natural order."""
        if self.order is None:
            return A
        return Permutation(A, self.order).matrix(A)

    def _row(self, row):
        """Return the number in A of a row of the factors."""
        return row if self.order is None else int(self.order[row])

    def _refactor(self, ordered):
        """Write the values of L into ``factor``; raise the shift until all pivots are positive, and report it in
        ``notes``.

        ``ordered`` is A with its rows and columns in elimination order."""
        scatter(ordered, self._lower)
        first, bad = self._raise_shift(lambda shift: self._factor(shift)[0])
        if bad is not None:
            raise FactorisationError(f"{self._name}: the pivot of row {self._row(bad)} is not positive, even with "
                                     f"{self.shift:.0e} of the diagonal added: use method='gmres' or 'direct'")
        self.notes = () if first is None else (
            f"{self._name}: the pivot of row {self._row(first)} was not positive, so A + {self.shift:g} diag(A) was "
            "factored in place of A",)

    def update(self, A):
        """Replace L by the factor of new values of A, with the same pattern; pattern, order and analysis are kept."""
        self._check(A)
        self._refactor(self._ordered(A))
        self.L.update(self.factor)
        self.notes = (*self.notes, *self.L.notes)

    @property
    def revision(self):
        return self.L.revision

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if not self.hermitian:
            raise InputError(f"{self._name} with different sweeps for L and Lᴴ has no adjoint: give both the same "
                             "count")
        self.apply(x, out, alpha, beta)

    def _solve(self, x, out):
        between = self.L.source(out)
        self.L.solve(x, between)
        self.L.solve_adjoint(between, out)

    def apply_dots(self, x, out, w, dots):
        between = self.L.source(out)
        self.L.solve(x, between)
        self.L.adjoint_dots(between, out, w, dots)

    @property
    def nbytes(self):
        return self.L.nbytes + self._lower.data.nbytes + self.factor.nbytes + self._factor.nbytes

    def describe(self):
        s = self.settings
        shift = f", shifted by {self.shift:g} diag(A)" if self.shift else ""
        order = "" if self.order is None else f", ordering {s.ordering}"
        how = "" if self._exact else f", by {s.factor_sweeps} fixed-point sweeps"
        return f"{describe(s)}, {self.factor.nnz} entries in L{how}{order}{shift}; solved by {self.L.describe()}"


def lower_pattern(A):
    """Return new arrays (indptr, indices): the pattern of the lower triangle of a CSRMatrix, diagonal included."""
    space, n = A.space, A.shape[0]
    kernels, counts = space.kernels("swell.preconditioners", "ic", A.dtype), space.empty(n, np.int64)
    kernels.count_lower(A.indptr, A.indices, counts)
    indptr = space.empty(n + 1, A.indptr.dtype)
    space.prefix_sums(counts, indptr)
    indices = space.empty(*space.last_entries(indptr), A.indices.dtype)  # sync
    kernels.take_columns(A.indptr, A.indices, counts, indptr, indices)
    return indptr, indices


def scatter(A, lower):
    """Write the lower triangle of A into the values of ``lower``, a CSRMatrix whose pattern contains it; other entries
    of ``lower`` become zero."""
    kernels = A.space.kernels("swell.preconditioners", "ic", A.dtype)
    kernels.take_values(A.indptr, A.indices, A.data, lower.indptr, lower.indices, lower.data)


class CholeskyFactorisation(Factorisation):
    """Base of the three algorithms. A call takes the shift α and factors A + α diag(A), from A's lower triangle."""

    _kernels = "ic_rows"

    def __init__(self, lower, factor):
        super().__init__(factor, self._kernels, 1)
        self.lower = lower


class SequentialFactor(CholeskyFactorisation):
    """Factors row by row, on a CPU."""

    def factorise(self, shift):
        A, n = self.lower, self.lower.shape[0]
        self.kernels.factor(A.indptr, A.indices, A.data, self.factor.data, np.empty(n, A.data.real.dtype),
                            np.zeros(n, A.dtype), shift, self.tiny, self.bad)


class LevelFactor(CholeskyFactorisation):
    """Factors in level order on a GPU: each row starts as soon as the rows that it needs are done."""

    def __init__(self, lower, factor, schedule):
        super().__init__(lower, factor)
        self.schedule = schedule

    def factorise(self, shift):
        A, xp = self.lower, self.space.xp
        inverse, drawn = xp.zeros(A.shape[0], A.data.real.dtype), xp.zeros(1, np.int32)
        self.kernels.factor_rows(A.indptr, A.indices, A.data, self.factor.data, inverse, self.schedule.sequence, drawn,
                                 shift, self.tiny, self.bad)

    @property
    def nbytes(self):
        return self.schedule.sequence.nbytes + self.schedule.bounds.nbytes


class FixedPointFactor(CholeskyFactorisation):
    """Chow and Patel's sweeps. They start from A's lower triangle, its columns divided by √aⱼⱼ."""

    _kernels = "ic"

    def __init__(self, lower, factor, sweeps):
        super().__init__(lower, factor)
        self.sweeps = sweeps
        self.entry_rows = lower.rows().astype(lower.indices.dtype)

    def factorise(self, shift):
        A = self.lower
        d = self.space.xp.sqrt(A.data[A.indptr[1:] - 1].real * (1 + shift))
        start = A.data / d[A.indices]                                          # lᵢⱼ = aᵢⱼ / √aⱼⱼ
        start[A.indptr[1:] - 1] = d
        self.iterate(self.sweeps, start, lambda old, fresh: self.kernels.fixed_point(
            A.indptr, A.indices, self.entry_rows, A.data, old, fresh, shift, self.tiny, self.bad))

    @property
    def nbytes(self):
        return self.entry_rows.nbytes
