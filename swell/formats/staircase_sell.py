"""Staircase SELL: the rows of a slice sorted by length, and no padding stored; for rows of very different lengths.

"An Efficient Solver for Symmetric Positive Definite Matrices from Finite Volume Methods on GPU", section 3.1, names the
format but gives no layout; this layout is swell's own. A slice has 32 rows, one warp, in descending order of length. So
the entries of slice column k lie in the first rows, and only these are stored: the columns form a staircase.

Layout:

- ``lengths``: the length of the row at each place, in 8 bits if all fit, else 16 or 32. Column k of a slice has an
  entry for each row longer than k. A warp counts these rows by one vote, so no pointers to slice columns are stored.
- ``ptr[s]``: where slice s begins in ``values`` and ``offsets``; its columns lie one after the other.
- ``base_ptr[s]``: where slice s begins in ``base``, which holds the smallest matrix column in each slice column.
- ``offsets``: column − base of each entry, in 16 bits.
- ``rows``: row − first row of its window, which is a slice or, as in SELL-C-σ, σ rows; empty if no row has moved.
- ``high_ptr[s]``: −1, or, for a slice with an offset that does not fit in 16 bits, where the upper 16 bits of its
  columns begin in ``high``; its bases are then 0, as in SELL.

Bytes of a product (double): 10 an entry, 4 for every slice column, 2 a row, 8 a slice; nothing for padding.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import AS_GIVEN, Idle, idle_notes, positive
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of, upper_halves

HEIGHT = 32             # a warp
MAX_OFFSET = 0xFFFF     # largest offset that fits in 16 bits


@dataclass(frozen=True)
class StaircaseSELL:
    """Sliced ELLPACK with sorted rows and no padding.

    Attributes
    ----------
    window : int
        Rows are sorted by length inside windows of this many rows (σ): a power of two from 32, one slice, to 65 536.
        A larger window gains little, because no padding is stored, and moves neighbouring rows apart.
    """

    window: int = 32

    idle = Idle("window", AS_GIVEN, "its rows are already sorted inside each window"),

    def __post_init__(self):
        positive(self, "window")
        if self.window & (self.window - 1) or not HEIGHT <= self.window <= 65536:
            raise InputError(f"StaircaseSELL(window={self.window!r}): expected a power of two from {HEIGHT} (a slice) "
                             "to 65536")

    def build(self, csr):
        """Convert a CSR matrix to staircase SELL, on its own device."""
        return StaircaseSELLMatrix(csr, self)


class StaircaseSELLMatrix(Matrix):
    """A matrix in staircase SELL."""

    name = "staircase_sell"

    def __init__(self, csr: CSRMatrix, settings: StaircaseSELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self._kernels = csr.space.kernels("swell.formats", "staircase_sell", csr.dtype)
        self._layout(csr)
        if not self.rows.size:
            self.notes = idle_notes(settings, (AS_GIVEN,))

    def _layout(self, csr):
        """Sort the rows of ``csr``, a CSRMatrix, by length inside windows, and write all arrays of self."""
        space, xp, n, window = self.space, self.space.xp, self.shape[0], self.settings.window
        layout = space.kernels("swell.formats", "sell_layout", csr.dtype)
        slices = -(-n // HEIGHT)
        index, longest = index_type(slices * HEIGHT, self.shape[1], self.nnz), csr.longest_row()
        small = next(t for t in (np.uint8, np.uint16, np.uint32) if max(longest, window - 1) <= np.iinfo(t).max)
        order, place = (space.empty(slices * HEIGHT, csr.indptr.dtype) for _ in range(2))
        layout.sort_windows(csr.indptr, window, order, place)
        lengths = xp.zeros(slices * HEIGHT, np.int32)
        lengths[:n] = xp.diff(csr.indptr)
        lengths = lengths[order]
        moved = space.max_on_host(order != xp.arange(order.size, dtype=order.dtype)) > 0
        self.lengths, self.rows = lengths.astype(small), (order % window if moved else order[:0]).astype(small)
        starts, columns = space.empty(lengths.size + 1, np.int64), space.empty(slices + 1, np.int64)
        space.prefix_sums(lengths, starts)
        space.prefix_sums(xp.ascontiguousarray(lengths[::HEIGHT]), columns)       # a slice's first row is its longest
        self.ptr, self.base_ptr = starts[::HEIGHT].astype(index), columns.astype(index)
        self.base, wide = space.empty(int(self.base_ptr[-1]), index), space.empty(slices, np.uint8)  # sync
        layout.find_bases(csr.indptr, csr.indices, order, self.base_ptr, 1, HEIGHT, MAX_OFFSET, self.base, wide)
        self.high_ptr, halves = upper_halves(layout, space, self.ptr, wide)
        self.values, self.offsets = space.empty(self.nnz, self.dtype), space.empty(self.nnz, np.uint16)
        self.high = space.empty(halves, np.uint16)
        self._kernels.place_entries(csr.indptr, csr.indices, csr.data, order, self.ptr, self.base_ptr, self.base,
                                    self.high_ptr, self.values, self.offsets, self.high)
        space.synchronize()                      # a product may read the matrix before the preceding kernel has ended

    def _row_at(self):
        """Return an integer array: the row at each place of the sorted order."""
        places = self.space.xp.arange(self.lengths.size)
        return places if not self.rows.size else places - places % self.settings.window + self.rows

    def _where(self, indptr):
        """Return four arrays for the entries of a CSR matrix with these row pointers, in its order.

        They are the index into ``values``, the slice column, the slice, and the row inside the slice."""
        xp = self.space.xp
        place = xp.empty(self.lengths.size, np.int64)
        place[self._row_at()] = xp.arange(self.lengths.size)
        rows = rows_of(indptr, self.nnz, xp)
        place = place[rows]
        slice_, lane = place // HEIGHT, place % HEIGHT
        column = self.base_ptr[slice_] + xp.arange(self.nnz) - indptr[rows]
        starts = self.space.row_pointers(column, int(self.base_ptr[-1]))  # sync
        return starts[column] + lane, column, slice_, lane

    def _high_at(self, where, slice_):
        """Return (a mask of the entries whose columns have upper halves, the indices of these halves in ``high``).

        ``where``, ``slice_``: of each entry, as `_where` returns them."""
        wide = self.high_ptr[slice_] >= 0
        slice_ = slice_[wide]
        return wide, self.high_ptr[slice_] + where[wide] - self.ptr[slice_]

    def _arrays(self):
        return (self.ptr, self.base_ptr, self.lengths, self.base, self.offsets, self.values, self.rows, self.high_ptr,
                self.high)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(*self._arrays(), x, out, self.settings.window, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(*self._arrays(), x, out, w, dots, self.settings.window)
        self.space.collect(dots)

    def to_csr(self):
        xp, n = self.space.xp, self.shape[0]
        lengths = xp.empty(self.lengths.size, np.int64)
        lengths[self._row_at()] = self.lengths
        indptr = xp.zeros(n + 1, np.int64)
        xp.cumsum(lengths[:n], out=indptr[1:])
        where, column, slice_, _ = self._where(indptr)
        indices = self.base[column].astype(np.int64) + self.offsets[where]
        if self.high.size:
            wide, at = self._high_at(where, slice_)
            indices[wide] += self.high[at].astype(np.int64) << 16
        return CSRMatrix(self.space, indptr, indices, self.values[where], self.shape)

    def convert(self, csr):
        return StaircaseSELLMatrix(csr, self.settings)

    def _find_positions(self, csr):
        return self._where(csr.indptr)[0].astype(self.ptr.dtype)

    def update(self, csr):
        self.values[self.positions(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        return self.matrix_bytes + (0 if self._positions is None else self._positions.nbytes)

    @property
    def matrix_bytes(self):
        return sum(a.nbytes for a in self._arrays())

    def describe(self):
        order = f"sorted in windows of {self.settings.window}" if self.rows.size else "rows in their own order"
        narrow = 1 - self.high.size / max(self.values.size, 1)
        return f"staircase_sell, {order}, 16-bit offsets {narrow:.0%}"
