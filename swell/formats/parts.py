"""Parts: a matrix cut into one part for each multiprocessor of a GPU, in the order in which a resident kernel reads it.

``krylov/resident_cg.py`` uses this format and explains the idea. The rows are cut into equal parts. A part's halo is
the set of outside rows that its rows are coupled to. The parts are consecutive rows if their halos are then small;
else an ordering chooses them (``orderings/bisection.py``). In a part the interior rows come first. The boundary rows
follow: those that other parts need, or that need rows of other parts. Both groups are sorted by descending length and
cut into slices of 32 rows, padded to the longest. Columns are local, in 16 bits: a part's own rows, then its halo.
A diagonal that is constant to rounding, as after Jacobi scaling, is not stored.

Layout, for W = 15 warps a part:

- ``rows[32 s + i]``: the row in lane i of slice s, −1 for none; part b has slices ``first[b]`` to ``first[b + 1]``.
  Slice j of a part belongs to warp j mod W. Vectors of the method lie in the order of ``rows``.
- ``data``: chunks of C slice columns, 32 C values and then 32 C local columns. The slices of a warp, one after the
  other, are one stream of slice columns, padded with zeros to whole chunks.
- ``ends[chunk]``: bit k is set if column k of the chunk is the last of its slice.
- ``streams[b W + w]``: first chunk, number of chunks, and the first chunk that may hold the boundary.
- ``table[b]``: number of slices, number of interior slices, first published row, first place in ``halos``, halo size.
- ``halos``: for each halo row of each part, its index among the published rows (all boundary slices of all parts).

About 10 bytes an entry in double, as in SELL. The GPU builds everything (``kernels/parts.cu``); the host only sums a
few numbers for each part.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swell.core.errors import DoesNotFit
from swell.core.settings import choose_by_none, positive
from swell.formats.matrix import Matrix

WARPS = 15              # warps of a part that compute, as in kernels/resident_cg.cu, which has one more warp
ONE_PART = 1200         # rows up to which one part is fastest: multiprocessors exchange nothing
ONE_CLUSTER = 60_000    # rows up to which one cluster of CLUSTER blocks has all parts
CLUSTER = 16            # most blocks of a cluster on any device
MAX_HALO = 0.5          # largest ratio of halo to rows of a part for parts of consecutive rows
REGISTERS = 160         # bytes of each of x and r that a thread holds
SHAPES = (8, 2), (4, 3), (4, 2)     # (columns of a chunk, chunks of a ring); the first pair that fits is taken
OWN = 4096              # bytes of shared memory that the kernel uses for other things
FACTS = 3 + 2 * WARPS   # numbers of a part that the host reads, as in kernels/parts.cu
EXACT = 4               # units of rounding within which a diagonal counts as constant


def most_rows(multiprocessors: int, dtype) -> int:
    """The number of rows for which two vectors, x and r, fit in the registers of this many multiprocessors."""
    return multiprocessors * WARPS * 32 * (REGISTERS // np.dtype(dtype).itemsize)


@dataclass(frozen=True)
class ResidentParts:
    """Parts of a matrix, for a kernel that stays resident on every multiprocessor.

    Attributes
    ----------
    count : int
        Most parts; None: a single part for up to ``ONE_PART`` rows, one cluster for up to ``ONE_CLUSTER`` rows, else
        one part for each multiprocessor.
    ordering : settings object or None
        An ordering with a field ``parts``, used if parts of consecutive rows have too large halos; None: parts are
        always consecutive rows.
    shared : int
        Bytes of shared memory for a part; None: as many as the device has.
    """

    count: int | None = None
    ordering: Any = None
    shared: int | None = None

    def __post_init__(self):
        choose_by_none(self, 0, "count", "shared")
        positive(self, "count")
        positive(self, "shared")

    def build(self, csr):
        """Cut a CSR matrix into parts, on its own device.

        Raises
        ------
        DoesNotFit
            If a part's vectors and rings do not fit on a multiprocessor.
        """
        return ResidentPartsMatrix(csr, self)


class ResidentPartsMatrix(Matrix):
    """A matrix in parts. Products use the CSR matrix, which is kept.

    Attributes
    ----------
    diagonal : double array of the space, shape (1,)
        The constant diagonal if it is not stored, else 0.
    chunk, ring, kept : int
        Columns of a chunk; chunks that a warp has in flight; chunks of a warp that stay in shared memory.
    slots : int
        Room for slices of a warp, in registers.
    published : int
        Number of rows in all boundary slices.
    shared_bytes : int
        Bytes of shared memory of a part.
    one_cluster : bool
        True if there is one part, or one cluster has all parts: values then travel through shared memory only.
    near : int
        If ``one_cluster``: room for boundary rows of a part in its shared memory; else 0.
    revision : int
        Counts changes of the layout; new values change it if a constant diagonal appears or vanishes.
    """

    name = "parts"

    def __init__(self, csr, settings: ResidentParts):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings, self.csr, self.revision = settings, csr, 0
        self._kernels = csr.space.kernels("swell.formats", "parts", csr.dtype)
        self.diagonal = csr.space.empty(1, np.float64)
        self._take_diagonal()
        self._layout()

    # -- the layout ----------------------------------------------------------------------------------------------

    def _layout(self):
        """Cut the rows into the fewest parts for which the vectors fit on a multiprocessor; set all arrays of self.

        This takes one or two host reads and one transfer; an ordering adds its own."""
        n = self.shape[0]
        self.apart = bool(self._constant)                        # is the diagonal stored apart?
        counts = usual_counts(n, self.space)
        for count in [self.settings.count] if self.settings.count else counts:
            try:
                cut = self._cut(count)
                self._fit(cut)
                break
            except DoesNotFit:
                if count in (self.settings.count, counts[-1]):
                    raise
        self.halo = cut.halo
        self._place(cut)

    def _cut(self, most):
        """Cut the rows into at most ``most`` parts; return a `_Cut`. Sets ``count``, ``one_cluster`` and ``ordered``.

        Parts are consecutive rows, unless their halos are too large; then ``settings.ordering`` chooses them."""
        n, ordering, fewest = self.shape[0], self.settings.ordering, max(1, -(-self.shape[0] // (32 * WARPS)))
        self.count = min(most, 1 << fewest.bit_length() - 1 if most == self.space.cluster_blocks else fewest)
        self.one_cluster = self.count in (1, 2, 4, 8, CLUSTER) and self.count <= self.space.cluster_blocks
        if -(-n // self.count) > 32 * WARPS * self._most_slots:
            raise self._too_large(-(-n // self.count), 0)
        self.ordered, unordered = "consecutive rows", self.csr.indices[:0]
        cut = _Cut(self, unordered, n if ordering is None else int(MAX_HALO * n))
        if ordering is None or (cut.boundary_rows <= MAX_HALO * n and cut.halo.max() <= MAX_HALO * n / self.count):
            return cut
        self.ordered = type(ordering).__name__.lower()
        return _Cut(self, replace(ordering, parts=self.count).order(self.csr), n)

    def _fit(self, cut):
        """Set the sizes of chunks, of the ring of chunks and of a warp's share of registers for ``cut``, a `_Cut`.

        Raises DoesNotFit if no choice fits in shared memory and registers."""
        size, shared = self.dtype.itemsize, self.settings.shared or self.space.shared_memory
        slices = int(cut.slices.max())
        needed = -(-slices // WARPS)
        vectors = size * int((64 * cut.slices + cut.halo).max())                     # p with its halo, and q
        self.near = 32 * int((cut.slices - cut.interior).max()) if self.one_cluster else 0
        if self.one_cluster:
            vectors += 256 + 2 * size * self.near + -(-int(cut.halo.max()) // 4) * 16
        for self.chunk, self.ring in SHAPES:
            self._longest = -(-int(cut.columns.max()) // self.chunk)
            ends, each = -(-WARPS * self._longest // 16) * 16, WARPS * self.chunk * (32 * size + 64)
            room = (shared - OWN - vectors - ends) // each
            if room >= self.ring and needed <= self._most_slots:
                self.kept = min(room - self.ring, self._longest)
                self.shared_bytes = vectors + ends + (self.kept + self.ring) * each
                self.slots = max(4, min(-(-needed // 4) * 4, self._most_slots))
                return
        raise self._too_large(32 * slices, int(cut.halo.max()))

    def _place(self, cut):
        """Compute all offsets for ``cut``, a `_Cut`; allocate the arrays of self, write the layout and the entries."""
        space, xp, csr, C = self.space, self.space.xp, self.csr, self.chunk
        chunks, outer = (-(-cut.columns // C)).reshape(-1), cut.slices - cut.interior
        bound = np.where(cut.boundary.reshape(-1) < 0, chunks, cut.boundary.reshape(-1) // C)
        table = np.stack([cut.slices, cut.interior, 32 * _before(outer), _before(cut.halo), cut.halo], 1)
        first, total = np.append(0, np.cumsum(cut.slices)), int(chunks.sum())
        streams = np.stack([_before(chunks), chunks, bound, 0 * bound], 1)
        numbers = [table, first, streams]
        sent = space.from_host(np.concatenate([a.reshape(-1) for a in numbers]).astype(np.int32))
        cuts = np.cumsum([a.size for a in numbers[:-1]])
        self.table, self.first, self.streams = (part.reshape(a.shape) for part, a in zip(
            (sent[:cuts[0]], sent[cuts[0]:cuts[1]], sent[cuts[1]:]), numbers))
        self.published = 32 * int(outer.sum())
        self.halos, self._slot = space.empty(int(cut.halo.sum()), np.int32), cut.slot
        self.rows, self._start = xp.full(32 * int(first[-1]), -1, np.int32), space.empty(int(first[-1]), np.int32)
        self.ends = xp.zeros(total, np.uint8)
        self.data = xp.zeros(total * C * (32 * self.dtype.itemsize + 64), np.uint8)
        self._kernels.place(cut.order, cut.inside, cut.bits, cut.starts, self.table, self.first, self.streams,
                            self.count, cut.stride, C, self._slot, self.rows, self._start, self.ends, self.halos)
        self._kernels.write_columns(csr.indptr, csr.indices, self._slot, self._start, cut.part, self.table, self.first,
                                    cut.bits, cut.starts, self.count, cut.stride, C, self.apart, self.dtype.itemsize,
                                    self.data.view(np.uint16))
        self._write()

    def _write(self):
        """Write the matrix values into ``data``."""
        csr = self.csr
        self._kernels.write_values(csr.indptr, csr.indices, csr.data, self._slot, self._start, self.chunk, self.apart,
                                   self.data.view(self.dtype))
        self.space.synchronize()                 # the reading kernel may start before the preceding kernel has ended

    def _take_diagonal(self):
        """Set ``diagonal`` to the matrix's diagonal if that is real, positive and constant to rounding; else to 0."""
        self._constant = self.csr.facts(search=False).constant_diagonal(EXACT * np.finfo(self.dtype).eps)
        self.space.from_host(np.array([self._constant]), out=self.diagonal)

    @property
    def _most_slots(self):
        """The largest number of slices of a warp whose x and r fit in its registers."""
        return REGISTERS // self.dtype.itemsize

    def _too_large(self, rows, halo):
        return DoesNotFit(
            f"resident_cg keeps its vectors on the multiprocessors, and {self.shape[0]} rows of {self.dtype.name} do "
            f"not fit: a part of {self.count} has up to {rows} rows and {halo} neighbours outside; the limit is "
            f"{32 * WARPS * self._most_slots} rows and, for their vectors, halo and buffers, "
            f"{self.settings.shared or self.space.shared_memory} bytes of shared memory: use method='cg'")

    # -- as a matrix ---------------------------------------------------------------------------------------------

    def update(self, csr):
        self.csr = csr
        self._take_diagonal()
        if self.apart != bool(self._constant):
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
        return ResidentPartsMatrix(csr, self.settings)

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
        """Bytes of the matrix that an iteration reads: all chunks but the ones kept in shared memory."""
        chunks = self.space.to_host(self.streams[:, 1])
        share = np.maximum(chunks - self.kept, 0).sum() / max(chunks.sum(), 1)
        return int(self.data.nbytes * share)

    @property
    def padding(self) -> float:
        """Stored entries, padding included, over the matrix entries that are stored."""
        stored = self.data.size // (self.dtype.itemsize + 2)
        return stored / max(self.nnz - (self.shape[0] if self.apart else 0), 1)

    def describe(self):
        diagonal = ", without the constant diagonal" if self.apart else ""
        return (f"parts by {self.ordered}, {self.count} of {-(-self.shape[0] // self.count)} rows and a halo of "
                f"{self.halo.mean():.0f} to {self.halo.max()}, padding {self.padding:.2f}{diagonal}, {self.kept} of "
                f"{self._longest} chunks kept")



