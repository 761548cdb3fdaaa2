"""SELL-C-σ with 16-bit column offsets: slices of rows, stored column by column, padded to the longest row of the slice.

Monakov, Lokhmotov and Avetisyan 2010 (sliced ELLPACK); Kreutzer et al. 2014 (SELL-C-σ). One thread, or one lane of a
vector unit, works on one row; neighbouring rows' entries are neighbours in memory.

Layout, with slice height H:

- ``ptr[s]``: where slice s begins in ``values`` and ``offsets``; entry k of its i-th row lies at ptr[s] + k H + i.
- ``base[e]``: the least column of slice column e = ptr[s]/H + k. Its entries store column − base in 16 bits. A base
  for every slice column, rather than one a slice, keeps the offsets small on three-dimensional grids.
- ``offsets``: 0xFFFF marks padding. Padding values are never used, whatever they are.
- ``rows``: row − first row of its slice's window, for rows sorted by length inside windows of σ rows (8 bits while
  σ ≤ 256); empty where sorting saves less than one percent of the padding.
- ``high_ptr[s]``: −1, or, for a slice in which an offset would not fit, where its upper 16 bits of the column begin in
  ``high``; ``offsets`` then holds the lower 16 bits and the base is 0. Padding has 0xFFFF in both.

A product reads about 10 bytes an entry (double) instead of CSR's 12.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import AS_GIVEN, Idle, idle_notes, positive
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of, upper_halves

PAD = 0xFFFF
HEIGHT = {"cpu": 16, "cuda": 32}    # twice the sums that a CPU keeps in registers; a warp of a GPU
COMPLEX_HEIGHT = {"cpu": 8, "cuda": 32}     # a CPU keeps half as many complex sums
CHUNKS = 64             # of a CPU: more than cores, so that they end together; few enough that their sums cost nothing
THREADS = 256           # of a block of a GPU


@dataclass(frozen=True)
class SELL:
    """Sliced ELLPACK, optionally sorted (SELL-C-σ), with 16-bit column offsets wherever they fit.

    Attributes
    ----------
    height : int
        Rows of a slice: 8, 16, 32, 64 or 128; 0 takes 16 on a CPU, 8 for complex values, and 32 on a GPU.
    window : int
        Rows are sorted by length inside windows of this many rows (σ); 1 leaves the order as it is. A power of two,
        from ``height`` to 65 536.
    task : int
        Rows that are worked on together: the threads of a block on a GPU (64, 128, 256 or 512), a chunk of rows that a
        thread takes on a CPU (any number); 0 takes 256 on a GPU and a 64th of the rows on a CPU.
    """

    height: int = 0
    window: int = 256
    task: int = 0

    idle = Idle("window", AS_GIVEN, "sorting its rows would save no hundredth of what is stored"),

    def __post_init__(self):
        positive(self, "window")
        positive(self, "task", minimum=0)
        if self.height not in (0, 8, 16, 32, 64, 128):
            raise InputError(f"SELL(height={self.height!r}): expected 8, 16, 32, 64 or 128, or 0 for the device's own")
        if self.window & (self.window - 1) or self.window > 65536 or 1 < self.window < (self.height or 32):
            raise InputError(f"SELL(window={self.window!r}): expected 1, or a power of two from "
                             f"{self.height or 32} (the height) to 65536")

    def build(self, csr):
        """A CSR matrix in this format, converted where it lives.

        Raises
        ------
        InputError
            For a ``task`` that is no block of a GPU.
        """
        if self.task not in (0, 64, 128, 256, 512) and csr.space.name == "cuda":
            raise InputError(f"SELL(task={self.task}): expected 64, 128, 256 or 512 threads of a block on a GPU, or 0")
        return SELLMatrix(csr, self)


def own_height(dtype, device: str) -> int:
    """The slice height that a device takes where none is named."""
    return (COMPLEX_HEIGHT if dtype.kind == "c" else HEIGHT)[device]


class SELLMatrix(Matrix):
    """A matrix in SELL; see the top of this file for the arrays."""

    def __init__(self, csr: CSRMatrix, settings: SELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self.height = settings.height or own_height(csr.dtype, csr.space.name)
        self.task = settings.task or (THREADS if csr.space.name == "cuda" else max(1, -(-csr.shape[0] // CHUNKS)))
        if csr.space.name == "cuda":             # the parts of two inner products that each block leaves
            csr.space.reserve(3 * (csr.shape[0] // self.task + 1))
        self._positions = None                   # of a CSR matrix's entries, from the first update on
        self._layout(csr)
        if not self.sorted and settings.window > 1:
            self.notes = idle_notes(settings, (AS_GIVEN,))
        self._kernels = csr.space.kernels("swell.formats", "sell", csr.dtype)

    def _layout(self, csr):
        """Place the rows, then the columns."""
        if self.space.name == "cpu":
            self._layout_by_rows(csr)
        else:
            self._layout_by_arrays(csr)
        if not self.high.size:
            self.high_ptr = self.space.xp.empty(0, self.ptr.dtype)

    def _layout_by_rows(self, csr):
        """On a CPU: four passes over rows or slices, where whole arrays take thirty, most of them into new memory."""
        from swell.formats.kernels import sell as kernels
        n, H, window = self.shape[0], self.height, self.settings.window
        slices = -(-n // H)
        widths = np.empty((2, slices), np.int32)
        kernels.measure_windows(csr.indptr, H, max(window, H), *widths)
        self.sorted = self._pays(*widths.sum(axis=1, dtype=np.int64))
        order = np.empty(slices * H if self.sorted else 0, csr.indptr.dtype)
        kernels.sort_windows(csr.indptr, window, order)
        ptr = np.zeros(slices + 1, np.int64)
        np.cumsum(widths[int(self.sorted)] * np.int64(H), out=ptr[1:])
        stored = int(ptr[-1])
        self.ptr = ptr.astype(index_type(*self.shape, stored))
        self.base = np.empty(stored // H, self.ptr.dtype)
        wide = np.empty(slices, bool)
        kernels.find_bases(csr.indptr, csr.indices, order, self.ptr // H, H, PAD - 1, self.base, wide)
        self.high_ptr, halves = upper_halves(self.ptr, wide, np)
        self.values, self.offsets = np.empty(stored, self.dtype), np.empty(stored, np.uint16)
        self.high, self.rows = np.empty(halves, np.uint16), np.empty(order.size, self._row_type)
        kernels.place_entries(csr.indptr, csr.indices, csr.data, order, self.ptr, self.base, H, window, self.high_ptr,
                              self.values, self.offsets, self.high, self.rows)
        self.place = None                        # the identity needs no storage
        if self.sorted:
            self.place = np.empty(order.size, np.int64)
            self.place[order] = np.arange(order.size)

    def _layout_by_arrays(self, csr):
        xp, n, H = self.space.xp, self.shape[0], self.height
        slices = -(-n // H)
        lengths = xp.zeros(slices * H, np.int64)
        lengths[:n] = xp.diff(csr.indptr)
        order = self._order(lengths, slices)
        widths = lengths[order].reshape(slices, H).max(axis=1) if slices else lengths
        ptr = xp.zeros(slices + 1, np.int64)
        xp.cumsum(widths * H, out=ptr[1:])
        stored = int(ptr[-1])
        index = index_type(*self.shape, stored)
        self.place = xp.empty(slices * H, np.int64)              # of each row among the slices' rows
        self.place[order] = xp.arange(slices * H)
        self.ptr = ptr.astype(index)
        self.values = xp.zeros(stored, self.dtype)
        where = self._where(csr)
        self.values[where] = csr.data
        self._columns(csr, where, stored, index)
        first = (xp.arange(slices * H) // self.settings.window) * self.settings.window
        self.rows = (order - first).astype(self._row_type) if self.sorted else xp.empty(0, self._row_type)
        self.place = self.place if self.sorted else None

    @property
    def _row_type(self):
        return np.uint8 if self.settings.window <= 256 else np.uint16

    def _pays(self, plain, ordered):
        """Is so much saved by sorting that the rows' places are worth storing?"""
        return bool(self.settings.window > 1 and ordered < 0.99 * plain)

    def _order(self, lengths, slices):
        """The row at each place: descending length inside windows, where that saves padding."""
        xp, H = self.space.xp, self.height
        places = xp.arange(slices * H)
        self.sorted = False
        if self.settings.window == 1 or not slices:
            return places
        longest = int(lengths.max())
        order = xp.argsort((places // self.settings.window) * (longest + 1) + (longest - lengths), kind="stable")
        size = [int(l.reshape(slices, H).max(axis=1).sum()) for l in (lengths, lengths[order])]
        self.sorted = self._pays(*size)
        return order if self.sorted else places

    def _where(self, csr):
        """Where each entry of the CSR matrix lies in ``values``."""
        xp, H = self.space.xp, self.height
        if self.space.name == "cpu":             # one pass, where whole arrays take six, each into new memory
            from swell.formats.kernels.sell import find_where
            where = np.empty(csr.nnz, np.int64)
            find_where(csr.indptr, np.empty(0, np.int64) if self.place is None else self.place, self.ptr, H, where)
            return where
        rows = rows_of(csr.indptr, csr.nnz, xp)
        place = rows if self.place is None else self.place[rows]
        k = xp.arange(csr.nnz) - csr.indptr[rows]
        return self.ptr[place // H] + k * H + place % H

    def _columns(self, csr, where, stored, index):
        """Bases, 16-bit offsets, and the upper halves where 16 bits do not do."""
        xp, H = self.space.xp, self.height
        empty = np.iinfo(np.int64).max
        columns = xp.full(stored, empty, np.int64)
        columns[where] = csr.indices
        columns = columns.reshape(-1, H)
        base = columns.min(axis=1) if stored else xp.empty(0, np.int64)
        padding = columns == empty
        wide = xp.where(padding, 0, columns - base[:, None]).max(axis=1) >= PAD if stored else xp.empty(0, bool)
        slices = self.ptr.size - 1
        owner = rows_of(self.ptr // H, stored // H, xp)           # the slice of each slice column
        wide_slices = xp.zeros(slices, bool)
        wide_slices[owner[wide]] = True
        wide = wide_slices[owner]
        base[wide] = 0
        offset = xp.where(padding, 0, columns) - base[:, None]
        self.base = base.astype(index)
        self.offsets = xp.where(padding, PAD, offset & 0xFFFF).astype(np.uint16).reshape(-1)
        self.high = xp.where(padding, PAD, offset >> 16)[wide].astype(np.uint16).reshape(-1)
        self.high_ptr, _ = upper_halves(self.ptr, wide_slices, xp)

    def _arrays(self):
        return self.ptr, self.base, self.offsets, self.values, self.rows, self.high_ptr, self.high

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)    # one type, one compilation
        self._kernels.product(*self._arrays(), x, out, self.height, self.settings.window, self.task,
                              alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(*self._arrays(), x, out, w, dots, self.height, self.settings.window, self.task)
        self.space.collect(dots)

    def to_csr(self):
        xp, H, n = self.space.xp, self.height, self.shape[0]
        stored = self.offsets.size
        real = self.offsets != PAD
        columns = (self.base.astype(np.int64).repeat(H) + self.offsets)
        if self.high.size:
            owner = rows_of(self.ptr, stored, xp)
            wide = self.high_ptr[owner] >= 0
            at = self.high_ptr[owner[wide]] + xp.arange(stored)[wide] - self.ptr[owner[wide]]
            high = self.high[at]
            real[wide] |= high != PAD
            columns[wide] += high.astype(np.int64) << 16
        position = xp.arange(stored)
        owner = rows_of(self.ptr, stored, xp)
        row = owner * H + position % H
        if self.sorted:
            row = (row // self.settings.window) * self.settings.window + self.rows[row]
        key = (row * self.shape[1] + columns)[real]
        order = xp.argsort(key)
        row, columns, values = row[real][order], columns[real][order], self.values[real][order]
        indptr = xp.zeros(n + 1, np.int64)
        xp.cumsum(xp.bincount(row, minlength=n), out=indptr[1:])
        return CSRMatrix(self.space, indptr, columns, values, self.shape)

    def convert(self, csr):
        return SELLMatrix(csr, self.settings)

    def positions(self, csr):
        """Where each entry of a CSR matrix of this pattern lies in ``values``; made once and kept, 4 bytes an entry."""
        if self._positions is None:
            self._positions = self._where(csr).astype(self.ptr.dtype)
        return self._positions

    def update(self, csr):
        self.values[self.positions(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        beside = (self.place if self.sorted else None, self._positions)
        return sum(a.nbytes for a in self._arrays()) + sum(a.nbytes for a in beside if a is not None)

    @property
    def matrix_bytes(self):
        return sum(a.nbytes for a in self._arrays())

    @property
    def padding(self) -> float:
        """Stored entries over entries of the matrix."""
        return self.values.size / max(self.nnz, 1)

    def describe(self):
        order = f"sorted in windows of {self.settings.window}" if self.sorted else "unsorted"
        narrow = 1 - self.high.size / max(self.values.size, 1)
        task = f", {self.task} rows a task" if self.settings.task else ""
        return f"sell, height {self.height}, {order}{task}, padding {self.padding:.2f}, 16-bit offsets {narrow:.0%}"
