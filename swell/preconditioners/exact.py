"""Exact triangular solves: substitution, row by row on a CPU, by levels on a GPU. Saad, Iterative Methods, section
11.6; Anderson and Saad 1989 (levels).

T = D (I + N) with N strictly triangular. The diagonal is stored inverted and apart, so that neither a division nor the
product with it stands in the chain from row to row.

On a CPU rows are solved one after the other, and one factor serves T and Tᴴ: forwards each row gathers, x = D⁻¹ b − N
x, backwards each row that is known is scattered, x −= n̄ᵢⱼ xᵢ, in place. What a sequential solve waits for is not
memory but mispredicted ends of rows, so the last ``width`` entries of every row lie in a rectangle of constant width,
and only longer rows have more, elsewhere:

- ``offsets``, ``values``: n × width entries, each row padded in front; then what the long rows have more. An offset is
  column − row, in 16 bits where all fit;
- ``ptr[t]``: where the latter begin for the row visited as the t-th; read only where there are some;
- ``inverse[t]``: 1 / tᵢᵢ; empty if all are one;
- ``parts``: begin, end, first row and step of the pieces of the order of visits, in each of which rows are that far
  apart, as they are in natural and in twisted order; elsewhere ``rows[t]`` is the row.

A solve reads 10 bytes an entry (padding included; 12 where offsets need 32 bits), 8 a row for the diagonal, 4 where
there are longer rows and 4 for ``rows``, and the vectors once. Where the order has two halves that need nothing of one
another but at its end, or but at its beginning, two threads solve one each: in the twisted order L is of the first
kind, U of the second, whose adjoint is sequential.

On a GPU rows are solved by levels (level_schedule.py). Both keep their analysis when values change.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import ON_CPU, Idle, switch
from swell.core.cpu import SERIAL
from swell.core.space import accumulator
from swell.formats.bsr import BSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.block_triangular import BlockScheduled, BlockSequential
from swell.preconditioners.level_schedule import ScheduledTriangular
from swell.preconditioners.triangular import SINGLE, TriangularOperator, TriangularSolve, zero_diagonal

WIDEST = 16             # entries of the rectangle's rows at most
MISS = 5                # a mispredicted branch, in entries
CHAIN = 0.9             # share of rows that need the one before them, from which a register keeps it


@dataclass(frozen=True)
class Exact(TriangularSolve):
    """Forward or backward substitution: row by row on a CPU, level by level on a GPU.

    Attributes
    ----------
    schedule : str
        On a GPU: "levels", each level of independent rows after the other; "sync_free", every row as soon as the rows
        that it needs are there, in one launch; "auto", the former for few levels.
    single : bool
        Store the factor in single precision; vectors stay as they are.
    """

    schedule: str = "auto"
    single: bool = False

    idle = Idle("schedule", ON_CPU, "rows are solved one after the other"), SINGLE
    cost = "10 to 12 bytes an entry, 8 to 16 and the vectors a row; on a GPU a step for every level"

    def __post_init__(self):
        if self.schedule not in ("auto", "levels", "sync_free"):
            raise InputError(f"Exact(schedule={self.schedule!r}): expected 'auto', 'levels' or 'sync_free'")
        switch(self, "single")

    def build(self, T, lower, unit=False, order=None):
        sequential, scheduled = (BlockSequential, BlockScheduled) if isinstance(T, BSRMatrix) else \
            (SequentialTriangular, ScheduledTriangular)
        return (sequential if T.space.name == "cpu" else scheduled)(T, lower, unit, order, self)


class SequentialTriangular(TriangularOperator):
    """Substitution row by row, on a CPU; see the top of this file."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        n = T.shape[0]
        self._kernels = T.space.kernels("swell.preconditioners", "triangular", T.dtype)
        index = index_type(n, n, n * WIDEST + T.nnz)
        self._order = np.empty(0, index) if order is None else order.astype(index)
        middle = n // 2 if lower else n - n // 2                 # where the twisted order turns
        self.ptr = ptr = np.empty(n + 1, index)
        follows, crossing, needed, reach = self._kernels.count(T.indptr, T.indices, lower, self._order, middle, ptr[1:])
        self.width = best_width(ptr[1:])
        self.chain = self.width > 0 and follows > CHAIN * n
        ptr[0] = n * self.width                  # lengths become what lies beyond the rectangle, then where that ends
        ptr[1:] -= index.type(self.width)
        np.maximum(ptr[1:], 0, out=ptr[1:])
        np.cumsum(ptr, out=ptr)
        stored = int(ptr[-1])
        self.offsets = np.empty(stored, np.int16 if reach < 2**15 else index)
        self.values = np.empty(stored, self.stored(T.dtype))
        self.inverse = np.empty(0 if unit else n, self.values.dtype)
        self.cuts = halves(crossing, n, middle, needed)
        self._alone = None if self.cuts is None else 2 if self.cuts[0] == middle else 0       # of the three parts
        self.rows, self.parts = visits(self._order, lower, n, self.cuts)
        self._nothing, self._no_dots = np.empty(0, T.dtype), np.empty(0, accumulator(T.dtype))
        self.update(T)

    def update(self, T):
        bad = self._kernels.pack(T.indptr, T.indices, T.data, self.lower, self.unit, self._order, self.ptr,
                                 self.offsets, self.values, self.inverse, self.width)
        if bad >= 0:
            raise zero_diagonal(bad)

    def _arrays(self):
        return self.rows, self.ptr, self.offsets, self.values, self.inverse, self.parts

    def solve(self, x, out):
        if self.cuts is None:
            self._kernels.solve(*self._arrays(), x, out, self.width, self.chain)
        else:
            self._kernels.solve_halves(*self._arrays(), self._alone, x, out, self.width, self.chain)

    def solve_adjoint(self, x, out):
        self.adjoint_dots(x, out, self._nothing, self._no_dots)

    def adjoint_dots(self, x, out, w, dots):
        if out is not x:
            out[...] = x
        if self.cuts is None or self._alone == 0:                # then both halves would subtract from the first part
            self._kernels.solve_adjoint(*self._arrays(), out, w, dots, self.width, self.chain)
        else:
            self._kernels.solve_adjoint_halves(*self._arrays(), out, w, dots, self.width, self.chain)

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self._arrays())

    def describe(self):
        chain, parts = ", a chain" if self.chain else "", ", two halves" if self.cuts is not None else ""
        return f"Exact(), sequential, rows of {self.width} and longer{chain}{parts}"


