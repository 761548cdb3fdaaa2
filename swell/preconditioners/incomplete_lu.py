"""Incomplete LU: A ≈ L U with a unit lower L; base of ILU(0), ILU(k) and ILUT. Saad, Iterative Methods, 10.3.

Setup computes (L U)ᵢⱼ = aᵢⱼ on a given pattern. "exact" factors row by row on a CPU, or by levels on its threads, and
in level order on a GPU. "sweeps" does ``factor_sweeps`` fixed-point sweeps over all entries at once (ParILU, Chow and
Patel 2015), with two buffers, so that they give the same bits every time. The description shows the relative change of
L and U in the last sweep; a change above 1 is a breakdown. One CSR matrix holds L and U. The map from A's entries to
its entries is made once, so that new values cost a gather and the factorisation.

A pivot below 100 ε of the largest entry of its row is a breakdown; the result and the description report it.
``pivot="shift"``: A + α S is factored, S = diag(sgn(aᵢᵢ) maxⱼ |aᵢⱼ|), α doubling from 1e-3 until no pivot is tiny
(Manteuffel 1980, for unsymmetric rows). "perturb": the pivot becomes √ε of the row's largest entry (static pivoting, Li
and Demmel 1998).

An application: a solve with L and one with U (triangular.py), at the cost of ``solve``. Setup applies the factors once
to a vector of ones, since factors without a tiny pivot may still be useless. A result whose square would overflow is a
breakdown too.

Differs from the textbook: the ordering is internal. The factorisation visits the rows in another order, but no vector
is permuted.
"""
from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.preconditioner import Preconditioner
from swell.core.settings import circumstances, describe, idle_notes
from swell.formats.csr import CSRMatrix
from swell.formats.diagonal import remove_empty
from swell.preconditioners.incomplete import LEVELS, IncompleteOperator, check, check_factor
from swell.preconditioners.lu_factorisation import FixedPoint, Scheduled, Threaded, fastest_exact
from swell.preconditioners.triangular import combine, resolve_solve
from swell.transforms.permutation import Permutation


@dataclass(frozen=True)
class IncompleteLU(Preconditioner):
    """Settings that all incomplete LU factorisations share.

    Attributes
    ----------
    solve : str or TriangularSolve
        The solves with L and U: "exact", "sweeps(count=3, upper=4)", or a settings object.
    ordering : str or Ordering
        Elimination order of the rows: "natural", "multicolor", "twisted", or any registered ordering.
    pivot : str
        Remedy for a tiny pivot: "shift" (factor A + α S), "perturb" (change that pivot only), or "error".
    shift : float
        Least α of the factored matrix A + α S. S is diagonal: each row's largest modulus with its diagonal's sign.
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
    """Settings of an LU whose pattern is fixed before factoring.

    Attributes
    ----------
    factor : str
        "exact": on a CPU row by row or, with enough threads, by levels; both give the same bits. "levels": by levels
        in any case (on a GPU "exact" does this already). "sweeps": the fixed-point iteration of Chow and Patel.
    factor_sweeps : int
        Number of these sweeps.
    """

    factor: str = "exact"
    factor_sweeps: int = 5

    idle = LEVELS,

    def __post_init__(self):
        super().__post_init__()
        check_factor(self, ("exact", "levels", "sweeps"))

    @abstractmethod
    def pattern(self, A, entry_bytes):
        """Return (indptr, indices) of L and U together for a CSRMatrix A, in its space. They contain A's pattern, and
        may be A's own arrays. An entry of L and U takes ``entry_bytes`` bytes, its places in the solves included."""

    def build(self, A):
        """Return the operator (L U)⁻¹.

        Raises
        ------
        InputError
            If a row has no diagonal entry.
        FactorisationError
            If a pivot stays tiny in spite of ``pivot``, or ``pivot`` is "error".
        OutOfMemory
            If the fill would not fit; raised before it is allocated.
        """
        return PatternLUOperator(A, self)


