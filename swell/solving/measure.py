"""The quality of an x: b − A x of the original system, its rounding floor, and backward errors.

One pass over A computes r = b − A x and t = |A||x| + |b| (``formats/kernels/residual.cpp``). Below its
rounding floor, `ROUNDING` eps ‖t‖₂, a computed ‖r‖₂ is rounding error. If rounding could decide on convergence
(`uncertain`), a second pass computes r in doubled precision, whose floor has eps² in place of eps.

The large rows of A alone may make ‖r‖₂ ≤ rtol ‖b‖₂, as with penalties or mixed units, while x is wrong in the small
rows. The measure ``rows`` detects this: rows are grouped by ‖aᵢ‖₁, a factor of 1000 a group, and ``rows`` is the
largest ‖r‖₂/‖t‖₂ of a group. The componentwise backward error, max |rᵢ|/tᵢ, would be 1 for a right x that decays
below rtol ‖x‖ somewhere, as after one implicit step from a point source. ``rows`` accepts such an x.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from swell.core.columns import Columns, column
from swell.core.errors import InputError
from swell.core.space import accumulator

EPS = 2.0**-52          # of double precision: every residual is computed in it
ROUNDING = 8            # a computed residual is uncertain by about ROUNDING eps ‖|A||x| + |b|‖
ROWS_FACTOR = 1e2       # rows count as solved if ``rows`` is at most this times threshold / ‖b‖
NORM_RANGE = 1e-140, 1e140       # norms of b whose squares, and squares of far smaller residuals, fit in a double
TOO_FAR = ("{}b has entries up to {:.1e}, whose squares leave the range of double precision: solve for it divided by "
           "that, and multiply its x by it")
MAX_LOST = 1e-3         # part of ‖b‖₂ that a narrower type may lose before b is refused
DECADES = 3             # decades of row norms in a group
MAX_GROUPS = 32         # the last group has all smaller rows


class Quality(NamedTuple):
    """How well x solves A x = b.

    Attributes
    ----------
    residual : float
        ‖b − A x‖₂; infinite if x is not finite.
    terms : float
        ‖|A||x| + |b|‖₂; NaN for a matrix-free A, whose |A| is unknown.
    precise : bool
        The residual was computed in doubled precision.
    backward_error : float
        ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞); NaN for a matrix-free A.
    componentwise : float
        maxᵢ |b − A x|ᵢ / (|A||x| + |b|)ᵢ; NaN for a matrix-free A.
    rows : float
        The largest ‖r‖₂/‖t‖₂ of a group of rows, or an upper bound if that suffices for a verdict; NaN if unknown.
    shift : float
        maxᵢ |rᵢ|/(‖aᵢ‖₁ ‖x‖∞): the part of ‖x‖∞ by which solving one row would move x. It is 0 if all rows are in
        one group, or if ``rows`` is an upper bound.
    worst : int
        The group of rows with the value ``rows``; `Measure.describe_rows` describes it.
    """

    residual: float
    terms: float
    precise: bool
    backward_error: float
    componentwise: float
    rows: float
    shift: float = 0.0
    worst: int = 0

    @property
    def floor(self) -> float:
        """The rounding error of a residual computed in double precision; NaN if unknown."""
        return ROUNDING * EPS * self.terms

    def confirms(self, threshold) -> bool:
        """True if ‖b − A x‖₂ ≤ ``threshold`` is certain: the threshold is above the floor of the precision of r."""
        return self.residual <= threshold and not threshold < self.floor * (EPS if self.precise else 1)

    def small_rows_unsolved(self, goal) -> bool:
        """True if only the large rows of A meet the `Goal`."""
        return self.confirms(goal.threshold) and self.rows > goal.of_rows

    def exact(self, dtype) -> bool:
        """True if x is as good as ``dtype`` can hold: the residual of each group of rows is rounding error."""
        return bool(max(self.rows, self.residual / self.terms if self.terms else 0.0) <= ROUNDING * np.finfo(dtype).eps)


OF_ZERO = Quality(0.0, 0.0, True, 0.0, 0.0, 0.0)         # of x = 0 for b = 0


def uncertain(residual, threshold, floor) -> bool:
    """True if rounding could decide whether a computed ``residual`` meets ``threshold``: both are below the ``floor``,
    or the residual is above the threshold by less than the floor."""
    return residual <= threshold + floor and threshold < max(floor, residual) and threshold > 0


class Goal(NamedTuple):
    """The goal for one right-hand side: the residual norm of convergence, with ‖b‖₂ and ‖b‖∞."""

    threshold: float
    norm_b: float
    largest_b: float

    @property
    def of_rows(self) -> float:
        """The largest ``Quality.rows`` at which every group of rows counts as solved."""
        return ROWS_FACTOR * self.threshold / self.norm_b if self.norm_b else math.inf


def read_b(space, workspace, b, out):
    """Copy the caller's right-hand sides to ``out``, and keep them in double precision for the true residual.

    Parameters
    ----------
    space : Space
    workspace : Workspace
        It gets the copy in double precision, if ``out`` has a narrower type.
    b : array, shape (n,), or (n, k) for `Columns`
        On the host or in this space.
    out : vector

    Returns
    -------
    exact : vector
        b in double precision; ``out`` itself if that is a double type.
    norms, largest : float, or arrays of k numbers
        ‖b‖₂ and ‖b‖∞.

    Raises
    ------
    InputError
        If squares of b leave the range of double precision, or the type of ``out`` rounds b to zero or infinity.
    """
    exact = out
    if out.dtype != accumulator(out.dtype):
        exact = _in_double(space, workspace, b, out)
    else:
        write(space, b, out)
    norms, largest = space.norms(exact)
    if not isinstance(out, Columns):
        if largest and not NORM_RANGE[0] < norms < NORM_RANGE[1]:
            raise InputError(TOO_FAR.format("", largest))
        return exact, norms, largest
    off = (largest != 0) & ~((NORM_RANGE[0] < norms) & (norms < NORM_RANGE[1])) & np.isfinite(largest)
    if off.any():                                # a column that is not finite ends as NONFINITE, and the others go on
        raise InputError(TOO_FAR.format(f"column {off.argmax()} of ", largest[off.argmax()]))
    return exact, norms, largest


def _in_double(space, workspace, b, out):
    """Write b to ``out``, of a single type, and return it in double precision. InputError if ``out`` cannot hold it."""
    exact = workspace.array("b in double", out.size, accumulator(out.dtype))
    with np.errstate(over="ignore"):
        write(space, b, out)
    write(space, b, exact)
    (narrow, _), (norms, largest) = space.norms(out), space.norms(exact)
    if np.any(abs(norms - narrow) > MAX_LOST * norms):
        raise InputError(f"b has entries up to {np.max(largest):.1e}, which {out.dtype.name}, the type of the solve, "
                         "cannot hold: solve for b divided by that, and multiply x by it, or give dtype='float64'")
    return exact


def write(space, vectors, out):
    """Copy ``vectors``, of the host or this space, to the buffer ``out``; shape (n, k) for `Columns`."""
    if isinstance(out, Columns):
        out.array[...] = space.from_host(vectors).T
    else:
        space.from_host(vectors, out=out)


class Measure:
    """Computes the `Quality` of solutions of one prepared system, of one right-hand side or of several.

    Parameters
    ----------
    A : LinearOperator
        The original matrix, or its adjoint.
    norm_A : float
        ‖A‖∞.
    space : Space
        Of the vectors.
    workspace : Workspace
    r : vector
        A buffer of A's type; used if that is a double type.
    """

    def __init__(self, A, norm_A, space, workspace, r):
        self.A, self.space, self._workspace = A, space, workspace
        self.dtype = accumulator(A.dtype)
        self._rows = space.ranks.local_rows(A.shape[0])
        self.r = r if r.dtype == self.dtype else workspace.array("residual", self._rows, self.dtype)
        self.terms = workspace.array("terms", self._rows, np.dtype(np.float64))
        self._numbers = space.local.mapped(5, np.dtype(np.float64))
        self.update(norm_A)

    def update(self, norm_A):
        """Take the ‖A‖∞ of new values of A."""
        self._norm_A, self._groups = norm_A, None

    def of(self, x, b, goals) -> list[Quality]:
        """Return the quality of x for each right-hand side. ``b``: in double precision. ``goals``: a `Goal` each."""
        A = self.A
        A.residual_terms(x, b, self.r, self.terms)
        numbers, precise = self._assess(x), False
        if any(uncertain(math.sqrt(rr), goal.threshold, ROUNDING * EPS * math.sqrt(tt))
               for (rr, tt, *_), goal in zip(numbers, goals)):
            low = self._workspace.array("residual's low part", self._rows, self.dtype)
            precise = A.precise_residual(x, b, self.r, low)
            if precise:
                numbers = self._assess(x)
        return [self._quality(j, *numbers[j], precise, goal) for j, goal in enumerate(goals)]

    def scaled_error(self, x, j, least, d) -> float:
        """Return ‖D^-½ r‖₂/(λ ‖D^½ x‖₂), which bounds the relative error of x in the norm ‖D^½ ·‖₂.

        ``j``: number of the right-hand side. ``least``: λ, the smallest eigenvalue of D^-½ A D^-½, Hermitian. ``d``:
        D's diagonal, or 1. r is the residual of the last call of `of`."""
        r, x = column(self.r, j), column(x, j)
        sums = [float((abs(r) ** 2 / d).sum()), float((abs(x) ** 2 * d).sum())]  # sync
        rr, xx = np.sum(self.space.ranks.allgather(sums), axis=0)
        return math.sqrt(rr / xx) / least if xx else math.nan

    def _assess(self, x) -> list:
        """Return [Σ|rᵢ|², Σtᵢ², max |rᵢ|, max |xᵢ|, max |rᵢ|/tᵢ] of all ranks, for each right-hand side."""
        device, host = self._numbers
        if self._rows:
            self.space.kernels("swell.formats", "residual", self.A.dtype).assess(self.r, self.terms, x, device)
            self.space.synchronize()  # sync
        local = [host.tolist()] if self.space.columns == 1 else host.array.tolist()
        if not self._rows:
            local = [[0.0] * 5 for _ in local]
        ranks = self.space.ranks.allgather(local)
        if len(ranks) == 1:
            return local
        numbers = np.array(ranks)                # [rank, column, number]
        return np.concatenate([numbers[..., :2].sum(axis=0), numbers[..., 2:].max(axis=0)], axis=1).tolist()

    def _quality(self, j, rr, tt, most_r, most_x, ratio, precise, goal) -> Quality:
        """The `Quality` of right-hand side j from the numbers of `_assess`."""
        terms = math.sqrt(tt)
        if not math.isfinite(most_x):            # b − A x does not show it if that column of A is zero
            return Quality(math.inf, terms, precise, math.nan, math.nan, math.nan)
        residual = math.sqrt(rr)
        scale = self._norm_A * most_x + goal.largest_b
        quality = Quality(residual, terms, precise, most_r / scale if scale else 0.0, ratio, ratio)
        level = goal.of_rows if quality.confirms(goal.threshold) else ROUNDING * float(np.finfo(self.A.dtype).eps)
        if level < ratio and (quality.confirms(goal.threshold) or residual <= level * terms):
            rows, shift, worst = self._groups_of_rows(j, residual, terms)
            quality = quality._replace(rows=rows, shift=shift / most_x if most_x else 0.0, worst=worst)
        return quality

    def _groups_of_rows(self, j, residual, terms) -> tuple[float, float, int]:
        """Return (the largest ‖r‖₂/‖t‖₂ over the groups of rows, maxᵢ |rᵢ|/‖aᵢ‖₁, that group) for right-hand side j;
        the buffers hold r and t."""
        if self._groups is None:
            self._groups = self._find_groups()
        groups, present = self._groups
        if len(present) == 1:
            return residual / terms, 0.0, present[0]
        xp = self.space.xp
        r, t = column(self.r, j), column(self.terms, j)
        squares = abs(r) ** 2, t * t
        sums = xp.stack([(square * (groups == g)).sum() for g in present for square in squares])
        sums = np.sum(self.space.ranks.allgather(self.space.to_host(sums)), axis=0).reshape(-1, 2)  # sync
        norms = self.A.modulus_sums()
        moves = xp.where(norms > 0, abs(r) / xp.maximum(norms, np.finfo(np.float64).tiny), 0)
        ratios = [math.sqrt(rr / tt) if tt > 0 else 0.0 for rr, tt in sums]
        shift = self.space.ranks.max(float(moves.max()) if moves.size else 0.0)       # sync
        return max(ratios), shift, present[int(np.argmax(ratios))]

    def describe_rows(self, group) -> str:
        """Describe a group of rows: number, size, first row."""
        groups, norms = self._groups[0], self.A.modulus_sums()
        inside = groups == group
        first, count = self.space.find_true(inside)
        least, largest = (float(norms[inside].min()), float(norms[inside].max())) if count else (math.inf, 0.0)  # sync
        ranks = self.space.ranks.allgather((count, least, largest))
        count, least, largest = (f(values) for f, values in zip((sum, min, max), zip(*ranks)))
        one = f", row {first} the first" if len(ranks) == 1 else ""
        return f"{count} of {self.A.shape[0]} rows, of size ‖aᵢ‖₁ from {least:.1e} to {largest:.1e}{one}"

    def _find_groups(self):
        """Return (the group of each row of this rank as an array of uint8, the list of groups that any rank has)."""
        xp, norms = self.space.xp, self.A.modulus_sums()
        with np.errstate(divide="ignore"):       # empty rows are in the last group
            decades = xp.floor(xp.log10(self._norm_A / norms))
        groups = xp.clip(decades / DECADES, 0, MAX_GROUPS - 1).astype(np.uint8)
        counts = self.space.to_host(self.space.count(groups.astype(np.int32), MAX_GROUPS))  # sync
        return groups, np.flatnonzero(np.sum(self.space.ranks.allgather(counts), axis=0)).tolist()