def best_width(lengths) -> int:
    """The rectangle's width for which entries, padding and mispredicted branches together cost least."""
    n = lengths.size
    if not n:
        return 0
    counts = np.bincount(lengths)
    length = np.arange(counts.size)

    def cost(width):
        rest = np.maximum(length - width, 0)
        usual = np.bincount(rest, counts).max()  # rows whose end is where most rows' is
        return n * width + (rest * counts).sum() + MISS * (n - usual)
    return min(range(min(WIDEST, counts.size - 1) + 1), key=cost)


def halves(crossing, n, middle, needed=None):
    """Where the order is cut if it has two halves that are independent but for less than a quarter of the rows: at
    ``middle`` and at ``crossing``, if that quarter is at the end, at ``needed`` and ``middle`` if it is at the
    beginning; else None.

    Parameters
    ----------
    crossing : int
        The first row of the second half, in the order of visits, that needs one of the first; n if there is none.
    n : int
        Rows.
    middle : int
        Where the second half begins.
    needed : int
        One more than the last row of the first half that the second needs.
    """
    if n >= SERIAL and crossing >= 3 * n // 4:
        return np.array([middle, crossing])
    if n >= SERIAL and needed is not None and needed <= n // 4:
        return np.array([needed, middle])
    return None


def visits(order, lower, n, cuts):
    """(``rows``, ``parts``) as at the top of this file, from the row at each place of an order, or nothing for the
    natural one."""
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
