"""Parts: a matrix cut into one part a multiprocessor, in the order in which a kernel that never leaves it reads it.

The storage of ``krylov/resident_cg.py``, where the idea is explained. Rows are cut into equal parts: consecutive ones
where a part then has few neighbours outside (its halo), else those of an ordering (``orderings/bisection.py``). Of a
part the interior rows come first, then the boundary, whose rows other parts need or which need theirs; each of the two
by descending length, in slices of 32 rows that are as wide as their longest. A part's rows have local columns of 16
bits: first its own rows, then its halo. A diagonal that is constant to rounding, as after Jacobi scaling, is left out.

Layout, for W = 15 warps a part:

- ``rows[32 s + i]``: the row in lane i of slice s, −1 where there is none; part b has slices ``first[b]`` to
  ``first[b + 1]``. Slice j of a part belongs to warp j mod W. Vectors of the method lie in the order of ``rows``.
- ``data``: chunks of C slice columns, 32 C values and then 32 C local columns. The slices of a warp, one after the
  other, are one stream of slice columns, filled up to whole chunks with zeros.
- ``ends[chunk]``: bit k is set where column k of a chunk is the last of its slice.
- ``streams[b W + w]``: first chunk, number of chunks, and the first chunk that may hold the boundary.
- ``table[b]``: slices, slices of the interior, place of the boundary among all published rows, place in ``halos``, size
  of the halo.
- ``halos``: for each halo row of each part its place among the published ones (all boundary slices of all parts).

About 10 bytes an entry in double, as in SELL. Everything is made on the device; what is a number a slice, on the host.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import DoesNotFit
from swell.core.settings import positive
from swell.formats.matrix import Matrix

WARPS = 15              # that compute; as in kernels/resident_cg.cu, which has one more
FEW = 0.5               # halo over rows of a part up to which consecutive rows are parts
REGISTERS = 160         # bytes of each of x and r that a thread holds
SHAPES = (8, 2), (4, 3), (4, 2)     # columns of a chunk, and chunks of a ring: the first that fit are taken
OWN = 4096              # bytes of shared memory that the kernel has besides
EXACT = 4               # a diagonal is constant if it is so to this many units of rounding


def most_rows(multiprocessors: int, dtype) -> int:
    """Rows whose x and r fit in the registers of so many multiprocessors."""
    return multiprocessors * WARPS * 32 * (REGISTERS // np.dtype(dtype).itemsize)


@dataclass(frozen=True)
class Parts:
    """Parts for a kernel that stays on every multiprocessor.

    Attributes
    ----------
    count : int
        Parts at most; 0: one for each multiprocessor.
    ordering : settings object or None
        An ordering by ``parts``, for where consecutive rows have too many neighbours; None: consecutive rows anyway.
    shared : int
        Bytes of shared memory of a part; 0: what the device has.
    """

    count: int = 0
    ordering: object = None
    shared: int = 0

    def __post_init__(self):
        positive(self, "count", 0)
        positive(self, "shared", 0)

    def build(self, csr):
        """A CSR matrix in parts.

        Raises
        ------
        DoesNotFit
            If the vectors of a part and the rings do not fit on a multiprocessor.
        """
        return PartsMatrix(csr, self)


class PartsMatrix(Matrix):
    """A matrix in parts; see the top of this file for the arrays. Products use the CSR matrix, which is kept.

    Attributes
    ----------
    diagonal : double array of the space, shape (1,)
        The constant diagonal that is not stored, or 0.
    chunk, ring, kept : int
        Columns of a chunk; chunks of a warp under way; chunks of a warp that stay in shared memory.
    slots : int
        Slices of a warp, at most.
    published : int
        Rows of all boundary slices.
    shared_bytes : int
        Shared memory of a part.
    revision : int
        Changes with the layout: where a constant diagonal appears or vanishes with new values.
    """

    name = "parts"

    def __init__(self, csr, settings: Parts):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings, self.csr, self.revision = settings, csr, 0
        self.diagonal = csr.space.xp.zeros(1, np.float64)
        self._constant = self._constant_diagonal(csr)
        self.diagonal[:] = self._constant
        self._layout()

    # -- the layout ----------------------------------------------------------------------------------------------

    def _layout(self):
        space, n, size = self.space, self.shape[0], self.dtype.itemsize
        xp = space.xp
        self.count = min(self.settings.count or space.multiprocessors, max(1, -(-n // (32 * WARPS))))
        self.apart = bool(self._constant)                        # is the diagonal stored apart?
        row, column = self.csr.rows(), self.csr.indices
        lengths = xp.diff(self.csr.indptr).astype(np.int64) - self.apart           # then every row has a diagonal entry
        part, order = self._cut(row, column)
        inner, outer = part[row], part[column]
        out = xp.flatnonzero(inner != outer)
        boundary = xp.zeros(n, bool)
        boundary[row[out]] = True
        boundary[column[out]] = True
        group = 2 * part + boundary

        longest = int(space.max_on_host(lengths)) if n else 0
        key = group * (longest + 1) + longest - lengths
        order = xp.argsort(key, kind="stable") if order is None else order[xp.argsort(key[order], kind="stable")]
        sizes = space.to_host(space.count(group, 2 * self.count))
        before = np.cumsum(sizes) - sizes
        group = group[order]
        offset = xp.arange(n) - xp.asarray(before)[group]
        slices = -(-sizes // 32)                                 # of each group
        start = np.append(0, np.cumsum(slices))                  # before slices change places within their group
        tops = np.repeat(before - 32 * start[:-1], slices) + 32 * np.arange(start[-1])
        widths = np.maximum(space.to_host(lengths[order[xp.asarray(tops)]]), 1)
        place = self._snake(slices, start)
        slot = self._slot = xp.empty(n, np.int64)
        slot[order] = 32 * xp.asarray(place)[xp.asarray(start[:-1])[group] + offset // 32] + offset % 32
        self.rows = xp.full(32 * int(start[-1]), -1, np.int32)
        self.rows[slot] = xp.arange(n, dtype=np.int32)
        moved = np.empty_like(widths)
        moved[place] = widths

        total, interior = slices.reshape(-1, 2).sum(1), slices[::2]
        first = np.append(0, np.cumsum(total))
        publish = np.cumsum(slices[1::2]) - slices[1::2]
        self.first, self.published = xp.asarray(first.astype(np.int32)), 32 * int(slices[1::2].sum())
        source = slot - 32 * xp.asarray(first[:-1] + interior - publish)[part]       # among the published rows
        key = inner[out] * max(self.published, 1) + source[column[out]]
        halo = _unique(key, xp)
        bounds = space.to_host(xp.searchsorted(halo, xp.arange(self.count + 1) * max(self.published, 1)))
        self.halo = np.diff(bounds)
        self.halos = (halo % max(self.published, 1)).astype(np.int32)
        local = slot[column] - 32 * xp.asarray(first[:-1])[outer]
        local[out] = (xp.searchsorted(halo, key) + xp.asarray(32 * total - bounds[:-1])[inner[out]])
        self.table = xp.asarray(np.stack([total, interior, 32 * publish, bounds[:-1], self.halo], 1).astype(np.int32))

        self.slots = self._fit(total, first, interior, moved)
        units = self.chunk * (32 + 64 // size)                   # of a chunk, in values
        self.data = xp.zeros(self._chunks * units * size, np.uint8)
        self._write(local)

    def _cut(self, row, column):
        """(part of every row, order): consecutive rows where few of their neighbours are in other parts."""
        xp, n, count = self.space.xp, self.shape[0], self.count
        part = xp.arange(n) * count // max(n, 1)
        out = xp.flatnonzero(part[row] != part[column])
        pairs = _unique(part[row[out]] * max(n, 1) + column[out], xp)
        halo = self.space.count(pairs // max(n, 1), count)
        self.ordered = "consecutive rows"
        if self.settings.ordering is None or self.space.max_on_host(halo) <= FEW * (n / count):  # sync
            return part, None
        self.ordered = type(self.settings.ordering).__name__.lower()
        order = replace(self.settings.ordering, parts=count).order(self.csr)
        place = xp.empty(n, np.int64)
        place[order] = xp.arange(n)
        return place * count // n, order

    @staticmethod
    def _snake(slices, start):
        """Where each slice goes among those of its part, so that every warp has as wide ones as the others: rows of W
        places, filled from the left and from the right in turn, within the interior and within the boundary."""
        count = np.repeat(slices, slices)
        j = np.arange(start[-1]) - np.repeat(start[:-1], slices)
        low = np.repeat(np.stack([0 * slices[::2], slices[::2]], 1).reshape(-1), slices)
        at = low + j                                             # within the part
        turn = at // WARPS
        left, right = np.maximum(low, turn * WARPS), np.minimum(low + count, (turn + 1) * WARPS)
        at = np.where(turn % 2, left + right - 1 - at, at)
        return np.repeat(np.repeat(start[:-1:2], 2), slices) + at

    def _fit(self, total, first, interior, widths):
        """Choose the chunks, lay out the streams, and say how many slices of registers a warp needs."""
        size = self.dtype.itemsize
        shared = self.settings.shared or self.space.shared_memory
        needed = int(-(-total.max() // WARPS)) if total.size else 0
        most = REGISTERS // size
        for self.chunk, self.ring in SHAPES:
            self._streams(total, first, interior, widths)
            vectors = size * int((64 * total + self.halo).max())                     # p with its halo, and q
            ends = -(-WARPS * self._longest // 16) * 16
            room = (shared - OWN - vectors - ends) // (WARPS * self.chunk * (32 * size + 64))
            if room >= self.ring and needed <= most:
                self.kept = int(min(room - self.ring, self._longest))
                self.shared_bytes = vectors + ends + WARPS * (self.kept + self.ring) * self.chunk * (32 * size + 64)
                return min(-(-needed // 4) * 4, most) if needed else 4
        raise DoesNotFit(
            f"resident_cg keeps its vectors on the multiprocessors, and {self.shape[0]} rows of {self.dtype.name} do "
            f"not fit: a part of {self.count} has up to {32 * int(total.max())} rows and {int(self.halo.max())} "
            f"neighbours outside; the limit is {32 * WARPS * most} rows and, with all that goes with them, {shared} "
            "bytes of shared memory: use method='cg'")

    def _streams(self, total, first, interior, widths):
        """The chunks of every warp of every part, and where the columns of each slice begin among all."""
        xp, C = self.space.xp, self.chunk
        part = np.repeat(np.arange(self.count), total)
        j = np.arange(first[-1]) - first[part]
        stream = part * WARPS + j % WARPS
        order = np.lexsort((j, stream))
        columns = np.bincount(stream, widths, minlength=self.count * WARPS).astype(np.int64)
        chunks = -(-columns // C)
        chunk = np.cumsum(chunks) - chunks
        inside = np.empty_like(widths)
        inside[order] = np.cumsum(widths[order]) - widths[order]
        inside -= (np.cumsum(columns) - columns)[stream]
        start = chunk[stream] * C + inside
        at = chunks.copy()
        bound = j >= interior[part]
        np.minimum.at(at, stream[bound], inside[bound] // C)
        self._chunks, self._longest = int(chunks.sum()), int(chunks.max(initial=0))
        ends = np.zeros(self._chunks * C, np.uint8)
        ends[start + widths - 1] = 1
        self.ends = xp.asarray((ends.reshape(-1, C) << np.arange(C, dtype=np.uint8)).sum(1).astype(np.uint8))
        self.streams = xp.asarray(np.stack([chunk, chunks, at, 0 * at], 1).astype(np.int32))
        self._start = xp.asarray(start)

    # -- the entries ---------------------------------------------------------------------------------------------

    def _constant_diagonal(self, csr):
        """The diagonal if it is constant, real and positive, to rounding; else 0."""
        return csr.facts(search=False).constant_diagonal(EXACT * np.finfo(self.dtype).eps)

    def _write(self, local=None):
        """Write the values; and the local column of each entry of the CSR matrix, where they are given."""
        csr, space = self.csr, self.space
        local = space.empty(0, np.int64) if local is None else local
        space.kernels("swell.formats", "parts", self.dtype).write_entries(
            csr.indptr, csr.indices, csr.data, self._slot, self._start, local, self.chunk, self.apart,
            self.data.view(self.dtype), self.data.view(np.uint16))
        space.synchronize()

    # -- as a matrix ---------------------------------------------------------------------------------------------

    def update(self, csr):
        self.csr = csr
        before, self._constant = bool(self._constant), self._constant_diagonal(csr)
        self.diagonal[:] = self._constant
        if before != bool(self._constant):
            self._layout()
            self.revision += 1
        else:
            self._write()
        self.discard_adjoint()

    def apply(self, x, out, alpha=1, beta=0):
        self.csr.apply(x, out, alpha, beta)

    def to_csr(self):
        return self.csr

    def convert(self, csr):
        return PartsMatrix(csr, self.settings)

    @property
    def nbytes(self):
        arrays = (self.data, self.ends, self.streams, self.table, self.halos, self.rows, self.first, self._slot,
                  self._start)
        return sum(a.nbytes for a in arrays) + self.csr.nbytes

    @property
    def matrix_bytes(self):
        return self.data.nbytes + self.ends.nbytes

    @property
    def streamed_bytes(self):
        """What an iteration reads: all but the chunks that stay in shared memory."""
        chunks = self.space.to_host(self.streams[:, 1])
        share = np.maximum(chunks - self.kept, 0).sum() / max(chunks.sum(), 1)
        return int(self.data.nbytes * share)

    @property
    def padding(self) -> float:
        """Stored entries over entries of the matrix that are stored."""
        stored = self.data.size // (self.dtype.itemsize + 2)
        return stored / max(self.nnz - (self.shape[0] if self.apart else 0), 1)

    def describe(self):
        diagonal = ", without the constant diagonal" if self.apart else ""
        return (f"parts by {self.ordered}, {self.count} of {-(-self.shape[0] // self.count)} rows and a halo of "
                f"{self.halo.mean():.0f} to {self.halo.max()}, padding {self.padding:.2f}{diagonal}, {self.kept} of "
                f"{self._longest} chunks kept")


def _unique(keys, xp):
    """The different keys, ascending."""
    return xp.unique(keys) if keys.size else keys
