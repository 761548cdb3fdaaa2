"""Blockwise triangular solves, for factors in BSR: equations 5, 10 and 11, algorithms 6 and 7 of "A Parallel
Preconditioned GMRES for Block-Sparse Matrices on GPUs".

T = (I + N) D with D the diagonal blocks and N = (T − D) D⁻¹, as in triangular.py. The solve is w = b − N w, x = D⁻¹ w,
so one block row waits for no multiplication by another's diagonal block. D is stored inverted; a unit D is not stored.

- ``rows[p]``: the block of the vectors that belongs to the p-th visited block row; upper triangles start at the last;
- ``ptr``, ``columns``, ``blocks``: N, its block rows in the order of visits, its columns as blocks of the vectors. The
  blocks are column-major: so the lanes of a GPU, and the sums of four rows on a CPU, read adjacent numbers;
- ``inverse[p]``: D⁻¹ of that block row, column-major;
- w has the length of all blocks; the vectors are shorter where the last block is padded.

The exact solve on a CPU visits one block row after the other. A GPU solves by levels, with one launch for each wide
level and one block of threads for a run of narrow ones, or without synchronisation (level_schedule.py). A warp has one
block row. Sweeps: w ← b − N w, the paper's (10) and (11), (10) without the inverse inside its sum. They start from
w = b and use two buffers; so a fixed count is a fixed linear map, unlike the paper's update in place.

A solve, or a sweep but the first, reads 8 + 4/s² bytes an entry and 3 vectors; 8 s a row more with the diagonal.
"""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from swell.core.errors import FactorisationError
from swell.formats.bsr import UNROLLED, BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type, rows_of
from swell.preconditioners.level_schedule import FEW, Schedule
from swell.preconditioners.triangular import Gathering, random_vector

NARROW = 64             # block rows of a level, at most, that one block of threads (32 warps) solves


class BlockFactor(BSRMatrix):
    """A factor of row-major blocks, with the inverses of its diagonal blocks.

    Parameters
    ----------
    space, indptr, indices, data
        See BSRMatrix.
    inverse : device array, shape (block rows, s, s)
    n : int
        Length of the vectors; their last block may be shorter than s.
    """

    def __init__(self, space, indptr, indices, data, inverse, n):
        size = (indptr.size - 1) * data.shape[1]
        super().__init__(space, indptr, indices, data, (size, size))
        self.inverse, self.n = inverse, n

    @classmethod
    def of(cls, T, unit=False):
        """Return the BSRMatrix T as a BlockFactor: T if it is one, else a new one that shares T's arrays. With ``unit``
        it has no inverses of diagonal blocks.

        Raises
        ------
        FactorisationError
            If a diagonal block is singular.
        """
        if isinstance(T, cls):
            return T
        xp = T.space.xp
        diagonal = T.data[:0] if unit else T.data[T.indices == rows_of(T.indptr, T.indices.size, xp)]
        first, singular = T.space.find_true(xp.linalg.slogdet(diagonal)[0] == 0)  # sync
        if singular:
            raise FactorisationError(f"the diagonal block {first} of the triangular factor is "
                                     "singular: the factorisation broke down; choose another preconditioner")
        return cls(T.space, T.indptr, T.indices, T.data, xp.linalg.inv(diagonal), T.shape[0])

    def adjoint(self):
        """Return Tᴴ, a new BlockFactor at every call."""
        T = super().adjoint()
        self.discard_adjoint()
        return BlockFactor(self.space, T.indptr, T.indices, T.data, self.inverse.transpose(0, 2, 1).conj(), self.n)


class BlockTriangular(Gathering):
    """x = T⁻¹ b for one triangle of a BSRMatrix.

    Parameters
    ----------
    T : BSRMatrix
        Square, every diagonal block stored unless ``unit``.
    lower, unit : bool
    order : int array of the space, or None
        Block row i of T belongs to block ``order[i]`` of the vectors.
    settings : TriangularSolve
    """

    scratch = ("w",)

    def __init__(self, T, lower, unit, order, settings):
        T = BlockFactor.of(T, unit)
        super().__init__(T, lower, unit, order, settings)
        self.shape, self.block = (T.n, T.n), T.block
        xp, s, count = self.space.xp, T.block, T.indptr.size - 1
        self._kernels = T.space.kernels("swell.preconditioners", "block_triangular", T.dtype)
        self._size = (0,) * (s if s <= UNROLLED else 0) if T.space.name == "cpu" else s
        pattern = CSRMatrix(T.space, T.indptr, T.indices, xp.empty(T.indices.size, np.float32), (count, count))
        owner = pattern.rows()
        self._visited = self._sequence(pattern)
        place = xp.empty(count, np.int64)
        place[self._visited] = xp.arange(count)
        strict = xp.flatnonzero(T.indices < owner if lower else T.indices > owner)
        self._strict = strict[xp.argsort(place[owner[strict]], kind="stable")]
        index = index_type(count * s, count * s, self._strict.size)
        places = xp.arange(count, dtype=index) if order is None else order.astype(index)
        self._places, self.rows = places, places[self._visited]
        self.ptr = self.space.row_pointers(place[owner[self._strict]], count, index)
        self.columns = places[T.indices[self._strict]]
        stored = self.stored(T.dtype)
        self.blocks = xp.empty((self._strict.size, s, s), stored)
        self.inverse = xp.empty((0 if unit else count, s, s), stored)
        self.w = xp.zeros((self._buffers(), count * s), T.dtype)
        self._nothing = xp.empty(0, T.dtype)
        self.update(T)

    def _sequence(self, pattern):
        """Return the block rows in the order of visits, an int array. ``pattern`` is a CSRMatrix with one entry for
        each block."""
        forwards = self.space.xp.arange(pattern.shape[0])
        return forwards if self.lower else forwards[::-1].copy()

    @abstractmethod
    def _buffers(self) -> int:
        """Return the number of work vectors ``w`` that the solve needs."""

    def update(self, T):
        super().update(BlockFactor.of(T, self.unit))

    def adjoint_of(self, T):
        return T.adjoint()

    def load(self, T):
        strict = T.data[self._strict]
        if not self.unit:
            strict = self.space.xp.matmul(strict, T.inverse[T.indices[self._strict]])
            self.inverse[...] = T.inverse[self._visited].transpose(0, 2, 1)
        self.blocks[...] = strict.transpose(0, 2, 1)

    @property
    def arrays(self):
        """The kernels' first arguments: rows, ptr, columns, blocks, inverse, as explained at the top of this file."""
        return self.rows, self.ptr, self.columns, self.blocks, self.inverse

    @property
    def nbytes(self):
        return sum(a.nbytes for a in (*self.arrays, self.w)) + (0 if self._adjoint is None else self._adjoint.nbytes)