class _Cut:
    """Rows assigned to parts, and in each part to slices, before the offsets among all parts are known.

    Attributes
    ----------
    order : int array of the space
        The rows sorted by part; empty if the parts are consecutive rows.
    part, slot : int arrays of the space, shape (n,)
        The part of each row, and its place within the part.
    inside, bits, starts : arrays of the space
        See ``kernels/parts.cu``; each has room for ``stride`` slices of each part.
    slices, interior, halo : int arrays, shape (parts,)
        Slices, interior slices and halo rows of each part.
    columns, boundary : int arrays, shape (parts, WARPS)
        Slice columns of each warp's stream, and how many precede its first boundary slice, −1 if it has none.
    boundary_rows : int
        Boundary rows of all parts; if they exceed ``most``, halos were not counted.
    """

    def __init__(self, M, order, most):
        space, csr, n, parts = M.space, M.csr, M.shape[0], M.count
        xp, kernels, self.order = space.xp, M._kernels, order
        self.stride = -(-n // (32 * parts)) + 1
        self.part, self.slot = space.empty(n, np.int32), space.empty(n, np.int32)
        self.inside, self.starts = (space.empty(k * parts * self.stride, np.int32) for k in (2, parts))
        boundary, self.bits = xp.zeros(n, np.uint8), xp.zeros(self.starts.size, np.uint32)
        facts = xp.zeros(FACTS * parts + 1, np.int32)
        pattern = csr.indptr, csr.indices
        kernels.number(order, self.part, parts)
        kernels.mark_boundary(*pattern, self.part, boundary)
        kernels.sort_rows(csr.indptr, order, boundary, M.apart, parts, self.stride, space.empty(n, np.uint16),
                          self.slot, self.inside, facts)
        kernels.mark_halos(*pattern, self.part, self.slot, facts, parts, self.stride, most, self.bits)
        kernels.count_halos(self.bits, parts, self.stride, self.starts, facts)
        facts = space.to_host(facts)  # sync
        self.boundary_rows, facts = int(facts[-1]), facts[:-1].reshape(parts, FACTS)
        self.slices, self.interior, self.halo = facts[:, :3].T
        self.columns, self.boundary = facts[:, 3:3 + WARPS], facts[:, 3 + WARPS:]


def usual_counts(n, space) -> list[int]:
    """Return numbers of parts that suit n rows, the fastest first. ``space``: of the GPU."""
    cluster = space.cluster_blocks
    return [count for count, most in ((1, ONE_PART), (cluster, ONE_CLUSTER * cluster // CLUSTER),
                                      (space.multiprocessors, n)) if n <= most]


def _before(counts):
    """Return the exclusive prefix sums of ``counts``, a new array."""
    return np.cumsum(counts) - counts