class LUOperator(IncompleteOperator):
    """z = U⁻¹ L⁻¹ r for one matrix.

    Attributes
    ----------
    factor : CSRMatrix
        L strictly below the diagonal (its unit diagonal is not stored), and U, in elimination order.
    replaced : int
        Number of replaced pivots.
    change : float
        Relative change of L and U in the last fixed-point sweep; 0 without sweeps.
    growth : float
        ‖U⁻¹ L⁻¹ e‖∞ with e a vector of ones; large if the factors are unstable (Chow and Saad 1997).
    block : int
        Rows of a block; 1 for single entries.
    """

    change = 0.0
    block = 1
    hints = "growth",
    _rows = None                                 # a `BlockRows` if the factors have blocks

    def __init__(self, A, settings):
        super().__init__(A, settings)
        if not resolve_solve(settings.solve).alike:
            self.self_adjoint = False
        self.order = self._find_order(A)
        self.L = self.U = None
        self._analyse(A)
        self.update(A)

    def _find_order(self, A):
        return super()._find_order(A if self._rows is None else self._rows.pattern)

    @abstractmethod
    def _analyse(self, A):
        """Do the work that depends on the pattern of A alone, and store its results in self."""

    @abstractmethod
    def _load(self, A):
        """Store the values of A, in elimination order, for the calls of `_factorise` that follow."""

    @abstractmethod
    def _factorise(self, shift, replacement):
        """Write ``factor``: L and U of A + ``shift`` S. Returns the first row with a tiny pivot, or None, and the
        number of tiny pivots.

        A tiny pivot is replaced by ``replacement`` times the largest entry of its row. S is defined at the top of this
        file."""

    def _solve_with_factor(self):
        """Set ``self.L`` and ``self.U``, the triangular solves with ``factor``; if they exist, update their values."""
        if self.L is not None:
            self.L.update(self.factor)
            self.U.update(self.factor)
            return
        solve = resolve_solve(self.settings.solve)
        self.L = solve.for_one_triangle(True).build(self.factor, lower=True, unit=True, order=self.order)
        self.U = solve.for_one_triangle(False).build(self.factor, lower=False, order=self.order)

    def _attempt(self, shift, replacement):
        """Factor A + ``shift`` S and apply the factors to a vector of ones. Returns the failure in words, or None.

        Arguments as in `_factorise`. Sets ``factor``, ``L``, ``U``, ``growth``; and ``replaced`` and ``notes`` if
        pivots were replaced."""
        bad, count = self._factorise(shift, replacement)
        if bad is not None and not (count and self.settings.pivot == "perturb" and self.space.finite(self.factor.data)):
            return f"the pivot of {self._named(bad)} was tiny or not finite"
        if self.change > 1:
            return (f"the last of {self.settings.factor_sweeps} fixed-point sweeps changed L and U by "
                    f"{self.change:.0e} of their norm (more of them, or factor='exact', would do better)")
        self._solve_with_factor()
        xp = self.space.xp
        e, z = xp.ones(self.shape[0], self.dtype), xp.empty(self.shape[0], self.dtype)
        self.apply(e, z)
        self.growth = self.space.norms(z)[1]  # sync
        largest = max(self._largest_scale(), 0.0)
        if not self.growth * largest < np.sqrt(float(np.finfo(self.dtype).max)):      # (A M e)² must be a number
            return f"a solve with the factors reached {self.growth:.0e}"
        if count:
            self.replaced = count
            self.notes = (f"{self._name}: the pivot of {self._named(bad)} was tiny; {count} of {self.shape[0]} pivots "
                          f"were replaced by {replacement:.1e} of the largest entry of their rows",)
        return None

    def _largest_scale(self) -> float:
        """Return the largest modulus of A's entries, a float."""
        return self.space.max_on_host(self._scale)  # sync

    def _refactor(self, A):
        """Write the factors of new values of A; with ``pivot="shift"``, raise the shift until the factors are usable.
        Sets ``notes``. Raises FactorisationError if no factors are usable."""
        self._load(A)
        how = self.settings.pivot
        self.replaced, self.notes = 0, ()
        replacements = itertools.chain([float(np.sqrt(np.finfo(self.dtype).eps))], itertools.repeat(1.0))
        found, wrong = self._raise_shift(lambda shift: self._attempt(shift, next(replacements)), how == "shift")
        if found is None:
            return
        if wrong is not None:
            remedy = {"shift": f", and even with {self.shift:.0e} of its largest entry added to each row {wrong}",
                      "perturb": ", and replacing tiny pivots did not help: use pivot='shift'",
                      "error": ": use pivot='shift' or pivot='perturb'"}[how]
            raise FactorisationError(f"{self._name}: {found}{remedy}, another ordering, or method='direct'")
        self.notes = (f"{self._name}: {found}, so A + {self.shift:g} S was factored in place of A, S the largest "
                      "moduli of its rows with the signs of its diagonal",)

    def _check_finite(self, first, count):
        """Return (first, count), the first row with a bad pivot and their number, as given. If ``count`` is 0 and an
        entry of the factors is not finite, return the row of this entry and 1."""
        T, xp = self.factor, self.space.xp
        place, bad = (0, 0) if count else self.space.find_true(~xp.isfinite(T.data).reshape(-1))  # sync
        if not bad:
            return first, count
        return self._row_at(place), 1

    def _row_at(self, place):
        """Return the row of the factors that has the value at ``place`` of ``factor.data``, flattened."""
        return int(self.factor.rows()[place // self.block**2])

    def update(self, A):
        """Replace L and U by the factors of new values of A, with the same pattern; pattern, order and analysis are
        kept."""
        self._refactor(A)
        self._values = self._scale = None        # free copies, and the reference to A
        idle = idle_notes(self.settings, circumstances(self))
        self.notes = tuple(dict.fromkeys((*idle, *self.notes, *self.L.notes, *self.U.notes)))
        self.variable = self.L.variable or self.U.variable

    @property
    def revision(self):
        return self.L.revision + self.U.revision

    def _named(self, row):
        """Return the name of a row of the factors, by its number in A, for a message."""
        return f"row {self._row(row)}" if self._rows is None else self._rows.name(row)

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
        combined = 0 if self._combined is None else self._combined.nbytes
        return self.L.nbytes + self.U.nbytes + self.factor.nbytes + combined

    def describe(self):
        shift = f", shifted by {self.shift:g} S" if self.shift else ""
        replaced = f", {self.replaced} pivots replaced" if self.replaced else ""
        last = f", changed by {self.change:.1e} in the last sweep" if self.change else ""
        solved = " and ".join(dict.fromkeys((self.L.describe(), self.U.describe())))       # one text if they are alike
        blocks = "" if self._rows is None else f", blocks of {self.block}, fill {self._rows.fill:.2f}"
        return (f"{describe(self.settings)}{blocks}, {self.factor.nnz} entries in L and U{last}{shift}{replaced}; "
                f"solved by {solved}")


class PatternLUOperator(LUOperator):
    """Incomplete LU whose pattern is fixed before factoring."""

    def _analyse(self, A):
        ordered, self._entry = A, None
        if self.order is not None:
            indptr, indices, self._entry = Permutation(A, self.order).pattern(A)
            ordered = CSRMatrix(A.space, indptr, indices, A.data, A.shape)               # its values are never read
        pattern = self.settings.pattern(ordered, 20 + 3 * A.dtype.itemsize)      # L, U and the solves' copies
        self.factor = CSRMatrix(A.space, *pattern, A.space.xp.empty(pattern[1].size, A.dtype), A.shape)
        self.diagonal = diagonal_places(self.factor, self._name, self._named)
        self._place = places(ordered, self.factor)
        self._factor = self._algorithm()

    def _algorithm(self):
        """Return a new `Factorisation` of ``factor``, of the kind that the settings name."""
        if self.settings.factor == "sweeps":
            return FixedPoint(self.factor, self.diagonal, self.settings.factor_sweeps)
        if self.space.name != "cpu":
            return Scheduled(self.factor, self.diagonal)
        return (Threaded if self.settings.factor == "levels" else fastest_exact)(self.factor, self.diagonal)

    def _load(self, A):
        xp = self.space.xp
        self._values = A.data if self._entry is None else A.data[self._entry]
        if self._place is not None:
            given, self._values = self._values, xp.zeros(self.factor.nnz, A.dtype)
            self._values[self._place] = given
        scale = largest_moduli(A.row_maxima(xp.ones(A.shape[1], A.data.real.dtype)))
        self._scale = scale if self.order is None else scale[self.order]

    def _factorise(self, shift, replacement):
        data = shifted(self.space.xp, self._values, self.diagonal, self._scale, shift)
        found = self._factor(data, self._scale, replacement)
        self.change = self._factor.change
        return self._check_finite(*found)

    @property
    def nbytes(self):
        maps = sum(a.nbytes for a in (self._entry, self._place) if a is not None)
        return super().nbytes + self.diagonal.nbytes + maps + self._factor.nbytes


def diagonal_places(A, name, named="row {}".format, lacking="rows have no diagonal entry"):
    """Return the place of each row's diagonal entry in ``A.data``, an int array of shape (n,).

    Parameters
    ----------
    A : CSRMatrix
    name : str
        The preconditioner, for the message.
    named : callable
        Takes a row number, returns its name for the message.
    lacking : str
        Continues "3 of 5 ..." in the message.

    Raises
    ------
    InputError
        If a row stores no diagonal entry; the message names the first.
    """
    xp, n = A.space.xp, A.shape[0]
    if A.space.name == "cpu":                    # one pass; the array expressions below take three and more memory
        found = np.empty(n, A.indptr.dtype)
        if A.space.kernels("swell.preconditioners", "ilu", A.dtype).find_diagonal(A.indptr, A.indices, found):
            found = found[found >= 0]
    else:
        found = xp.flatnonzero(A.indices == A.rows())
    if found.size < n:
        there = xp.zeros(n, bool)
        there[A.indices[found]] = True
        first = int(there.argmin())  # sync
        remedy = remove_empty(A, slice(None), named) or (
            "with order = swell.transversal(A), a maximum matching, solve A[order] x = b[order], whose x is the same; "
            "or use method='direct'")
        raise InputError(f"{name}: {n - found.size} of {n} {lacking} (the first is {named(first)}), and incomplete LU "
                         f"divides by them: {remedy}")
    return found.astype(A.indptr.dtype, copy=False)


def places(A, wider):
    """Return the place in ``wider.data`` of each entry of A, an int array; None if the two patterns are equal.
    ``wider`` is a CSRMatrix whose pattern contains A's."""
    xp, n = A.space.xp, A.shape[1]
    if A.nnz == wider.nnz:
        return None
    there, here = (m.rows().astype(np.int64) * n + m.indices for m in (A, wider))
    return xp.searchsorted(here, there)


def largest_moduli(scale):
    """Replace zeros of ``scale`` by 1, in place, and return it. It holds the largest modulus of each row, zero for an
    empty row."""
    scale[scale == 0] = 1
    return scale


def shifted(xp, data, diagonal, scale, shift):
    """Return the entries of A + shift S, a new array, or ``data`` itself if ``shift`` is 0.

    ``data`` has A's entries, ``diagonal`` the places of the diagonal in it, ``scale`` the largest modulus of each row.
    S is diagonal: ``scale`` with the sign of A's diagonal. ``xp`` is NumPy or CuPy."""
    if not shift:
        return data
    data = data.copy()
    data[diagonal] = moved(xp, data[diagonal], scale, shift)
    return data


def moved(xp, d, scale, shift):
    """Return the diagonal of A + shift S, a new array, for the diagonal d of A; see `shifted`."""
    modulus = abs(d)
    with np.errstate(over="ignore", invalid="ignore"):           # NumPy divides complex denormal numbers to infinity
        sign = xp.where(modulus > 0, d / xp.where(modulus > 0, modulus, 1), 1)
    return d + sign * (scale * scale.dtype.type(shift))
