"""Incomplete LU: A ≈ L U with a unit lower L. Saad, Iterative Methods, sections 10.3 and 10.4.

- ``ilu``: ILU(0), on the pattern of A. Meijerink and van der Vorst 1977. ``ilu0`` is short for it.
- ``ilu(level=2)``: ILU(2), with fill up to level 2 (fill.py). Watts 1981.
- ``ilu(drop=0.001, fill=10)``: ILUT, which keeps entries by their size (lu_threshold.py). Saad 1994.
- ``ilu(block=3)``: each of these with dense blocks of 3 rows as entries, for several unknowns a vertex. Chow and Heroux
  1998; "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", section 3.3. PETSc has them for BAIJ.

Setup finds a pattern, the values of L and U, and the triangular solves. (L U)ᵢⱼ = aᵢⱼ holds on the pattern. "exact"
factors row by row on a CPU, or by levels on its threads, and in level order on a GPU. "sweeps" does ``factor_sweeps``
fixed-point sweeps over all entries at once (ParILU, Chow and Patel 2015), with two buffers, so that they give the same
bits every time. The description shows the relative change of L and U in the last sweep; a change above 1 is a
breakdown. One matrix holds L and U. The map from A's entries to its entries is made once, so that new values cost a
gather and the factorisation; ILUT factors from the start, on the host.

Blocks: (L U)ᵢⱼ = Aᵢⱼ holds in whole blocks, fill inside a block included. Each diagonal block is inverted with partial
pivoting, so a zero on the diagonal is no breakdown, but a singular block is. A product of two blocks takes 2 s³
operations. L, the inverses of U's diagonal blocks and U overwrite A's blocks, and the solves read them there.

A pivot below 100 ε of the largest entry of its row is a breakdown; the result and the description report it.
``pivot="shift"``: A + α S is factored, S = diag(sgn(aᵢᵢ) maxⱼ |aᵢⱼ|), α doubling from 1e-3 until no pivot is tiny
(Manteuffel 1980, for unsymmetric rows). "perturb": the pivot becomes √ε of the row's largest entry (static pivoting, Li
and Demmel 1998).

An application: a solve with L and one with U (triangular.py, block_triangular.py), at the cost of ``solve``. Setup
applies the factors once to a vector of ones, since factors without a tiny pivot may still be useless. A result whose
square would overflow is a breakdown too.

Differs from the textbook: the ordering is internal. The factorisation visits the rows in another order, but no vector
is permuted. Pivots of a block are compared after division by their rows' largest entries. So equations of different
scales in one block (flow in a well, and in a cell) do not make it count as singular.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.preconditioner import Preconditioner
from swell.core.settings import (choose_by_none, circumstances, describe, idle_notes, one_of, positive, share,
                                 switch, without_effect)
from swell.formats.blocks import MAX_BLOCK, check_size, divisors, unknown_by_unknown
from swell.preconditioners.fill import estimated, lu_pattern
from swell.preconditioners.incomplete import LEVELS, IncompleteOperator, check
from swell.preconditioners.lu_rows import BlockRows, EntryRows
from swell.preconditioners.triangular import combine, resolve_solve

DROP, FILL = 1e-3, 10.0     # ILUT's defaults, where only one is given
ALWAYS_FIT = {1: "single entries", None: "a detected size, which always divides"}


@dataclass(frozen=True)
class ILU(Preconditioner):
    """Incomplete LU: without fill, with fill up to a level, or with a threshold; of entries or of dense blocks.

    Attributes
    ----------
    level : int
        Fill up to this level is kept, in whole blocks; 0: no fill.
    drop : float or None
        Given: a threshold in place of a level (ILUT). Entries smaller than ``drop`` times the 2-norm of their row of A
        are dropped; 0.001 if only ``fill`` is given.
    fill : float or None
        Given: a threshold in place of a level (ILUT). A row of L, and of U, keeps at most ``fill`` times half the
        entries of that row of A: the largest; 10 if only ``drop`` is given.
    block : int, optional
        1: single entries. 2 to 32: dense blocks of that size. None: the size that `BSR` detects.
    pad : bool
        Allow a size that does not divide the number of rows; the identity fills the last block.
    solve : str or TriangularSolve
        The solves with L and U: "exact", "sweeps(count=3, upper=4)", or a settings object.
    ordering : str or Ordering
        Elimination order of the rows, or block rows: "natural", "multicolor", "twisted", or any registered ordering.
    pivot : str
        Remedy for a tiny pivot: "shift" (factor A + α S), "perturb" (change that pivot only), or "error".
    shift : float
        Least α of the factored matrix A + α S. S is diagonal: each row's largest modulus with its diagonal's sign.
    factor : str
        "exact": on a CPU row by row or, with enough threads, by levels; both give the same bits. "levels": by levels
        in any case (on a GPU "exact" does this already). "sweeps": the fixed-point iteration of Chow and Patel.
    factor_sweeps : int
        Number of these sweeps.
    """

    level: int = 0
    drop: float | None = None
    fill: float | None = None
    block: int | None = 1
    pad: bool = False
    solve: Any = "exact"
    ordering: Any = "natural"
    pivot: str = "shift"
    shift: float = 0.0
    factor: str = "exact"
    factor_sweeps: int = 5

    problem = "any matrix whose diagonal is stored; with blocks, whose diagonal blocks are not singular"
    cost = "two triangular solves"
    idle = LEVELS,

    def __post_init__(self):
        one_of(self, "pivot", ("shift", "perturb", "error"))
        check(self, ("exact", "levels", "sweeps"))
        if self.threshold is not None:
            for name in ("drop", "fill"):
                if getattr(self, name) is not None:
                    share(self, name)
            why = "with drop or fill, which let the size of entries choose the pattern"
            without_effect(self, why, "leave drop and fill out", "level", "factor")
        choose_by_none(self, 0, "block")
        if self.block is not None:
            positive(self, "block", most=MAX_BLOCK)
        switch(self, "pad")
        if self.block in ALWAYS_FIT:
            without_effect(self, f"with {ALWAYS_FIT[self.block]}", "name a block size of 2 or more", "pad")

    @property
    def threshold(self) -> tuple[float, float] | None:
        """(drop, fill) of ILUT; None for a factorisation with a level of fill."""
        if self.drop is None and self.fill is None:
            return None
        return DROP if self.drop is None else self.drop, FILL if self.fill is None else self.fill

    def estimate(self, A) -> int:
        """Return an estimate of the number of entries of L and U together, or of blocks, with fill up to ``level``;
        exact for a matrix of at most 400 rows."""
        if self.threshold is not None:
            raise InputError(f"{describe(self)}.estimate(A): expected a level of fill, since an estimate knows no "
                             "sizes of entries: leave drop and fill out")
        return estimated(self.rows(A).pattern, self.level)

    def rows(self, A):
        """Return the rows of A, or its block rows, in natural order."""
        size = divisors(A.block_size)[-1] if self.block is None else self.block
        if size == 1:
            return EntryRows(A)
        check_size(size, self.pad, A.shape, "ILU")
        return BlockRows(A, size)

    def build(self, A):
        """Return the operator (L U)⁻¹.

        Raises
        ------
        InputError
            If a row has no diagonal entry, a diagonal block has no entry, or the block size does not divide the rows
            and ``pad`` is False.
        FactorisationError
            If a pivot stays tiny in spite of ``pivot``, or ``pivot`` is "error"; the message names the first.
        OutOfMemory
            If the fill would not fit. Fill up to a level is refused before it is allocated.
        """
        return ILUOperator(A, self)


ILU0 = ILU                  # the literature's name of level 0


class ILUOperator(IncompleteOperator):
    """z = U⁻¹ L⁻¹ r for one matrix.

    Attributes
    ----------
    factor : CSRMatrix or BlockFactor
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

    hints = "growth",

    def __init__(self, A, settings):
        super().__init__(A, settings)
        threshold, self._builds = settings.threshold, 0
        if threshold is not None or not resolve_solve(settings.solve).alike:
            self.self_adjoint = False            # with a threshold a row and its column keep different entries
        rows = self._rows = settings.rows(A)
        self.block = rows.size
        self._unknowns = unknown_by_unknown(A) if settings.block is None and rows.size == 1 else 1
        self.order = self._find_order(rows.pattern)
        pattern = rows.arrange(self.order)
        indptr, indices = pattern.indptr, pattern.indices
        if settings.level:
            indptr, indices = lu_pattern(pattern, settings.level, rows.entry_bytes, f"{rows.title}({settings.level})",
                                         rows.unit)
        self.factor = self._target = rows.factor(indptr, indices, A.dtype, self._name)
        self._factor = (rows.algorithm(self._target, settings) if threshold is None else
                        rows.threshold(self._target, threshold, self._name))
        self.L = self.U = None
        self.update(A)

    def _factorise(self, shift, replacement):
        """Write ``factor``: L and U of A + ``shift`` S. Returns the first row with a tiny pivot, or None, and the
        number of tiny pivots.

        A tiny pivot is replaced by ``replacement`` times the largest entry of its row. S is diagonal, with the
        moduli of the rows' largest entries and the signs of A's diagonal."""
        data = self._rows.shifted(self._values, self._scale, shift, self._target)
        tiny_pivots = self._factor(data, self._scale, replacement)
        self.factor, self.change = self._factor.factor, self._factor.change
        return self._check_finite(*tiny_pivots)

    def _solve_with_factor(self):
        """Set ``self.L`` and ``self.U``, the triangular solves with ``factor``; if its pattern stays, update their
        values."""
        if self.L is not None and self.settings.threshold is None:
            self.L.update(self.factor)
            self.U.update(self.factor)
            return
        self._builds += 1
        solve = resolve_solve(self.settings.solve)
        self.L = solve.for_one_triangle(True).build(self.factor, lower=True, unit=True, order=self.order)
        self.U = solve.for_one_triangle(False).build(self.factor, lower=False, order=self.order)

    def _attempt(self, shift, replacement):
        """Factor A + ``shift`` S and apply the factors to a vector of ones. Returns the failure in words, or None.

        Arguments as in `_factorise`. Sets ``factor``, ``L``, ``U``, ``growth``; and ``replaced`` and ``notes`` if
        pivots were replaced."""
        bad, count = self._factorise(shift, replacement)
        if bad is not None and not (count and self.settings.pivot == "perturb" and self.space.finite(self.factor.data)):
            return f"the pivot of {self._rows.name(bad)} was tiny or not finite"
        if self.change > 1:
            return (f"the last of {self.settings.factor_sweeps} fixed-point sweeps changed L and U by "
                    f"{self.change:.0e} of their norm (more of them, or factor='exact', would do better)")
        self._solve_with_factor()
        xp = self.space.xp
        e, z = xp.ones(self.shape[0], self.dtype), xp.empty(self.shape[0], self.dtype)
        self.apply(e, z)
        self.growth = self.space.norms(z)[1]  # sync
        largest = max(self.space.max_on_host(self._scale), 0.0)  # sync
        if not self.growth * largest < np.sqrt(float(np.finfo(self.dtype).max)):      # (A M e)² must be a number
            return f"a solve with the factors reached {self.growth:.0e}"
        if count:
            self.replaced = count
            self.notes = (f"{self._name}: the pivot of {self._rows.name(bad)} was tiny; {count} of {self.shape[0]} "
                          f"pivots were replaced by {replacement:.1e} of the largest entry of their rows",)
        return None

    def _refactor(self, A):
        """Write the factors of new values of A; with ``pivot="shift"``, raise the shift until the factors are usable.
        Sets ``notes``. Raises FactorisationError if no factors are usable."""
        self._values, self._scale = self._rows.load(A)
        how = self.settings.pivot
        self.replaced, self.notes = 0, ()
        replacements = itertools.chain([float(np.sqrt(np.finfo(self.dtype).eps))], itertools.repeat(1.0))
        problem, wrong = self._raise_shift(lambda shift: self._attempt(shift, next(replacements)), how == "shift")
        if wrong is not None:
            remedy = {"shift": f", and even with {self.shift:.0e} of its largest entry added to each row {wrong}",
                      "perturb": ", and replacing tiny pivots did not help: use pivot='shift'",
                      "error": ": use pivot='shift' or pivot='perturb'"}[how]
            raise FactorisationError(f"{self._name}: {problem}{remedy}, another ordering, or method='direct'")
        if problem is not None:
            self.notes = (f"{self._name}: {problem}, so A + {self.shift:g} S was factored in place of A, S the largest "
                          "moduli of its rows with the signs of its diagonal",)
        if self.settings.threshold is not None and self.space.name != "cpu":
            self.notes = (*self.notes, f"{self._name}: factored on the host, since the entries that a row keeps "
                                       "depend on earlier rows")

    def _check_finite(self, first, count):
        """Return (first, count), the first row with a bad pivot and their number, as given. If ``count`` is 0 and an
        entry of the factors is not finite, return the row of this entry and 1."""
        T, xp = self.factor, self.space.xp
        place, bad = (0, 0) if count else self.space.find_true(~xp.isfinite(T.data).reshape(-1))  # sync
        if not bad:
            return first, count
        return int(T.rows()[place // self.block**2]), 1

    def update(self, A):
        """Replace L and U by the factors of new values of A, with the same pattern; pattern, order and analysis are
        kept."""
        self._refactor(A)
        self._values = self._scale = None        # free copies, and the reference to A
        idle = (*idle_notes(self.settings, circumstances(self)), *self._plain())
        self.notes = tuple(dict.fromkeys((*idle, *self.notes, *self.L.notes, *self.U.notes)))
        self.variable = self.L.variable or self.U.variable

    def _plain(self):
        """Return the notes on a detected block size: one if A has no blocks."""
        if self.settings.block is not None or self.block > 1:
            return ()
        plain = f"ILU({self.settings.level})" if self.settings.threshold is None else "ILUT"
        remedy = "name a size, such as block=3, if there are blocks"
        if (s := self._unknowns) > 1:
            n = self.shape[0]
            remedy = (f"the rows seem to be numbered unknown by unknown, {n // s} for each of {s}: number them vertex "
                      f"by vertex, A[p][:, p] with p = numpy.arange({n}).reshape({s}, -1).T.ravel(), and b[p], and "
                      f"blocks of {s} are found")
        return (f"{describe(self.settings)}: A has no blocks of one size, so this is plain {plain}, of single entries; "
                f"{remedy}",)

    @property
    def revision(self):
        return self._builds + self.L.revision + self.U.revision

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
        return self.L.nbytes + self.U.nbytes + self.factor.nbytes + combined + self._rows.nbytes + self._factor.nbytes

    def describe(self):
        shift = f", shifted by {self.shift:g} S" if self.shift else ""
        replaced = f", {self.replaced} pivots replaced" if self.replaced else ""
        last = f", changed by {self.change:.1e} in the last sweep" if self.change else ""
        solved = " and ".join(dict.fromkeys((self.L.describe(), self.U.describe())))       # one text if they are alike
        return (f"{describe(self.settings)}{self._rows.words}, {self.factor.nnz} entries in L and U{last}{shift}"
                f"{replaced}; solved by {solved}")
