"""Incomplete LU: A ≈ L U with a unit lower L, what ILU(0), ILU(k) and ILUT share. Saad, Iterative Methods, 10.3.

Setup on a given pattern: (L U)ᵢⱼ = aᵢⱼ on it, exactly (row by row on a CPU, or threaded by levels; in the order of
levels on a GPU), or by ``factor_sweeps`` fixed-point sweeps over all entries at once (ParILU, Chow and Patel 2015),
here with two buffers, so that they give the same bits every time; the description says by how much the last one
changed L and U, and where that is more than all of them, it is a breakdown. L and U lie in one CSR matrix; the map from
A's entries to its is made once, so that new values cost a gather and the factorisation.

A pivot below 100 ε of the largest entry of its row is a breakdown, said in result and description. ``pivot="shift"``:
A + α S is factored, S = diag(sgn(aᵢᵢ) maxⱼ |aᵢⱼ|), α doubling from 1e-3 until there is none (Manteuffel 1980, for
unsymmetric rows); "perturb": the pivot becomes √ε of the row's largest entry (static pivoting, Li and Demmel 1998).

An application: a solve with L and one with U (triangular.py), their cost what ``solve`` costs. One is done in setup,
since factors may be of no use though no pivot is tiny: where squares would overflow, that is a breakdown too.

Differs from the textbook: an ordering is applied inside, unseen: rows are visited in another order while all vectors
stay as they are.
"""
from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import LinearOperator
from swell.core.settings import circumstances, describe, idle_notes
from swell.formats.csr import CSRMatrix
from swell.preconditioners.incomplete import (FIRST_SHIFT, LARGEST_SHIFT, LEVELS, check, check_factor,
                                               resolve_ordering)
from swell.preconditioners.lu_factorisation import FixedPoint, Scheduled, Threaded, soonest
from swell.preconditioners.preconditioner import Preconditioner
from swell.preconditioners.triangular import combine, resolve_solve


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
        if self.pivot not in ("shift", "perturb", "error"):
            raise InputError(f"{type(self).__name__}(pivot={self.pivot!r}): expected 'shift', 'perturb' or 'error'")
        check(self)


