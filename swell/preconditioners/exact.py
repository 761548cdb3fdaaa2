"""Exact triangular solves: substitution, row by row on a CPU, by levels on a GPU. Saad, Iterative Methods, section
11.6; Anderson and Saad 1989 (levels).

T = D (I + N) with N strictly triangular. The diagonal is stored inverted and apart: a row waits for other rows, but
neither for a division nor for a product with the diagonal.

On a CPU rows are solved one after the other. One stored factor serves T and Tᴴ: forwards each row gathers, x = D⁻¹ b −
N x; backwards each solved row i scatters, xⱼ −= n̄ᵢⱼ xᵢ, in place. A sequential solve waits for mispredicted ends of
rows, not for memory. So the last ``width`` entries of every row lie in a rectangle of constant width; the other entries
of longer rows lie behind it:

- ``offsets``, ``values``: n × width entries, each row padded in front; then the other entries of longer rows. An offset
  is column − row, in 16 bits if all fit;
- ``ptr[t]``: where the other entries of the t-th visited row begin; read only if there are longer rows;
- ``inverse[t]``: 1 / tᵢᵢ; empty if all are one;
- ``parts``: begin, end, first row and step of each piece of the order of visits. Inside a piece rows are ``step``
  apart, as in natural and twisted order. In other orders ``rows[t]`` is the row.

A solve reads 10 bytes an entry (padding included; 12 if offsets need 32 bits), 8 a row for the diagonal, 4 if there are
longer rows and 4 for ``rows``, and the vectors once. If the order has two halves that are independent except at its
end, or except at its beginning, two threads solve one each. In the twisted order L is of the first kind, U of the
second; the adjoint solve of the second kind is sequential.

On a GPU rows are solved by levels (level_schedule.py). Both keep their analysis when values change.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import ON_CPU, Idle, choose_by_none, describe, switch
from swell.core.cpu import SERIAL
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.block_triangular import BlockScheduled, BlockSequential
from swell.preconditioners.level_schedule import ScheduledTriangular
from swell.preconditioners.triangular import SINGLE, TriangularOperator, TriangularSolve, zero_diagonal

WIDEST = 16             # largest width of the rectangle
MISS = 5                # cost of a mispredicted branch, in entries
CHAIN = 0.9             # share of rows that need their predecessor, above which a register keeps its value


@dataclass(frozen=True)
class Exact(TriangularSolve):
    """Forward or backward substitution: row by row on a CPU, level by level on a GPU.

    Attributes
    ----------
    schedule : {"levels", "sync_free"}, optional
        On a GPU: "levels", one level of independent rows after the other; "sync_free", one launch, where every row
        starts as soon as the rows that it needs are solved. None: "levels" up to 32 levels, else "sync_free".
    single : bool
        Store the factor in single precision; vectors keep their precision.
    """

    schedule: str | None = None
    single: bool = False

    idle = Idle("schedule", ON_CPU, "rows are solved one after the other"), SINGLE
    cost = "10 to 12 bytes an entry, 8 to 16 and the vectors a row; on a GPU a step for every level"

    def __post_init__(self):
        choose_by_none(self, "auto", "schedule")
        if self.schedule not in (None, "levels", "sync_free"):
            raise InputError(f"Exact(schedule={self.schedule!r}): expected 'levels', 'sync_free' or None")
        switch(self, "single")

    def build(self, T, lower, unit=False, order=None):
        sequential, scheduled = (SequentialTriangular, ScheduledTriangular) if isinstance(T, CSRMatrix) else \
            (BlockSequential, BlockScheduled)
        return (sequential if T.space.name == "cpu" else scheduled)(T, lower, unit, order, self)


class SequentialTriangular(TriangularOperator):
    """Substitution row by row, on a CPU."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        n = T.shape[0]
        self._kernels = T.space.kernels("swell.preconditioners", "triangular", T.dtype)
        index = np.promote_types(T.indptr.dtype, index_type(n, n, n * WIDEST + T.nnz))
        self._order = np.empty(0, index) if order is None else order.astype(index)
        middle = n // 2 if lower else n - n // 2                 # where the twisted order turns
        self.ptr = ptr = np.empty(n + 1, index)
        follows, crossing, needed, reach = self._kernels.count(*self._pattern(T), lower, self._order, middle,
                                                                 ptr[1:])
        self.width = best_width(ptr[1:])
        self.chain = self.width > 0 and follows > CHAIN * n
        ptr[0] = n * self.width                  # row lengths become lengths beyond the rectangle, then pointers
        ptr[1:] -= index.type(self.width)
        np.maximum(ptr[1:], 0, out=ptr[1:])
        np.cumsum(ptr, out=ptr)
        stored = int(ptr[-1])
        self.offsets = np.empty(stored, np.int16 if reach < 2**15 else index)
        self.values = np.empty(stored, self.stored(T.dtype))
        self.inverse = np.empty(0 if unit else n, self.values.dtype)
        self.cuts = halves(crossing, n, middle, needed)
        self._serial_part = None if self.cuts is None else 2 if self.cuts[0] == middle else 0
        self.rows, self.parts = visits(self._order, lower, n, self.cuts)
        self._nothing, self._no_dots = np.empty(0, T.dtype), np.empty(0, accumulator(T.dtype))
        self.update(T)

    def update(self, T):
        bad = self._kernels.pack(*self._pattern(T), T.data, self.lower, self.unit, self._order, self.ptr,
                                 self.offsets, self.values, self.inverse, self.width)
        if bad >= 0:
            raise zero_diagonal(bad)

    def _pattern(self, T):
        """Return T's pattern in the index type of the layout."""
        return (a.astype(self._order.dtype, copy=False) for a in (T.indptr, T.indices))

    def _arrays(self):
        """Return the kernels' first arguments, the arrays of the layout."""
        return self.rows, self.ptr, self.offsets, self.values, self.inverse, self.parts

    def solve(self, x, out):
        if self.cuts is None:
            self._kernels.solve(*self._arrays(), x, out, self.width, self.chain)
        else:
            self._kernels.solve_halves(*self._arrays(), self._serial_part, x, out, self.width, self.chain)

    def solve_adjoint(self, x, out):
        self.adjoint_dots(x, out, self._nothing, self._no_dots)

    def adjoint_dots(self, x, out, w, dots):
        if out is not x:
            out[...] = x
        if self.cuts is None or self._serial_part == 0:         # with 0, both halves would scatter into the first part
            self._kernels.solve_adjoint(*self._arrays(), out, w, dots, self.width, self.chain)
        else:
            self._kernels.solve_adjoint_halves(*self._arrays(), out, w, dots, self.width, self.chain)

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self._arrays())

    def describe(self):
        return f"{describe(self.settings)}, sequential{', two halves' if self.cuts is not None else ''}"


