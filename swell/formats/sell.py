"""SELL-C-σ with 16-bit column offsets: slices of rows, stored column by column, padded to the longest row of the slice.

Monakov, Lokhmotov and Avetisyan 2010 (sliced ELLPACK); Kreutzer et al. 2014 (SELL-C-σ). One thread, or one lane of a
vector unit, works on one row; neighbouring rows' entries are neighbours in memory.

Layout, with slice height H:

- ``ptr[s]``: where slice s begins in ``values`` and ``offsets``; entry k of its i-th row lies at ptr[s] + k H + i.
- ``base[e]``: the smallest matrix column in slice column e = ptr[s]/H + k. A base for every slice column, instead of
  one a slice, keeps the offsets small on three-dimensional grids.
- ``offsets``: column − base of each entry, in 16 bits; 0xFFFF marks padding. Values of padding are never used.
- ``rows``: row − first row of its window, for rows sorted by length inside windows of σ rows (8 bits if σ ≤ 256);
  empty if sorting saves less than one percent of the stored entries.
- ``high_ptr[s]``: −1 if all offsets of the slice fit in 16 bits. Otherwise the slice is wide: its bases are 0,
  ``offsets`` holds the lower 16 bits of each column, and ``high``, from ``high_ptr[s]`` on, the upper 16 bits. Padding
  has 0xFFFF in both.

A product reads about 10 bytes an entry (double) instead of CSR's 12.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import AS_GIVEN, ON_CPU, Idle, choose_by_none, circumstances, idle_notes, positive
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of, upper_halves

PAD = 0xFFFF
HEIGHT = {"cpu": 16, "cuda": 32}    # CPU: twice the sums that fit in its registers; GPU: a warp
COMPLEX_HEIGHT = {"cpu": 8, "cuda": 32}     # half as many complex sums fit in a CPU's registers
THREADS = 256           # of a thread block on a GPU
WORTH = 0.99            # rows are sorted if that stores less than this fraction of the entries of the plain order


@dataclass(frozen=True)
class SELL:
    """Sliced ELLPACK, optionally sorted (SELL-C-σ), with 16-bit column offsets wherever they fit.

    Attributes
    ----------
    height : int
        Rows of a slice: 8, 16, 32, 64 or 128; None: 32 on a GPU, 16 on a CPU, 8 on a CPU for complex values.
    window : int
        Rows are sorted by length inside windows of this many rows (σ): a power of two from ``height`` to 65 536, or 1
        to keep the order.
    task : int
        Threads of a block on a GPU, a row each: 64, 128, 256 or 512; None: 256. On a CPU threads share the slices
        evenly.
    """

    height: int | None = None
    window: int = 256
    task: int | None = None

    idle = (Idle("window", AS_GIVEN, "sorting its rows would save less than 1 % of the stored entries"),
            Idle("task", ON_CPU, "its threads share the slices evenly"))

    def __post_init__(self):
        choose_by_none(self, 0, "height", "task")
        positive(self, "window")
        positive(self, "task")
        if self.height not in (None, 8, 16, 32, 64, 128):
            raise InputError(f"SELL(height={self.height!r}): expected 8, 16, 32, 64 or 128, or None for the device's "
                             "own")
        if self.window & (self.window - 1) or self.window > 65536 or 1 < self.window < (self.height or 32):
            raise InputError(f"SELL(window={self.window!r}): expected 1, or a power of two from "
                             f"{self.height or 32} (the height) to 65536")

    def build(self, csr):
        """Convert a CSR matrix to SELL, on its own device.

        Raises
        ------
        InputError
            If ``task`` is not a block size for a GPU, and the matrix is on one.
        """
        if self.task not in (None, 64, 128, 256, 512) and csr.space.name == "cuda":
            raise InputError(f"SELL(task={self.task}): expected 64, 128, 256 or 512 threads of a block on a GPU, or "
                             "None")
        return SELLMatrix(csr, self)


def own_height(dtype, device: str) -> int:
    """The default slice height for values of ``dtype`` on ``device``, "cpu" or "cuda"."""
    return (COMPLEX_HEIGHT if dtype.kind == "c" else HEIGHT)[device]


class SELLMatrix(Matrix):
    """A matrix in SELL."""

    name = "sell"

    def __init__(self, csr: CSRMatrix, settings: SELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self.height = settings.height or own_height(csr.dtype, csr.space.name)
        self.task = settings.task or THREADS     # the kernels of a CPU have no use for it
        if csr.space.name == "cuda":             # room for partial sums of `apply_dots`, by thread blocks
            csr.space.reserve(3 * (csr.shape[0] // self.task + 1))
        self._layout(csr)
        unsorted = (AS_GIVEN,) if not self.sorted and settings.window > 1 else ()
        self.notes = idle_notes(settings, (*circumstances(csr), *unsorted))
        self._kernels = csr.space.kernels("swell.formats", "sell", csr.dtype)

    def _layout(self, csr):
        """Sort the rows of ``csr``, a CSRMatrix, if that saves padding, and write all arrays of self."""
        space, xp, H, window = self.space, self.space.xp, self.height, self.settings.window
        kernels = space.kernels("swell.formats", "sell_layout", csr.dtype)
        slices = -(-self.shape[0] // H)
        index = index_type(*self.shape, H * csr.nnz)             # no slice has more than H places for each entry
        widths, starts = xp.zeros((2, slices), np.int32), space.empty((2, slices + 1), index)
        kernels.measure_windows(csr.indptr, H, max(window, H), *widths)
        for of_order, start in zip(widths, starts):
            space.prefix_sums(of_order, start, H)
        plain, ordered = space.last_entries(*starts)  # sync
        self.sorted = window > 1 and ordered < WORTH * plain
        stored = ordered if self.sorted else plain
        self.ptr = starts[int(self.sorted)].astype(index_type(*self.shape, stored), copy=False)
        order, self.place = (space.empty(slices * H if self.sorted else 0, csr.indptr.dtype) for _ in range(2))
        if self.sorted:
            kernels.sort_windows(csr.indptr, window, order, self.place)
        self.base, wide = space.empty(stored // H, self.ptr.dtype), space.empty(slices, np.uint8)
        kernels.find_bases(csr.indptr, csr.indices, order, self.ptr, H, H, PAD - 1, self.base, wide)
        self.high_ptr, halves = upper_halves(kernels, space, self.ptr, wide)
        self.values, self.offsets = space.empty(stored, self.dtype), space.empty(stored, np.uint16)
        self.high, self.rows = space.empty(halves, np.uint16), space.empty(order.size, self._row_type)
        entries = space.kernels("swell.formats", "sell_entries", csr.dtype)
        entries.place_entries(csr.indptr, csr.indices, csr.data, order, self.ptr, self.base, H, window, self.high_ptr,
                              self.values, self.offsets, self.high, self.rows)
        space.synchronize()                      # a product may read the matrix before the preceding kernel has ended

    @property
    def _row_type(self):
        return np.uint8 if self.settings.window <= 256 else np.uint16

    def _where(self, csr):
        """Return a new array: the index into ``values`` of each entry of ``csr``, in CSR order."""
        where = self.space.empty(csr.nnz, self.ptr.dtype)
        kernels = self.space.kernels("swell.formats", "sell_entries", csr.dtype)
        kernels.find_where(csr.indptr, self.place, self.ptr, self.height, where)
        return where

    def _arrays(self):
        return self.ptr, self.base, self.offsets, self.values, self.rows, self.high_ptr, self.high

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(*self._arrays(), x, out, self.height, self.settings.window, self.task,
                              alpha, beta)

    def apply_plus(self, x, z, out):
        self.apply_sum(x, 1, z, 1, z, 0, out)

    def apply_sum(self, x, alpha, z, beta, w, gamma, out):
        """``out = alpha A x + beta z + gamma w``. ``out`` may be the same array as z or w, but not as x."""
        factors = (out.dtype.type(factor) for factor in (alpha, beta, gamma))
        self._kernels.product_sum(*self._arrays(), x, z, w, out, self.height, self.settings.window, self.task, *factors)

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
        return CSRMatrix(self.space, self.space.row_pointers(row, n), columns, values, self.shape)

    def convert(self, csr):
        return SELLMatrix(csr, self.settings)

    def _find_positions(self, csr):
        return self._where(csr)

    def update(self, csr):
        self.values[self.positions(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        positions = 0 if self._positions is None else self._positions.nbytes
        return self.matrix_bytes + self.place.nbytes + positions

    @property
    def matrix_bytes(self):
        return sum(a.nbytes for a in self._arrays())

    @property
    def padding(self) -> float:
        """Stored entries, padding included, over entries of the matrix."""
        return self.values.size / max(self.nnz, 1)

    def describe(self):
        order = f"sorted in windows of {self.settings.window}" if self.sorted else "unsorted"
        narrow = 1 - self.high.size / max(self.values.size, 1)
        task = f", {self.task} rows a task" if self.settings.task else ""
        return f"sell, height {self.height}, {order}{task}, padding {self.padding:.2f}, 16-bit offsets {narrow:.0%}"