@dataclass(frozen=True)
class PatternLU(IncompleteLU):
    """Settings of a factorisation on a pattern that is known before.

    Attributes
    ----------
    factor : str
        "exact": on a CPU row by row or, with threads enough, by levels, the same to the bit; "levels": these in any
        case (on a GPU "exact" is that already); "sweeps": the fixed-point iteration of Chow and Patel.
    factor_sweeps : int
        How many of these.
    """

    factor: str = "exact"
    factor_sweeps: int = 5

    idle = LEVELS,

    def __post_init__(self):
        super().__post_init__()
        check_factor(self, ("exact", "levels", "sweeps"))

    def filled(self, A):
        """A with what is to be stored of it before rows are put in order; A itself, or zeros beside its entries."""
        return A

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
    change : float
        By how much the last fixed-point sweep changed L and U, of their norm; 0 where there were none.
    growth : float
        ‖U⁻¹ L⁻¹ e‖∞ with e of ones: large where the factors are unstable (Chow and Saad 1997).
    """

    change = 0.0

    scratch = ("_combined",)

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, self._name = settings, type(settings).__name__
        if not resolve_solve(settings.solve).alike:
            self.self_adjoint = False
        self.order = self._find_order(A)
        self._combined = self.L = self.U = None
        self._analyse(A)
        self.update(A)

    def _find_order(self, A):
        ordering = resolve_ordering(self.settings.ordering)
        return None if ordering is None else ordering.order(A)

    @abstractmethod
    def _analyse(self, A):
        """What depends on the pattern alone."""

    @abstractmethod
    def _load(self, A):
        """Take the values of A."""

    @abstractmethod
    def _factorise(self, shift, replacement):
        """Factor A + shift S. Returns the first row with a tiny pivot, or None, and how many there were."""

    def _take_factor(self):
        """Solve with ``factor`` from now on."""
        if self.L is not None:
            self.L.update(self.factor)
            self.U.update(self.factor)
            return
        solve = resolve_solve(self.settings.solve)
        self.L = solve.alone(True).build(self.factor, lower=True, unit=True, order=self.order)
        self.U = solve.alone(False).build(self.factor, lower=False, order=self.order)

    def _attempt(self, shift, replacement):
        """Factor A + shift S. Returns what is wrong with the factors, or None, and how many pivots were tiny."""
        bad, count = self._factorise(shift, replacement)
        if bad is not None and not (count and self.settings.pivot == "perturb" and self._finite(self.factor.data)):
            return f"{self._pivot(bad)} was tiny or not finite", count
        if self.change > 1:
            return (f"the last of {self.settings.factor_sweeps} fixed-point sweeps changed L and U by "
                    f"{self.change:.0e} of their norm (more of them, or factor='exact', would do better)"), count
        self._take_factor()
        xp = self.space.xp
        e, z = xp.ones(self.shape[0], self.dtype), xp.zeros(self.shape[0], self.dtype)
        self.apply(e, z, 1, 1)                   # adding, so that its buffer is there before a loop is captured
        self.growth = float(abs(z).max()) if z.size else 0.0  # sync
        largest = float(self._scale.max()) if z.size else 0.0  # sync
        if not self.growth * largest < np.sqrt(float(np.finfo(self.dtype).max)):      # (A M e)² must be a number
            return f"a solve with the factors reached {self.growth:.0e}", count
        if count:
            self.replaced = count
            self.notes = (f"{self._name}: {self._pivot(bad)} was tiny; {count} of {self.shape[0]} pivots were "
                          f"replaced by {replacement:.1e} of the largest entry of their rows",)
        return None, count

    def _refactor(self, A):
        """L and U for the values of A; shifted until there are some."""
        self._load(A)
        how = self.settings.pivot
        self.shift, self.replaced, self.notes = float(self.settings.shift), 0, ()
        found, _ = self._attempt(self.shift, float(np.sqrt(np.finfo(self.dtype).eps)))
        if found is None:
            return
        wrong = found
        while wrong is not None and how == "shift" and self.shift < LARGEST_SHIFT:
            self.shift = max(2 * self.shift, FIRST_SHIFT)
            wrong, _ = self._attempt(self.shift, 1.0)
        if wrong is not None:
            remedy = {"shift": f", and even with {self.shift:.0e} of its largest entry added to each row {wrong}",
                      "perturb": ", and replacing tiny pivots did not help: use pivot='shift'",
                      "error": ": use pivot='shift' or pivot='perturb'"}[how]
            raise FactorisationError(f"{self._name}: {found}{remedy}, another ordering, or method='direct'")
        self.notes = (f"{self._name}: {found}, so A + {self.shift:g} S was factored in place of A, S the largest "
                      "moduli of its rows with the signs of its diagonal",)

    def _finite(self, values):
        return bool(self.space.xp.isfinite(values).all())  # sync

    def update(self, A):
        """Factor a matrix of the same pattern; pattern, order and analysis are kept."""
        self._refactor(A)
        idle = idle_notes(self.settings, circumstances(self))
        self.notes = tuple(dict.fromkeys((*idle, *self.notes, *self.L.notes, *self.U.notes)))
        self.variable = self.L.variable or self.U.variable

    @property
    def revision(self):
        return self.L.revision + self.U.revision

    def _pivot(self, bad):
        """The pivot of a row of the factors, in words."""
        return f"the pivot of row {bad if self.order is None else int(self.order[bad])}"

    def apply(self, x, out, alpha=1, beta=0):
        combine(self, self._solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        combine(self, self._solve_adjoint, x, out, alpha, beta)

    def _solve(self, x, out):
        between = self.U.source(out)
        self.L.solve(x, between)
        self.U.solve(between, out)

    def _solve_adjoint(self, x, out):
        between = self.L.source(out)
        self.U.solve_adjoint(x, between)
        self.L.solve_adjoint(between, out)

    @property
    def nbytes(self):
        return self.L.nbytes + self.U.nbytes + self.factor.nbytes

    def _described(self):
        return describe(self.settings)

    def describe(self):
        shift = f", shifted by {self.shift:g} S" if self.shift else ""
        replaced = f", {self.replaced} pivots replaced" if self.replaced else ""
        last = f", changed by {self.change:.1e} in the last sweep" if self.change else ""
        return (f"{self._described()}, {self.factor.nnz} entries in L and U{last}{shift}{replaced}; solved by "
                f"{self.L.describe()} and {self.U.describe()}")


class PatternLUOperator(LUOperator):
    """… on a pattern that is known before the values."""

    def _find_order(self, A):
        return super()._find_order(self.settings.filled(A))

    def _analyse(self, A):
        settings, xp = self.settings, self.space.xp
        ordered, filled, entry = A, settings.filled(A), None
        if self.order is not None:
            from swell.transforms.permutation import Permutation
            permutation = Permutation(A, self.order)
            indptr, indices, entry = permutation.pattern(A)
            ordered = CSRMatrix(A.space, indptr, indices, A.data, A.shape)     # its pattern, whatever its values
            filled = ordered if filled is A else permutation.matrix(filled)
        indptr, indices = settings.pattern(filled)
        self.factor = CSRMatrix(A.space, indptr, indices, xp.empty(indices.size, A.dtype), A.shape)
        self.diagonal = diagonal_places(self.factor, self.order, self._name)
        self._entry, self._place = entry, places(ordered, self.factor)
        if settings.factor == "sweeps":
            self._factor = FixedPoint(self.factor, self.diagonal, settings.factor_sweeps)
        elif A.space.name != "cpu":
            self._factor = Scheduled(self.factor, self.diagonal)
        else:
            by_levels = settings.factor == "levels"
            self._factor = (Threaded if by_levels else soonest)(self.factor, self.diagonal)

    def _load(self, A):
        xp = self.space.xp
        self._values = A.data if self._entry is None else A.data[self._entry]
        if self._place is not None:
            given, self._values = self._values, xp.zeros(self.factor.nnz, A.dtype)
            self._values[self._place] = given
        scale = largest_moduli(A.row_maxima(xp.ones(A.shape[1], A.data.real.dtype)), xp)
        self._scale = scale if self.order is None else scale[self.order]

    def _factorise(self, shift, replacement):
        data = shifted(self.space.xp, self._values, self.diagonal, self._scale, shift)
        first, count = self._factor(data, self._scale, replacement)
        self.change = self._factor.change
        if first is None and not self._finite(self.factor.data):             # an entry, though no pivot
            finite = self.space.xp.isfinite(self.factor.data)
            first, count = int(self.factor.rows()[int(finite.argmin())]), 1
        return first, count

    def update(self, A):
        super().update(A)
        self._values = None                      # A's own, or a copy that is not needed until there are new ones

    @property
    def nbytes(self):
        maps = sum(a.nbytes for a in (self._entry, self._place) if a is not None)
        return super().nbytes + self.diagonal.nbytes + maps + self._factor.nbytes


def diagonal_places(A, order, name):
    """Where the diagonal entry of each row is stored; an error that names the first row without one."""
    xp, n = A.space.xp, A.shape[0]
    if A.space.name == "cpu":                    # one pass, where whole arrays take three, into new memory
        found = np.empty(n, A.indptr.dtype)
        if A.space.kernels("swell.preconditioners", "ilu", A.dtype).find_diagonal(A.indptr, A.indices, found):
            found = found[found >= 0]
    else:
        found = xp.flatnonzero(A.indices == A.rows())
    if found.size < n:
        there = xp.zeros(n, bool)
        there[A.indices[found]] = True
        first = int(there.argmin())  # sync
        row = first if order is None else int(order[first])
        raise InputError(f"{name}: {n - found.size} of {n} rows have no diagonal entry (the first is row {row}), and "
                         "incomplete LU divides by them: with order = swell.transversal(A), a maximum matching, solve "
                         "A[order] x = b[order], whose x is the same; or use method='direct'")
    return found.astype(A.indptr.dtype, copy=False)


def places(A, wider):
    """Where the entries of A are among those of a wider pattern, or None if it is the same."""
    xp, n = A.space.xp, A.shape[1]
    if A.nnz == wider.nnz:
        return None
    there, here = (m.rows().astype(np.int64) * n + m.indices for m in (A, wider))
    return xp.searchsorted(here, there)


def largest_moduli(scale, xp):
    """The largest moduli of rows, 1 for a row of zeros, in place."""
    scale[scale == 0] = 1
    return scale


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
