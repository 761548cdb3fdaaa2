"""Incomplete LU: A ≈ L U with a unit lower L, what ILU(0), ILU(k) and ILUT share. Saad, Iterative Methods, 10.3.

Setup on a given pattern: (L U)ᵢⱼ = aᵢⱼ on it, exactly (row by row on a CPU, or threaded by levels; in the order of
levels on a GPU), or by ``factor_sweeps`` fixed-point sweeps over all entries at once (ParILU, Chow and Patel 2015),
here with two buffers, so that they give the same bits every time. L and U lie in one CSR matrix; the map from A's
entries to its is made once, so that new values cost a gather and the factorisation.

A pivot below 100 ε of the largest entry of its row is a breakdown, said in result and description. ``pivot="shift"``:
A + α S is factored, S = diag(sgn(aᵢᵢ) maxⱼ |aᵢⱼ|), α doubling from 1e-3 until there is none (Manteuffel 1980, for
unsymmetric rows); "perturb": the pivot becomes √ε of the row's largest entry (static pivoting, Li and Demmel 1998).

An application: a solve with L and one with U (triangular.py), their cost what ``solve`` costs.

Differs from the textbook: an ordering is applied inside, unseen: rows are visited in another order while all vectors
stay as they are.
"""
from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import LinearOperator
from swell.core.settings import describe, positive
from swell.formats.csr import CSRMatrix
from swell.preconditioners.incomplete_cholesky import FIRST_SHIFT, LARGEST_SHIFT, ORDERINGS
from swell.preconditioners.preconditioner import Preconditioner
from swell.preconditioners.triangular import combine, resolve_solve

TINY = 100                  # ε of a row's largest entry, below which its pivot is a breakdown


@dataclass(frozen=True)
class IncompleteLU(Preconditioner):
    """Settings that all incomplete LU factorisations share.

    Attributes
    ----------
    solve : str or TriangularSolve
        How L and U are solved with: "exact", "sweeps(count=3, upper=4)", or a settings object.
    ordering : str or Ordering
        In which order rows are eliminated: "natural", "multicolor", "twisted", or any registered ordering.
    pivot : str
        What is done about a tiny pivot: "shift" (A + α S is factored), "perturb" (the pivot alone), or "error".
    shift : float
        α of A + α S, S the largest moduli of rows with the diagonal's signs, which is factored, at least.
    """

    solve: Any = "exact"
    ordering: Any = "natural"
    pivot: str = "shift"
    shift: float = 0.0

    problem = "any matrix whose diagonal is stored"
    cost = "two triangular solves"

    def __post_init__(self):
        name = type(self).__name__
        if self.pivot not in ("shift", "perturb", "error"):
            raise InputError(f"{name}(pivot={self.pivot!r}): expected 'shift', 'perturb' or 'error'")
        if not isinstance(self.shift, numbers.Real) or not 0 <= self.shift <= LARGEST_SHIFT:
            raise InputError(f"{name}(shift={self.shift!r}): expected a number from 0 to {LARGEST_SHIFT:g}")
        resolve_solve(self.solve)
        self.resolved_ordering()

    def resolved_ordering(self):
        """The settings of the ordering, or None."""
        from swell.core.registry import resolve
        choice = self.ordering
        return resolve("ordering", ORDERINGS.get(choice, choice) if isinstance(choice, str) else choice)


@dataclass(frozen=True)
class PatternLU(IncompleteLU):
    """Settings of a factorisation on a pattern that is known before.

    Attributes
    ----------
    factor : str
        "exact"; "levels", the same with a CPU's threads sharing each level of rows (on a GPU "exact" is that already);
        or "sweeps", the fixed-point iteration of Chow and Patel.
    factor_sweeps : int
        How many of these.
    """

    factor: str = "exact"
    factor_sweeps: int = 5

    def __post_init__(self):
        super().__post_init__()
        if self.factor not in ("exact", "levels", "sweeps"):
            raise InputError(f"{type(self).__name__}(factor={self.factor!r}): expected 'exact', 'levels' or 'sweeps'")
        positive(self, "factor_sweeps")

    @abstractmethod
    def pattern(self, A):
        """(indptr, indices) of L and U together for a CSRMatrix A, in its space, that of A included."""

    def build(self, A):
        """The operator (L U)⁻¹.

        Raises
        ------
        InputError
            If a row has no diagonal entry.
        FactorisationError
            If a pivot is tiny and stays so, or may not be helped.
        OutOfMemory
            If the fill would not fit, before it is made.
        """
        return PatternLUOperator(A, self)


