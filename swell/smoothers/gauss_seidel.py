"""Gauss–Seidel: each row is solved for its own unknown, with the newest values of the others.

Equations (4.2) to (4.5), section 4.2.1 of the paper that smoother.py names. For matrices with a diagonal without zeros.
It converges for every SPD matrix, and each sweep reduces the A-norm of the error.

Natural order, on a CPU: one row after the other, on one core, as in the paper. A sweep reads the matrix in CSR, D⁻¹, b
and x, and writes x. With colours, all rows of one colour are solved at once: on all cores, or on a GPU with one launch
a colour. A sweep then reads a copy of the matrix, with its rows sorted by colour in slices of 32 (12 bytes an entry,
double). It gathers b and x once a colour: it reads a cache line again for each colour that shares the line.

Storage with colours: the off-diagonals once more, D⁻¹, and the row numbers. A sweep has one launch for each colour. A
symmetric sweep has two for each colour, but one for the last colour, since solving it again changes nothing.

Differs from the textbook: colours make another order, which takes about as many sweeps. ``symmetric`` is a forward
sweep and then a backward sweep, which makes M Hermitian if A is; CG needs this.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import one_of
from swell.formats.diagonal import nonzero_diagonal
from swell.formats.matrix import index_type
from swell.orderings.multicolor import by_color, greedy, jones_plassmann
from swell.smoothers.smoother import Smoother, SmootherOperator

DIRECTIONS = ("forward", "backward", "symmetric")
COLORINGS = (None, "natural", "greedy", "jones_plassmann")
REVERSED = {"forward": "backward", "backward": "forward", "symmetric": "symmetric"}
SLICE = 32              # rows whose entries are stored together, position by position


@dataclass(frozen=True)
class GaussSeidel(Smoother):
    """Gauss–Seidel sweeps, in natural order or by colours.

    Attributes
    ----------
    direction : str
        "forward", "backward", or "symmetric": forward, then backward, in one sweep.
    coloring : str or None
        "natural": no colours, one row after the other, on a CPU only; "greedy" or "jones_plassmann": by colours.
        None: "natural" on a CPU, "jones_plassmann" on a GPU.
    """

    direction: str = "symmetric"
    coloring: str | None = None

    problem = "any matrix with a diagonal without zeros; converges for SPD ones"
    cost = "a sweep: the matrix and 4 words a row (symmetric: twice); on a GPU 1 launch a colour"

    def __post_init__(self):
        super().__post_init__()
        one_of(self, "direction", DIRECTIONS)
        if self.coloring not in COLORINGS:
            raise InputError(f"GaussSeidel(coloring={self.coloring!r}): expected None or one of "
                             f"{', '.join(c for c in COLORINGS if c)}")

    def build(self, A):
        """Return the Gauss–Seidel operator for a CSR matrix.

        Raises
        ------
        InputError
            If a diagonal entry is zero, or natural order is asked for on a GPU.
        """
        coloring = self.coloring or ("natural" if A.space.name == "cpu" else "jones_plassmann")
        if coloring != "natural":
            return ColoredGaussSeidel(A, self, coloring)
        if A.space.name != "cpu":
            raise InputError("GaussSeidel(coloring='natural') goes from row to row, which a GPU cannot do in parallel: "
                             "use coloring='jones_plassmann' or 'greedy', or device='cpu'")
        return NaturalGaussSeidel(A, self)


class GaussSeidelOperator(SmootherOperator):
    """Base of both orders: the inverse diagonal, and the adjoint, which sweeps in the reverse direction."""

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self.self_adjoint = settings.direction == "symmetric"
        self._kernels = A.space.kernels("swell.smoothers", "gauss_seidel", A.dtype)

    def _inverse(self, A):
        """Return 1 / diagonal of A, a new array; raise InputError for a zero."""
        with np.errstate(over="ignore", invalid="ignore"):       # of denormal numbers: the iteration ends as NONFINITE
            return 1 / nonzero_diagonal(A, "the Gauss–Seidel smoother")

    def _build_adjoint(self, A):
        return replace(self.settings, direction=REVERSED[self.settings.direction]).build(A)


class NaturalGaussSeidel(GaussSeidelOperator):
    """Gauss–Seidel row after row, on one core of a CPU."""

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self.inverse = self._inverse(A)

    def update(self, A):
        super().update(A)
        self.inverse[...] = self._inverse(A)

    def _sweep(self, b, x):
        A, direction = self.A, self.settings.direction
        if direction != "backward":
            self._kernels.natural(A.indptr, A.indices, A.data, self.inverse, b, x, True)
        if direction != "forward":
            self._kernels.natural(A.indptr, A.indices, A.data, self.inverse, b, x, False)

    @property
    def nbytes(self):
        return self.inverse.nbytes + self._y.nbytes

    def describe(self):
        return f"GaussSeidel(sweeps={self.settings.sweeps}, {self.settings.direction}), natural order on one core"


class ColoredGaussSeidel(GaussSeidelOperator):
    """Gauss–Seidel colour after colour, with all rows of a colour at once.

    Attributes
    ----------
    colors : int
        Number of colours.
    """

    def __init__(self, A, settings, coloring):
        super().__init__(A, settings)
        xp, n = A.space.xp, A.shape[0]
        sorted_rows, begins = by_color(A.space, {"greedy": greedy, "jones_plassmann": jones_plassmann}[coloring](A))
        self.coloring, self.colors = coloring, len(begins) - 1
        slices = [-(-(end - begin) // SLICE) for begin, end in zip(begins, begins[1:])]
        places = sum(slices) * SLICE
        rows = xp.full(places, -1, np.int64)
        at = 0
        for count, begin, end in zip(slices, begins, begins[1:]):
            rows[at:at + end - begin] = sorted_rows[begin:end]
            at += count * SLICE
        self._used = xp.nonzero(rows >= 0)[0]                # places that hold a row
        self._place = xp.empty(n, np.int64)
        self._place[rows[self._used]] = self._used
        self._store(A, rows)
        self._passes, at = [], 0
        for count in slices:                     # the views that each launch gets, made once
            part = slice(at * SLICE, (at + count) * SLICE)
            self._passes.append((self.rows[part], self.ptr[at:at + count + 1], self.inverse[part]))
            at += count

    def _store(self, A, rows):
        """Store A's off-diagonals in slices of 32 rows, and the inverse diagonal.

        ``rows``: the row in each place, sorted by colour; −1 in a place without a row.
        """
        space, xp = A.space, A.space.xp
        entry_rows = A.rows()
        self._off = xp.nonzero(entry_rows != A.indices)[0]
        off_rows = entry_rows[self._off]
        before = space.row_pointers(off_rows, A.shape[0])        # off-diagonals before each row
        lengths, ptr = xp.zeros(rows.size, np.int64), xp.empty(rows.size // SLICE + 1, np.int64)
        lengths[self._place] = xp.diff(before)
        space.prefix_sums(space.group_max(lengths, SLICE) * SLICE, ptr)
        k = xp.arange(self._off.size) - before[off_rows]
        place = self._place[off_rows]
        self._where = ptr[place // SLICE] + k * SLICE + place % SLICE
        stored = int(ptr[-1])
        index = index_type(*A.shape, stored)
        self.rows, self.ptr = rows.astype(index), ptr.astype(index)
        self.columns = xp.full(stored, -1, index)
        self.columns[self._where] = A.indices[self._off]
        self.values = xp.zeros(stored, A.dtype)
        self.inverse = xp.ones(rows.size, A.dtype)
        self._values(A)

    def _values(self, A):
        """Copy the values of A to the stored slices, and recompute the inverse diagonal."""
        self.values[self._where] = A.data[self._off]
        self.inverse[self._used] = self._inverse(A)[self.rows[self._used]]

    def update(self, A):
        super().update(A)
        self._values(A)

    def _sweep(self, b, x):
        direction, passes = self.settings.direction, self._passes
        if direction != "backward":
            for part in passes:
                self._kernels.color(*part, self.columns, self.values, b, x)
        if direction != "forward":
            for part in passes[::-1] if direction == "backward" else passes[-2::-1]:
                self._kernels.color(*part, self.columns, self.values, b, x)

    @property
    def nbytes(self):
        return sum(a.nbytes for a in (self.rows, self.ptr, self.columns, self.values, self.inverse, self._y,
                                      self._place, self._off, self._where, self._used))

    def describe(self):
        return (f"GaussSeidel(sweeps={self.settings.sweeps}, {self.settings.direction}), {self.colors} colours "
                f"({self.coloring})")