class BlockSequential(BlockTriangular):
    """Substitution, one block row after the other, on a CPU; the adjoint scatters, so it needs no second layout."""

    def _buffers(self):
        return 1

    def prepare_adjoint(self):
        pass

    def solve(self, x, out):
        self._kernels.solve(*self.arrays, x, self.w[0], out, self._nothing, self._size)

    def solve_adjoint(self, x, out):
        self._kernels.solve_adjoint(*self.arrays, x, self.w[0], out, self._size)

    def describe(self):
        return f"Exact(), sequential, blocks of {self.block}"


class BlockScheduled(BlockTriangular):
    """Substitution by levels, or without synchronisation, on a GPU."""

    scratch = ("_state",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self.schedule.bounds = self.schedule.bounds.astype(self.ptr.dtype)
        deep = self.schedule.levels > FEW
        self.sync_free = deep if settings.schedule == "auto" else settings.schedule == "sync_free"
        if self.sync_free:
            self.w.view(np.uint8).fill(255)      # a NaN marks a row that is not yet solved
        self._state = self.space.xp.zeros(3, np.int32)

    def _sequence(self, pattern):
        self.schedule = Schedule(pattern, self.lower, NARROW)
        return self.schedule.sequence

    def _buffers(self):
        return 2

    def solve(self, x, out):
        if self.sync_free:
            self._kernels.sync_free(*self.arrays, x, self.w, out, self._state, self._size)
            return
        w = self.w[0]
        self.schedule.run(
            lambda first, last: self._kernels.level(*self.arrays, self.rows[first:last], x, w, out, self._size, first),
            lambda bounds: self._kernels.levels(*self.arrays, bounds, x, w, out, self._size))

    def describe(self):
        name, launches = ("sync_free", 1) if self.sync_free else ("levels", len(self.schedule.groups))
        return f"Exact(schedule={name!r}), {self.schedule.levels} levels in {launches} launches, blocks of {self.block}"


class BlockSwept(BlockTriangular):
    """Approximates T⁻¹ by sweeps."""

    def __init__(self, T, lower, unit, order, settings):
        self.count = settings.count if lower or not settings.upper else settings.upper
        super().__init__(T, lower, unit, order, settings)
        self.variable = settings.in_place and self.count > 1
        self._no_blocks = self.space.xp.zeros_like(self.ptr)

    def _buffers(self):
        return 2

    def solve(self, x, out):
        (w, other), single = self.w, self.count == 1
        ptr = self._no_blocks if single else self.ptr
        old, in_place = x, self.settings.in_place
        if not single and (in_place or x.size < w.size or (x is out and self.count == 2)):
            self.space.copy(x, w[:x.size])       # the gather needs whole blocks, and a source other than its output
            old = w
        for k in range(1 if single else 2, self.count + 1):
            fresh = w if in_place or old is not w else other
            self._kernels.sweep(self.rows, ptr, *self.arrays[2:], x, old, fresh, out, self._nothing, self._size,
                                k == self.count)
            old = fresh

    def remainders(self, count):
        """Return ‖(I − D⁻¹ T)ᵏ v‖ / ‖v‖, the error that k sweeps leave, for a fixed random v and k = 1 to ``count``: a
        list of float. Allocates vectors; for setup only."""
        xp, s = self.space.xp, self.block
        T, v = self._source, random_vector(self.shape[0], self.dtype, self.space)
        out, zero = xp.empty_like(v), xp.zeros_like(v)
        norm, norms = self.space.norms(v)[0], []  # sync
        old = xp.zeros(self.w.shape[1], self.dtype)
        old[:v.size] = v
        if not self.unit:                        # w = D v
            diagonal = T.data[T.indices == rows_of(T.indptr, T.indices.size, xp)]
            by_rows = old.reshape(-1, s, 1)[self._places]
            old.reshape(-1, s, 1)[self._places] = xp.matmul(diagonal, by_rows)
        fresh = xp.zeros_like(old)
        for _ in range(count):
            self._kernels.sweep(*self.arrays, zero, old, fresh, out, self._nothing, self._size, True)
            norms.append(self.space.norms(out)[0] / norm)  # sync
            old, fresh = fresh, old
        return norms

    def describe(self):
        how = ", in_place=True" if self.settings.in_place else ""
        return f"Sweeps(count={self.count}{how}), blocks of {self.block}"