class LUOperator(LinearOperator):
    """z = U⁻¹ L⁻¹ r for one matrix.

    Attributes
    ----------
    factor : CSRMatrix
        L strictly below the diagonal, its own diagonal one and not stored, and U, in the order of elimination.
    order : int array or None
        Row i of the factors belongs to row ``order[i]`` of A.
    shift : float
        α of A + α S, which was factored.
    replaced : int
        How many pivots were replaced.
    """

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, self._name = settings, type(settings).__name__
        ordering = settings.resolved_ordering()
        self.order = None if ordering is None else ordering.order(A)
        self._combined = None
        self._analyse(A)
        self._refactor(A)
        self._build_solves()

    @abstractmethod
    def _analyse(self, A):
        """What depends on the pattern alone."""

    @abstractmethod
    def _load(self, A):
        """Take the values of A."""

    @abstractmethod
    def _factorise(self, shift, replacement):
        """Factor A + shift S. Returns the first row with a tiny pivot, or None, and how many there were."""

    def _build_solves(self):
        solve = resolve_solve(self.settings.solve)
        self.L = solve.alone(True).build(self.factor, lower=True, unit=True, order=self.order)
        self.U = solve.alone(False).build(self.factor, lower=False, order=self.order)

    def _refactor(self, A):
        """L and U for the values of A; shifted until there are some."""
        self._load(A)
        how, eps = self.settings.pivot, np.finfo(self.dtype).eps
        self.shift = asked = float(self.settings.shift)
        self.replaced, self.notes = 0, ()
        first, count = bad, _ = self._factorise(self.shift, float(np.sqrt(eps)))
        if bad is None:
            return
        row = first if self.order is None else int(self.order[first])
        said = f"{self._name}: the pivot of row {row} was tiny or not finite"
        if how == "perturb" and self._finite():
            self.replaced = count
            self.notes = (f"{said}; {count} of {self.shape[0]} such pivots were replaced by {np.sqrt(eps):.1e} of the "
                          "largest entry of their rows",)
            return
        while bad is not None and how == "shift":
            self.shift = max(2 * self.shift, FIRST_SHIFT)
            if self.shift > LARGEST_SHIFT:
                break
            bad, _ = self._factorise(self.shift, 1.0)
        if bad is not None:
            remedy = {"shift": f", even with {LARGEST_SHIFT:.0e} of the row's largest entry added to it",
                      "perturb": ", and replacing it did not help", "error": ""}[how]
            raise FactorisationError(f"{said}{remedy}: use pivot='shift' or 'perturb' if that was not tried, another "
                                     "ordering, or method='direct'")
        self.notes = (f"{said}, so A + {self.shift:g} S was factored in place of A, S the largest moduli of its rows",)

    def _finite(self):
        return bool(self.space.xp.isfinite(self.factor.data).all())  # sync

    def update(self, A):
        """Factor a matrix of the same pattern; pattern, order and analysis are kept."""
        self._refactor(A)
        self.L.update(self.factor)
        self.U.update(self.factor)

    def apply(self, x, out, alpha=1, beta=0):
        combine(self, self._solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        combine(self, self._solve_adjoint, x, out, alpha, beta)

    def _solve(self, x, out):
        self.L.solve(x, out)
        self.U.solve(out, out)

    def _solve_adjoint(self, x, out):
        self.U.solve_adjoint(x, out)
        self.L.solve_adjoint(out, out)

    @property
    def nbytes(self):
        return self.L.nbytes + self.U.nbytes + self.factor.nbytes

    def describe(self):
        shift = f", shifted by {self.shift:g} S" if self.shift else ""
        replaced = f", {self.replaced} pivots replaced" if self.replaced else ""
        return (f"{describe(self.settings)}, {self.factor.nnz} entries in L and U{shift}{replaced}; solved by "
                f"{self.L.describe()} and {self.U.describe()}")


class PatternLUOperator(LUOperator):
    """… on a pattern that is known before the values."""

    def _analyse(self, A):
        settings, xp = self.settings, self.space.xp
        ordered, entry = A, None
        if self.order is not None:
            from swell.transforms.permutation import Permutation
            numbers_of = CSRMatrix(A.space, A.indptr, A.indices, xp.arange(A.nnz, dtype=np.float64), A.shape)
            ordered = Permutation(A, self.order).matrix(numbers_of)
            entry = ordered.data.astype(np.int64)
        indptr, indices = settings.pattern(ordered)
        self.matrix = CSRMatrix(A.space, indptr, indices, xp.zeros(indices.size, A.dtype), A.shape)
        self.factor = CSRMatrix(A.space, indptr, indices, xp.empty_like(self.matrix.data), A.shape)
        self.diagonal = diagonal_places(self.matrix, self.order, self._name)
        self._entry, self._place = entry, places(ordered, self.matrix)
        if settings.factor == "sweeps":
            self._factor = FixedPoint(self.matrix, self.factor, self.diagonal, settings.factor_sweeps)
        elif A.space.name != "cpu":
            self._factor = Scheduled(self.matrix, self.factor, self.diagonal)
        else:
            kind = Threaded if settings.factor == "levels" else Sequential
            self._factor = kind(self.matrix, self.factor, self.diagonal)

    def _load(self, A):
        values = A.data if self._entry is None else A.data[self._entry]
        if self._place is None:
            self.matrix.data[...] = values
        else:
            self.matrix.data[self._place] = values
        ones = self.space.xp.ones(self.shape[1], self.matrix.data.real.dtype)
        self._scale = largest_moduli(self.matrix.row_maxima(ones), self.space.xp)

    def _factorise(self, shift, replacement):
        data = shifted(self.space.xp, self.matrix.data, self.diagonal, self._scale, shift)
        first, count = self._factor(data, self._scale, replacement)
        if first is None and not self._finite():             # an entry, though no pivot, has left the range of numbers
            finite = self.space.xp.isfinite(self.factor.data)
            first, count = int(self.factor.rows()[int(finite.argmin())]), 1
        return first, count

    @property
    def nbytes(self):
        maps = sum(a.nbytes for a in (self._entry, self._place) if a is not None)
        return super().nbytes + self.matrix.data.nbytes + self.diagonal.nbytes + maps + self._factor.nbytes


def diagonal_places(A, order, name):
    """Where the diagonal entry of each row is stored; an error that names the first row without one."""
    xp, n = A.space.xp, A.shape[0]
    found = xp.flatnonzero(A.indices == A.rows())
    if found.size < n:
        there = xp.zeros(n, bool)
        there[A.indices[found]] = True
        first = int(there.argmin())  # sync
        row = first if order is None else int(order[first])
        raise InputError(f"{name}: {n - found.size} of {n} rows have no diagonal entry (the first is row {row}), and "
                         "incomplete LU divides by them: permute rows so that they have one, for example by "
                         "scipy.sparse.csgraph.min_weight_full_bipartite_matching, or use method='direct'")
    return found.astype(A.indptr.dtype)


def places(A, wider):
    """Where the entries of A are among those of a wider pattern, or None if it is the same."""
    xp, n = A.space.xp, A.shape[1]
    if A.nnz == wider.nnz:
        return None
    there, here = (m.rows().astype(np.int64) * n + m.indices for m in (A, wider))
    return xp.searchsorted(here, there)


def largest_moduli(scale, xp):
    """The largest moduli of rows, 1 for a row of zeros."""
    return xp.where(scale == 0, scale.dtype.type(1), scale)


def shifted(xp, data, diagonal, scale, shift):
    """The entries of A + shift S."""
    if not shift:
        return data
    data = data.copy()
    d = data[diagonal]
    modulus = abs(d)
    sign = xp.where(modulus > 0, d / xp.where(modulus > 0, modulus, 1), 1)
    data[diagonal] = d + sign * (scale * scale.dtype.type(shift))
    return data


class Factor:
    """What the ways to factor share: called with the entries of A on the pattern, the largest modulus of each row and
    what a tiny pivot is replaced by, each writes L and U and returns the first bad row, or None, and how many."""

    nbytes = 0

    def __init__(self, matrix, factor, diagonal):
        self.factor, self.diagonal = factor, diagonal
        self.space = matrix.space
        self.pattern = matrix.indptr, matrix.indices, diagonal
        self.kernels = self.space.kernels("swell.preconditioners", "ilu", matrix.dtype)
        self.bad = self.space.xp.empty(2, np.int64)
        self.tiny = TINY * float(np.finfo(matrix.dtype).eps)

    def _clear(self):
        self.bad[0], self.bad[1] = np.iinfo(np.int64).max, 0

    def _found(self):
        first, count = (int(v) for v in self.space.to_host(self.bad))  # sync
        return (first, count) if count else (None, 0)


class Sequential(Factor):
    """Row by row, on a CPU."""

    def __call__(self, data, scale, replacement):
        n = self.diagonal.size
        self._clear()
        self.kernels.factor(*self.pattern, data, scale, self.factor.data, np.empty(n, data.dtype),
                            np.zeros(n, data.dtype), self.tiny, replacement, self.bad)
        return self._found()


class Threaded(Factor):
    """Level by level, the rows of one shared by a CPU's threads."""

    def __init__(self, matrix, factor, diagonal):
        super().__init__(matrix, factor, diagonal)
        depth = np.empty(diagonal.size, np.int64)
        self.kernels.find_depths(*self.pattern, depth)
        self.sequence = np.argsort(depth, kind="stable").astype(matrix.indptr.dtype)
        self.bounds = np.concatenate([[0], np.cumsum(np.bincount(depth))])

    def __call__(self, data, scale, replacement):
        self._clear()
        self.factor.data[...] = data
        self.kernels.factor_levels(*self.pattern, scale, self.factor.data, self.sequence, self.bounds, self.tiny,
                                   replacement, self.bad)
        return self._found()

    @property
    def nbytes(self):
        return self.sequence.nbytes + self.bounds.nbytes


class Scheduled(Factor):
    """In the order of levels, on a GPU; each row as soon as those that it needs are done."""

    def __init__(self, matrix, factor, diagonal):
        from swell.preconditioners.level_schedule import Schedule
        super().__init__(matrix, factor, diagonal)
        self.sequence = Schedule(matrix, True).sequence

    def __call__(self, data, scale, replacement):
        xp = self.space.xp
        self._clear()
        self.factor.data[...] = data
        done, drawn = xp.zeros(self.diagonal.size, np.int32), xp.zeros(1, np.int32)
        self.kernels.factor_rows(*self.pattern, scale, self.factor.data, done, self.sequence, drawn, self.tiny,
                                 replacement, self.bad)
        return self._found()

    @property
    def nbytes(self):
        return self.sequence.nbytes


class FixedPoint(Factor):
    """Chow and Patel's sweeps, from the triangles of A, the lower one divided by the diagonal."""

    def __init__(self, matrix, factor, diagonal, sweeps):
        super().__init__(matrix, factor, diagonal)
        xp = self.space.xp
        self.sweeps, index = sweeps, matrix.indptr.dtype
        self.entry_rows = matrix.rows().astype(index)
        self.places = xp.argsort(matrix.indices, kind="stable").astype(index)                # entries by columns
        self.column_rows = self.entry_rows[self.places]
        self.starts = xp.zeros(matrix.shape[1] + 1, index)
        xp.cumsum(xp.bincount(matrix.indices, minlength=matrix.shape[1]), out=self.starts[1:])

    def __call__(self, data, scale, replacement):
        xp = self.space.xp
        d = data[self.diagonal]
        d = xp.where(abs(d) > self.tiny * scale, d, scale.astype(d.dtype))
        indices = self.pattern[1]
        old, fresh = xp.where(indices < self.entry_rows, data / d[indices], data), xp.empty_like(data)
        old[self.diagonal] = d
        for _ in range(self.sweeps):
            self._clear()                        # the last sweep's pivots count
            self.kernels.fixed_point(*self.pattern, self.entry_rows, self.starts, self.column_rows, self.places, data,
                                     scale, old, fresh, self.tiny, replacement, self.bad)
            old, fresh = fresh, old
        self.factor.data[...] = old
        return self._found()

    @property
    def nbytes(self):
        return sum(a.nbytes for a in (self.entry_rows, self.places, self.column_rows, self.starts))
