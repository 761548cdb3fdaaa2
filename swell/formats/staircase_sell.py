"""Staircase SELL: the rows of a slice sorted by length, and no padding stored; for rows of very different lengths.

"An Efficient Solver for Symmetric Positive Definite Matrices from Finite Volume Methods on GPU", section 3.1, names the
format without its layout, which is therefore ours. A slice has 32 rows, a warp's, in descending order of length, so
column k of a slice has its entries in the first rows and is stored as long as that: a staircase.

Layout:

- ``lengths``: of the row at each place, in 8 bits where they fit, else 16 or 32. Column k of a slice is as long as the
  slice has rows longer than k: a warp counts them by one vote, so no pointer to a slice's columns is stored.
- ``ptr[s]``: where slice s begins in ``values`` and ``offsets``, its columns one after the other.
- ``base_ptr[s]``: where its columns begin in ``base``, the least column of the matrix in each slice column.
- ``offsets``: column − base in 16 bits.
- ``rows``: row − first row of its window, a slice or, as in SELL-C-σ, σ rows; empty where the rows lay in order.
- ``high_ptr[s]``: −1, or, for a slice in which an offset would not fit, where its upper 16 bits begin in ``high``; its
  bases are then 0, as in SELL.

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
LARGEST = 0xFFFF        # offset that fits into 16 bits


@dataclass(frozen=True)
class StaircaseSELL:
    """Sliced ELLPACK with sorted rows and no padding.

    Attributes
    ----------
    window : int
        Rows are sorted by length inside windows of this many rows (σ): a power of two from 32, one slice, to 65 536.
        As there is no padding to save, a larger window gains little, and neighbouring rows part.
    """

    window: int = 32

    idle = Idle("window", AS_GIVEN, "its rows have their order already"),

    def __post_init__(self):
        positive(self, "window")
        if self.window & (self.window - 1) or not HEIGHT <= self.window <= 65536:
            raise InputError(f"StaircaseSELL(window={self.window!r}): expected a power of two from {HEIGHT} (a slice) "
                             "to 65536")

    def build(self, csr):
        """A CSR matrix in this format, converted where it lives."""
        return StaircaseSELLMatrix(csr, self)


class StaircaseSELLMatrix(Matrix):
    """A matrix in staircase SELL; see the top of this file for the arrays."""

    def __init__(self, csr: CSRMatrix, settings: StaircaseSELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self._positions = None                   # of a CSR matrix's entries, from the first update on
        self._layout(csr)
        if not self.rows.size:
            self.notes = idle_notes(settings, (AS_GIVEN,))
        self._kernels = csr.space.kernels("swell.formats", "staircase_sell", csr.dtype)

    def _layout(self, csr):
        """Place the rows, then the entries."""
        xp, n = self.space.xp, self.shape[0]
        slices = -(-n // HEIGHT)
        index = index_type(slices * HEIGHT, self.shape[1], self.nnz)
        lengths = xp.zeros(slices * HEIGHT, np.int64)
        lengths[:n] = xp.diff(csr.indptr)
        places, longest = xp.arange(lengths.size), int(lengths.max()) if n else 0
        order = self._order(csr.indptr, lengths, longest)
        lengths = lengths[order]
        small = next(t for t in (np.uint8, np.uint16, np.uint32)
                     if max(longest, self.settings.window - 1) <= np.iinfo(t).max)
        self.lengths = lengths.astype(small)
        self.rows = (order % self.settings.window if bool((order != places).any()) else order[:0]).astype(small)
        self.ptr, self.base_ptr = xp.zeros(slices + 1, index), xp.zeros(slices + 1, index)
        by_slice = lengths.reshape(slices, HEIGHT)
        self.ptr[1:] = xp.cumsum(by_slice.sum(axis=1))
        self.base_ptr[1:] = xp.cumsum(by_slice[:, 0])            # the first row of a slice is its longest
        if self.space.name == "cpu":
            self._place_by_rows(csr, order)
        else:
            self._place_by_arrays(csr)

    def _order(self, indptr, lengths, longest):
        """The row at each place: descending length inside windows."""
        xp, window = self.space.xp, self.settings.window
        if self.space.name == "cpu":
            from swell.formats.kernels.sell import sort_windows
            order = np.empty(lengths.size, np.int64)
            sort_windows(indptr, window, order)
            return order
        places = xp.arange(lengths.size)
        return xp.argsort((places // window) * (longest + 1) + (longest - lengths), kind="stable")

    def _place_by_rows(self, csr, order):
        """On a CPU: two passes over slices, where whole arrays take twenty, most of them into new memory."""
        from swell.formats.kernels import sell, staircase_sell
        slices = self.ptr.size - 1
        self.base, wide = np.empty(int(self.base_ptr[-1]), self.ptr.dtype), np.empty(slices, bool)
        sell.find_bases(csr.indptr, csr.indices, order, self.base_ptr, HEIGHT, LARGEST, self.base, wide)
        high_ptr, halves = upper_halves(self.ptr, wide, np)
        self.values, self.offsets = np.empty(self.nnz, self.dtype), np.empty(self.nnz, np.uint16)
        self.high = np.empty(halves, np.uint16)
        staircase_sell.place_entries(csr.indptr, csr.indices, csr.data, order, self.ptr, self.base_ptr, self.base,
                                     high_ptr, self.values, self.offsets, self.high)
        self.high_ptr = high_ptr if self.high.size else high_ptr[:0]

    def _place_by_arrays(self, csr):
        where, column, slice_, lane = self._where(csr.indptr)
        self.values = self.space.xp.empty(self.nnz, self.dtype)
        self.values[where] = csr.data
        self._columns(csr.indices.astype(np.int64), where, column, slice_, lane, self.ptr.dtype)

    def _row_at(self):
        """The row at each place."""
        places = self.space.xp.arange(self.lengths.size)
        return places if not self.rows.size else places - places % self.settings.window + self.rows

    def _where(self, indptr):
        """Where each entry of a CSR matrix with these row pointers lies, its slice column, its slice and its lane."""
        xp = self.space.xp
        place = xp.empty(self.lengths.size, np.int64)
        place[self._row_at()] = xp.arange(self.lengths.size)
        rows = rows_of(indptr, self.nnz, xp)
        place = place[rows]
        slice_, lane = place // HEIGHT, place % HEIGHT
        column = self.base_ptr[slice_] + xp.arange(self.nnz) - indptr[rows]
        counts = xp.bincount(column, minlength=int(self.base_ptr[-1]))
        return (xp.cumsum(counts) - counts)[column] + lane, column, slice_, lane

    def _columns(self, indices, where, column, slice_, lane, index):
        """Bases, 16-bit offsets, and the upper halves where 16 bits do not do."""
        xp, slices = self.space.xp, self.ptr.size - 1
        count = int(self.base_ptr[-1])
        least, most = xp.full((count, HEIGHT), np.iinfo(np.int64).max), xp.full((count, HEIGHT), -1)
        least[column, lane] = most[column, lane] = indices
        least, most = (least.min(axis=1), most.max(axis=1)) if count else (least[:, 0], most[:, 0])
        wide_slices = xp.zeros(slices, bool)
        wide_slices[rows_of(self.base_ptr, count, xp)[most - least > LARGEST]] = True
        least[wide_slices[rows_of(self.base_ptr, count, xp)]] = 0
        self.base = least.astype(index)
        self.offsets, self.high = xp.empty(self.nnz, np.uint16), xp.empty(0, np.uint16)
        self.high_ptr = xp.empty(0, index)
        offset = indices - least[column]
        self.offsets[where] = (offset & 0xFFFF).astype(np.uint16)
        if bool(wide_slices.any()):
            self.high_ptr, halves = upper_halves(self.ptr, wide_slices, xp)
            self.high = xp.empty(halves, np.uint16)
            wide, at = self._high_at(where, slice_)
            self.high[at] = (offset[wide] >> 16).astype(np.uint16)

    def _high_at(self, where, slice_):
        """Which of these entries have an upper half, and where it lies."""
        wide = self.high_ptr[slice_] >= 0
        slice_ = slice_[wide]
        return wide, self.high_ptr[slice_] + where[wide] - self.ptr[slice_]

    def _arrays(self):
        return (self.ptr, self.base_ptr, self.lengths, self.base, self.offsets, self.values, self.rows, self.high_ptr,
                self.high)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)    # one type, one compilation
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

    def positions(self, csr):
        """Where each entry of a CSR matrix of this pattern lies in ``values``; made once and kept, 4 bytes an entry."""
        if self._positions is None:
            self._positions = self._where(csr.indptr)[0].astype(self.ptr.dtype)
        return self._positions

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
