"""Block SELL: slices of block rows, stored column by column; for systems of PDEs with few blocks in a row.

In a BSR product on a GPU, several lanes share a block row, and add up their sums in the end. Where a block row has few
blocks, as on meshes in two dimensions, this addition is most of the work. Here, as in SELL, each thread has one row.

A thread has a row, not a block row. Then the rows of a slice are neighbours in memory for every s, and loads of values
are coalesced. There are s times as many threads, and each keeps one sum. The s threads of a block row read the same
block column, and for each column of the block the same x: one access a warp.

Layout, with H block rows of s rows in a slice:

- ``ptr[k]``: where slice k begins in ``columns``; the e-th block of its i-th block row lies at ptr[k] + e H + i.
- ``columns``: the block column; −1 for padding, which stands at the end of each block row.
- ``values``, of shape (blocks / H, s, H s): row r and column c of that block lie at [ptr[k] / H + e, c, i s + r].
- ``stored``: a bit for every value, set if A has an entry there, as in BSR; empty if every block is full.

With ``pad``, the last block row and column may reach past the matrix, as in BSR. A product reads 8 + 4/s² bytes an
entry (double) times the fill; of padding it reads the columns only. Block rows are not sorted by length: on meshes they
are about equally long, and padding costs storage but little time.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import choose_by_none
from swell.formats.blocks import BlockPattern, Blocks, chosen_size
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix, index_type, rows_of

HEIGHT = {"cpu": 8, "cuda": 32}     # CPU: block rows whose sums stay in the L1 cache; GPU: s warps


@dataclass(frozen=True)
class BlockSELL(Blocks):
    """Sliced ELLPACK of dense blocks, for short block rows.

    Attributes
    ----------
    block : int
        Rows and columns of a block, 1 to 32; None: the largest with a fill of at most 1.2 (1 if there is none).
    pad : bool
        Allow a size that does not divide the rows and columns; the last blocks are filled with zeros.
    height : int
        Block rows of a slice: 8, 16, 32, 64 or 128; None: 8 on a CPU, 32 on a GPU.
    """

    height: int | None = None

    def __post_init__(self):
        super().__post_init__()
        choose_by_none(self, 0, "height")
        if self.height not in (None, 8, 16, 32, 64, 128):
            raise InputError(f"BlockSELL(height={self.height!r}): expected 8, 16, 32, 64 or 128, or None for the "
                             "device's own")

    def build(self, csr):
        return BlockSELLMatrix(csr, self)


class BlockSELLMatrix(Matrix):
    """A matrix in block SELL.

    Attributes
    ----------
    ptr, columns, values : arrays of the space
    block, height : int
    """

    name = "block_sell"

    def __init__(self, csr: CSRMatrix, settings: BlockSELL):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings = settings
        self.block = chosen_size(csr, settings, "BlockSELL")
        self.height = settings.height or HEIGHT[csr.space.name]
        self._layout(csr)
        self._kernels = csr.space.kernels("swell.formats", "block_sell", csr.dtype)

    def _layout(self, csr):
        xp, s, H = self.space.xp, self.block, self.height
        pattern = BlockPattern(csr, s)
        slices = -(-pattern.rows // H)
        lengths = xp.zeros(slices * H, np.int64)
        lengths[:pattern.rows] = xp.diff(pattern.indptr)
        ptr = self.space.empty(slices + 1, np.int64)
        self.space.prefix_sums(self.space.group_max(lengths, H) * H, ptr)
        count = int(ptr[-1])
        self.space.check_fits(count * s * s * self.dtype.itemsize, f"the matrix in slices of {H} rows of blocks of {s}",
                              "use format='bsr', which needs no padding, or format='sell'")
        index = index_type(slices * H * s, pattern.columns * s, count * s * s)
        self.ptr = ptr.astype(index)
        rows = rows_of(pattern.indptr, pattern.indices.size, xp)
        place = ptr[rows // H] + (xp.arange(rows.size) - pattern.indptr[rows]) * H + rows % H
        self.columns = xp.full(count, -1, index)
        self.columns[place] = pattern.indices
        block, row, column = pattern.place
        where = self._value(place[block], row, column)
        self.values = xp.zeros((count // H, s, H * s), self.dtype)
        self.values.reshape(-1)[where] = csr.data
        self.blocks = int(pattern.indices.size)
        self.stored = xp.empty(0, np.uint8)
        if self.blocks * s * s > self.nnz:
            stored = xp.zeros(self.values.size, bool)
            stored[where] = True
            self.stored = xp.packbits(stored)

    def _value(self, place, row, column):
        """Return the index into the flattened ``values`` of a block's entry. Takes integers or arrays.

        ``place``: the block's index in ``columns``; ``row``, ``column``: the place in the block."""
        s, H = self.block, self.height
        lane = place % H                         # slices begin at multiples of H
        return (place - lane).astype(np.int64) * (s * s) + column * (H * s) + lane * s + row

    def _entries(self):
        """Return three arrays, one element an entry, sorted by rows: index into flattened ``values``, row, column."""
        xp, s, H = self.space.xp, self.block, self.height
        place = xp.nonzero(self.columns >= 0)[0]
        inside = xp.arange(s)
        where = self._value(place[:, None, None], inside[:, None], inside)
        rows = (rows_of(self.ptr, self.columns.size, xp)[place] * H + place % H)[:, None, None] * s + inside[:, None]
        columns = self.columns[place].astype(np.int64)[:, None, None] * s + inside
        key = (rows * (self.shape[1] + s) + columns).reshape(-1)
        where = where.reshape(-1)
        if self.stored.size:
            stored = xp.unpackbits(self.stored)[:self.values.size].astype(bool)[where]
            key, where = key[stored], where[stored]
        order = xp.argsort(key)
        key = key[order]
        return where[order], key // (self.shape[1] + s), key % (self.shape[1] + s)

    def _arrays(self):
        return self.ptr, self.columns, self.values.reshape(-1)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(*self._arrays(), x, out, self.height, self.block, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(*self._arrays(), x, out, w, dots, self.height, self.block)
        self.space.collect(dots)

    def to_csr(self):
        where, rows, columns = self._entries()
        indptr = self.space.row_pointers(rows, self.shape[0])
        return CSRMatrix(self.space, indptr, columns, self.values.reshape(-1)[where], self.shape)

    def convert(self, csr):
        return BlockSELLMatrix(csr, replace(self.settings, block=self.block))

    def _find_positions(self, csr):
        return self._entries()[0].astype(self.ptr.dtype)

    def update(self, csr):
        self.values.reshape(-1)[self.positions(csr)] = csr.data
        self.discard_adjoint()

    @property
    def nbytes(self):
        beside = 0 if self._positions is None else self._positions.nbytes
        return self.ptr.nbytes + self.columns.nbytes + self.values.nbytes + self.stored.nbytes + beside

    @property
    def matrix_bytes(self):
        return self.ptr.nbytes + self.columns.nbytes + self.blocks * self.block**2 * self.dtype.itemsize

    @property
    def fill(self) -> float:
        """Fill ratio: values in the blocks, without padding, over entries of the matrix."""
        return self.blocks * self.block**2 / max(self.nnz, 1)

    @property
    def padding(self) -> float:
        """Stored values, padding included, over entries of the matrix."""
        return self.values.size / max(self.nnz, 1)

    def describe(self):
        return (f"block_sell, block {self.block}, height {self.height}, fill {self.fill:.2f}, "
                f"padding {self.padding:.2f}, {self.columns.dtype.itemsize * 8}-bit columns")
