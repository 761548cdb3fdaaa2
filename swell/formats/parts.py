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

About 10 bytes an entry in double, as in SELL. Everything is made on a GPU (``kernels/parts.cu``); the host adds up what
are a few numbers a part.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import DoesNotFit
from swell.core.settings import positive
from swell.formats.matrix import Matrix

WARPS = 15              # that compute; as in kernels/resident_cg.cu, which has one more
ALONE = 1200            # rows up to which one part is quickest: nothing travels between multiprocessors
TOGETHER = 60_000       # rows up to which one cluster has all parts
CLUSTER = 16            # blocks of a cluster at most
FEW = 0.5               # halo over rows of a part up to which consecutive rows are parts
REGISTERS = 160         # bytes of each of x and r that a thread holds
SHAPES = (8, 2), (4, 3), (4, 2)     # columns of a chunk, and chunks of a ring: the first that fit are taken
OWN = 4096              # bytes of shared memory that the kernel has besides
FACTS = 3 + 2 * WARPS   # numbers of a part that the host reads: as in kernels/parts.cu
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
        Parts at most; 0: one for each multiprocessor, a single one for up to ``ALONE`` rows, and as many as a cluster
        has for up to ``TOGETHER``.
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
    together : bool
        True if one cluster has all parts, or there is one part: values go from shared memory to shared memory.
    near : int
        Boundary rows of a part, at most, for which it has room in shared memory then.
    revision : int
        Changes with the layout: where a constant diagonal appears or vanishes with new values.
    """

    name = "parts"

    def __init__(self, csr, settings: Parts):
        super().__init__(csr.shape, csr.dtype, csr.space, csr.nnz)
        self.settings, self.csr, self.revision = settings, csr, 0
        self._kernels = csr.space.kernels("swell.formats", "parts", csr.dtype)
        self.diagonal = csr.space.empty(1, np.float64)
        self._take_diagonal()
        self._layout()

    # -- the layout ----------------------------------------------------------------------------------------------

    def _layout(self):
        """Cut the rows into parts, as few as the vectors fit on, and place everything: one or two host reads and one
        transfer, an ordering's apart."""
        n, every = self.shape[0], self.space.multiprocessors
        self.apart = bool(self._constant)                        # is the diagonal stored apart?
        counts = usual_counts(n, every)
        for count in [self.settings.count] if self.settings.count else counts:
            try:
                cut = self._cut(count)
                self._fit(cut)
                break
            except DoesNotFit:
                if count in (self.settings.count, every):
                    raise
        self.halo = cut.halo
        self._place(cut)

    def _cut(self, most):
        """Cut the rows into ``most`` parts at most: consecutive rows, unless too many neighbours lie elsewhere."""
        n, ordering, fewest = self.shape[0], self.settings.ordering, max(1, -(-self.shape[0] // (32 * WARPS)))
        self.count = min(most, 1 << fewest.bit_length() - 1 if most == CLUSTER else fewest)
        self.together = self.count in (1, 2, 4, 8, CLUSTER)
        if -(-n // self.count) > 32 * WARPS * self._most_slots:
            raise self._too_large(-(-n // self.count), 0)
        self.ordered, unordered = "consecutive rows", self.csr.indices[:0]
        cut = _Cut(self, unordered, n if ordering is None else int(FEW * n))
        if ordering is None or (cut.boundary_rows <= FEW * n and cut.halo.max() <= FEW * n / self.count):
            return cut
        self.ordered = type(ordering).__name__.lower()
        return _Cut(self, replace(ordering, parts=self.count).order(self.csr), n)

    def _fit(self, cut):
        """Choose the chunks, and say how many slices of registers a warp needs."""
        size, shared = self.dtype.itemsize, self.settings.shared or self.space.shared_memory
        slices = int(cut.slices.max())
        needed = -(-slices // WARPS)
        vectors = size * int((64 * cut.slices + cut.halo).max())                     # p with its halo, and q
        self.near = 32 * int((cut.slices - cut.interior).max()) if self.together else 0
        if self.together:
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
        """Give everything its place among all parts, and write the entries."""
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
        """Write the values."""
        csr = self.csr
        self._kernels.write_values(csr.indptr, csr.indices, csr.data, self._slot, self._start, self.chunk, self.apart,
                                   self.data.view(self.dtype))
        self.space.synchronize()                 # the kernel that reads them may begin while the one before it drains

    def _take_diagonal(self):
        """The diagonal, if it is constant, real and positive, to rounding; else 0."""
        self._constant = self.csr.facts(search=False).constant_diagonal(EXACT * np.finfo(self.dtype).eps)
        self.space.from_host(np.array([self._constant]), out=self.diagonal)

    @property
    def _most_slots(self):
        """Slices of a warp whose x and r fit in its registers."""
        return REGISTERS // self.dtype.itemsize

    def _too_large(self, rows, halo):
        return DoesNotFit(
            f"resident_cg keeps its vectors on the multiprocessors, and {self.shape[0]} rows of {self.dtype.name} do "
            f"not fit: a part of {self.count} has up to {rows} rows and {halo} neighbours outside; the limit is "
            f"{32 * WARPS * self._most_slots} rows and, with all that goes with them, "
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



class _Cut:
    """Rows dealt out to parts, and each part's to its slices, before anything has its place among all.

    Attributes
    ----------
    order : int array of the space
        Rows by part; empty where they are consecutive.
    part, slot : int arrays of the space, shape (n,)
        The part of each row, and its place within that.
    inside, bits, starts : arrays of the space
        As in ``kernels/parts.cu``, with room for ``stride`` slices of each part.
    slices, interior, halo : int arrays, one entry a part
    columns, boundary : int arrays, shape (parts, WARPS)
        Slice columns of each warp's stream, and how many come before its first boundary slice, -1 if it has none.
    boundary_rows : int
        More than ``most``: then halos were not counted.
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


def usual_counts(n, every) -> list[int]:
    """How many parts suit n rows, the quickest first; ``every``: one for each multiprocessor."""
    return [count for count, most in ((1, ALONE), (CLUSTER, TOGETHER), (every, n)) if n <= most]


def _before(counts):
    """The sum of the counts before each."""
    return np.cumsum(counts) - counts
