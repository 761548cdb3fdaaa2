"""Triangular solves: the one engine of the library. ``Exact`` is here, ``Sweeps`` in sweeps.py, ``ISAI`` in isai.py;
``solve=`` chooses.

T = D (I + N) with N strictly triangular; the diagonal is stored inverted and apart, so that no division, nor the
product with it, stands in the chain from row to row. Saad, Iterative Methods, section 11.6; Anderson and Saad 1989
(levels).

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

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import LinearOperator
from swell.core.settings import IN_SINGLE, ON_CPU, Idle, circumstances, idle_notes, switch
from swell.core.space import SERIAL, accumulator
from swell.formats.bsr import BSRMatrix
from swell.formats.matrix import index_type

WIDEST = 16             # entries of the rectangle's rows at most
MISS = 5                # a mispredicted branch, in entries
SINGLE = Idle("single", IN_SINGLE, "that is the factor's precision already")
CHAIN = 0.9             # share of rows that need the one before them, from which a register keeps it


class TriangularSolve(ABC):
    """Settings of a triangular solve."""

    problem = "a triangular matrix, its diagonal without zeros"
    cost: str
    symmetric = True        # the solve with Tᴴ is the adjoint of that with T
    idle = ()               # fields that have no effect on some devices or matrices
    alike = True            # the solves with T and with D Tᵀ are transposes but for D, so that L and D Lᵀ keep symmetry

    def alone(self, lower):
        """The settings for one triangle that is solved with on its own, so that its adjoint is exactly that."""
        return self

    def unguarded(self, T, lower, unit, order):
        """The operator, whatever it leaves of an error (guard.py); by default as ``build`` makes it."""
        return self.build(T, lower, unit, order)

    @abstractmethod
    def build(self, T, lower, unit=False, order=None):
        """The operator T⁻¹ (or what stands for it).

        Parameters
        ----------
        T : CSRMatrix or BSRMatrix
            Of which one triangle is taken, whatever is in the other; a BSRMatrix is solved with blockwise.
        lower : bool
            Which triangle.
        unit : bool
            The diagonal is one, whatever is stored.
        order : int array of the space, shape (n,), or None
            Row i of T belongs to entry ``order[i]`` of the vectors; None: to entry i. Of a BSRMatrix: block
            rows, and blocks.

        Returns
        -------
        TriangularOperator

        Raises
        ------
        FactorisationError
            If a diagonal entry is zero.
        """


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
        if isinstance(T, BSRMatrix):
            from swell.preconditioners import block_triangular as blockwise
            kind = blockwise.BlockSequential if T.space.name == "cpu" else blockwise.BlockScheduled
            return kind(T, lower, unit, order, self)
        if T.space.name == "cpu":
            return SequentialTriangular(T, lower, unit, order, self)
        from swell.preconditioners.level_schedule import ScheduledTriangular
        return ScheduledTriangular(T, lower, unit, order, self)


def resolve_solve(choice):
    """The settings of a triangular solve from a name, a text such as "sweeps(count=5)", or the settings object."""
    from swell.core.registry import resolve
    settings = resolve("triangular", choice)
    if settings is None:
        raise InputError(f"solve={choice!r}: expected 'exact', 'sweeps(count=3)', 'isai(power=1)', or their settings "
                         "object")
    return settings


class TriangularOperator(LinearOperator):
    """x = T⁻¹ b for one triangular matrix. ``out`` may be ``x`` itself in every solve."""

    scratch = ("_combined",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T.shape, T.dtype, T.space)
        self.lower, self.unit, self.order, self.settings = lower, unit, order, settings
        self._combined = None
        self.notes = idle_notes(settings, circumstances(T))

    def prepare_adjoint(self):
        """Set up what ``solve_adjoint`` needs, for loops that must not allocate; nothing to do where it is the same."""

    @abstractmethod
    def update(self, T):
        """Take the values of another matrix of the same pattern; the analysis is kept."""

    def source(self, out):
        """Where a vector that is to be solved with into ``out`` is best put: there, or where it need not be copied."""
        return out

    @abstractmethod
    def solve(self, x, out):
        """``out = T⁻¹ x``."""

    @abstractmethod
    def solve_adjoint(self, x, out):
        """``out = T⁻ᴴ x``."""

    def adjoint_dots(self, x, out, w, dots):
        """``out = T⁻ᴴ x`` with ``dots[0] = (w, out)`` and ``dots[1] = (out, out)``."""
        self.solve_adjoint(x, out)
        self.space.dots(w, out, dots)

    def apply(self, x, out, alpha=1, beta=0):
        self._combine(self.solve, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._combine(self.solve_adjoint, x, out, alpha, beta)

    def _combine(self, solve, x, out, alpha, beta):
        combine(self, solve, x, out, alpha, beta)

    def stored(self, dtype):
        """The type in which values of ``dtype`` are stored."""
        return np.dtype({"f": np.float32, "c": np.complex64}[dtype.kind]) if self.settings.single else np.dtype(dtype)


def combine(owner, solve, x, out, alpha, beta):
    """``out = alpha solve(x) + beta out``; a buffer is needed, and made once, only where something is to be added."""
    if beta == 0:
        solve(x, out)
        if alpha != 1:
            out *= out.dtype.type(alpha)
        return
    if owner._combined is None:
        owner._combined = owner.space.empty((2, *out.shape), out.dtype)
        owner._combined[1] = 1
    solve(x, owner._combined[0])
    kind = out.dtype.type                        # one type, one compilation
    owner.space.kernels("swell.core", "vector", out.dtype).multiply_add(owner._combined[1], owner._combined[0], out,
                                                                        kind(alpha), kind(beta))


def zero_diagonal(row):
    """The error of a factor that cannot be divided by."""
    return FactorisationError(f"the triangular factor has a zero on its diagonal, in row {row}: the factorisation "
                              "broke down; choose another preconditioner")


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