def best_width(lengths) -> int:
    """Return the width of the layout's rectangle with the least cost of entries, padding and mispredicted branches.

    ``lengths`` has the number of strictly triangular entries of each row."""
    n = lengths.size
    if not n:
        return 0
    counts = np.bincount(lengths)
    length = np.arange(counts.size)

    def cost(width):
        rest = np.maximum(length - width, 0)
        usual = np.bincount(rest, counts).max()  # rows of the most frequent remaining length
        return n * width + (rest * counts).sum() + MISS * (n - usual)
    return min(range(min(WIDEST, counts.size - 1) + 1), key=cost)


def halves(crossing, n, middle, needed=None):
    """Return two cuts, an int array, that divide an order of n rows into three parts, two of which two threads can
    solve at the same time; or None.

    The cuts are (``middle``, ``crossing``) if the halves depend on each other only in the last quarter of the rows,
    (``needed``, ``middle``) if only in the first quarter. None otherwise, and for few rows.

    Parameters
    ----------
    crossing : int
        The first row of the second half, in the order of visits, that needs a row of the first; n without one.
    n : int
        Number of rows.
    middle : int
        Where the second half begins.
    needed : int
        One more than the last row of the first half that the second half needs.
    """
    if n >= SERIAL and crossing >= 3 * n // 4:
        return np.array([middle, crossing])
    if n >= SERIAL and needed is not None and needed <= n // 4:
        return np.array([needed, middle])
    return None


def visits(order, lower, n, cuts):
    """Return (``rows``, ``parts``) of the layout, int arrays.

    order[i] is the place of row i of T in the vectors; an empty array for natural order. ``lower`` says which triangle.
    ``cuts`` is the result of `halves`."""
    bounds = np.array([0, n] if cuts is None else [0, *cuts, n])
    begin, end = bounds[:-1], bounds[1:]
    if not order.size:
        first, step = (begin, 1) if lower else (n - 1 - begin, -1)
        return order, np.stack([begin, end, first, np.full_like(begin, step)], axis=1)
    rows = order if lower else order[::-1].copy()
    pieces = [rows[b:e].astype(np.int64) for b, e in zip(begin, end)]
    steps = [int(piece[1] - piece[0]) if piece.size > 1 else 1 for piece in pieces]
    parts = [(b, e, piece[0] if piece.size else 0, step) for b, e, piece, step in zip(begin, end, pieces, steps)]
    runs = all((np.diff(piece) == step).all() for piece, step in zip(pieces, steps))
    return rows[:0].copy() if runs else rows, np.array(parts, np.int64)
