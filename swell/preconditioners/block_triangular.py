"""Block triangular solves with one copy of the factor: equations 5, 10 and 11, algorithms 6 and 7 of "A Parallel
Preconditioned GMRES for Block-Sparse Matrices on GPUs".

T = (I + N) D with D the diagonal blocks and N = (T − D) D⁻¹, as in triangular.py. The solve is w = b − N w, x = D⁻¹ w,
so one block row waits for no multiplication by another's diagonal block. Tᴴ = Dᴴ (I + Nᴴ) divides first.

A `BlockFactor` (block_factor.py) holds both triangles, and solves read it in place. Its block rows are in elimination
order; ``order[i]`` is the block of the vectors that belongs to block row i. Work vectors are in elimination order too,
and both triangles share them.

The exact solve on a CPU visits one block row after the other. A GPU solves by levels, with one launch for each wide
level and one block of threads for a run of narrow ones, or without synchronisation (level_schedule.py).
Sweeps: w ← b − N w, the paper's (10) and (11), (10) without the inverse inside its sum. They start from w = b; the last
writes x = D⁻¹ w only. With two buffers a fixed count is a fixed linear map, unlike the paper's update in place.

A solve, or a sweep but the first, reads 8 + 4/s² bytes an entry and 3 vectors; 8 s a row more with the diagonal.

Storage beside the factor: exact solves on a GPU 8 bytes a block row, and 4 vectors without synchronisation. A
single-precision solve (``single=True``), the first adjoint solve of sweeps or on a GPU, and a solve with a BSRMatrix
make a copy of the blocks.
"""
from __future__ import annotations

from abc import abstractmethod

import numpy as np

from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.level_schedule import MAX_LEVELS, Schedule
from swell.preconditioners.triangular import Gathering, random_vector

WHOLE_WARPS = 4096      # block rows up to which a warp of a GPU has one in a sweep; measured on an H100
NARROW = 64             # block rows of a level, at most, that one block of threads (32 warps) solves


class BlockTriangular(Gathering):
    """x = T⁻¹ b for one triangle of a BlockFactor or BSRMatrix.

    Parameters
    ----------
    T : BlockFactor or BSRMatrix
        A BSRMatrix is square, every diagonal block stored unless ``unit``, and its triangle is copied.
    lower, unit : bool
    order : int array of the space, or None
        Block row i of T belongs to block ``order[i]`` of the vectors.
    settings : TriangularSolve
    """

    scratch = ("w", "_whole")

    def __init__(self, T, lower, unit, order, settings):
        self.factor = F = BlockFactor.of(T, lower, unit)
        super().__init__(F, lower, unit, order, settings)
        self.shape, self.block, self._owned = (F.n, F.n), F.block, F is not T
        self._kernels = F.space.kernels("swell.preconditioners", "block_triangular", F.dtype)
        self.ptr, index = F.lower if lower else F.upper, F.indices.dtype
        self._order = F.indices[:0] if order is None else order.astype(index, copy=False)
        self._whole_warps = int(F.count <= WHOLE_WARPS)
        self._no_blocks = self.space.xp.zeros_like(self.ptr)
        self._whole = None                       # a vector of whole blocks, numbered as the vectors
        self.divides_first = F.divides_first and not unit
        if self.divides_first or self._needs_whole():
            self._whole = self.space.xp.zeros(F.count * F.block, F.dtype)
        self.load(F)

    def _needs_whole(self) -> bool:
        """True if `_solve` copies its input into ``_whole``."""
        return False

    def update(self, T):
        super().update(BlockFactor.of(T, self.lower, self.unit))
        self._source = self.factor               # so that new values are kept once

    def load(self, T):
        if T is not self.factor:
            self.factor.data[...] = T.data
        self.blocks = self.factor.values(self.stored(self.dtype))
        self.space.synchronize()                 # a solve may read the blocks before the preceding kernel has ended

    def adjoint_of(self, T):
        return T.adjoint(self.lower, self.unit)

    @property
    def _arrays(self):
        """The kernels' first arguments: order, ptr, columns, blocks."""
        return self._order, self.ptr, self.factor.indices, self.blocks

    @property
    def _last_arguments(self):
        """The kernels' last arguments: the size of a block, and the place of D⁻¹, −1 for a unit triangle."""
        return self.block, -1 if self.unit or self.divides_first else self.factor.below

    def solve(self, x, out):
        if self.divides_first:
            self._divide(x, self._whole[:x.size])
            x = self._whole
        self._solve(x, out)

    @abstractmethod
    def _solve(self, x, out):
        """Write the solve with (I + N) D, or with I + N if ``divides_first``."""

    def _divide(self, x, out):
        """Write out = D⁻¹ x."""
        self._kernels.sweep(self._order, self._no_blocks, *self._arrays[2:], x, x, out, self.block, self.factor.below,
                            True, True, self._whole_warps)

    @property
    def nbytes(self):
        """Bytes of the arrays that only this solve has; the factor counts its own, unless it was made for the solve."""
        arrays = (self._order if self.order is not None else None, self._whole)
        return (sum(a.nbytes for a in arrays if a is not None) + (self.factor.nbytes if self._owned else 0)
                + (0 if self._adjoint is None else self._adjoint.nbytes))


class BlockSequential(BlockTriangular):
    """Substitution, one block row after the other, on a CPU; the adjoint scatters, so it needs no transposed factor."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self.w = self.factor.work(1)

    def prepare_adjoint(self):
        pass

    def _solve(self, x, out):
        self._kernels.solve(*self._arrays, x, self.w[0], out, *self._last_arguments, self.lower)

    def solve_adjoint(self, x, out):
        self._kernels.solve_adjoint(*self._arrays, x, self.w[0], out, *self._last_arguments, self.lower)

    def describe(self):
        return f"Exact(), sequential, blocks of {self.block}"


class BlockScheduled(BlockTriangular):
    """Substitution by levels, or without synchronisation, on a GPU."""

    scratch = ("_state",)

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        F = self.factor
        self.schedule = Schedule(F.pattern(lower), lower, NARROW)
        self.rows = self.schedule.sequence.astype(self.ptr.dtype, copy=False)
        self.schedule.bounds, self.schedule.place = self.schedule.bounds.astype(self.ptr.dtype), None
        deep = self.schedule.levels > MAX_LEVELS
        self.sync_free = deep if settings.schedule is None else settings.schedule == "sync_free"
        if self.sync_free:
            self.w = self.space.xp.empty(2 * F.count * F.block, F.dtype)      # one half is written, one emptied
            self.w.view(np.uint8).fill(255)      # a NaN marks a row that is not yet solved
        else:
            self.w = F.work(1)
        self._state = self.space.xp.zeros(3, np.int32)

    def _solve(self, x, out):
        arrays, last = self._arrays, self._last_arguments
        if self.sync_free:
            self._kernels.sync_free(self.rows, *arrays, x, self.w, out, self._state, *last)
            return
        w = self.w[0]
        self.schedule.run(
            lambda first, end: self._kernels.level(self.rows[first:end], *arrays, x, w, out, *last),
            lambda bounds: self._kernels.levels(self.rows, *arrays, bounds, x, w, out, *last))

    @property
    def nbytes(self):
        schedule_bytes = self.rows.nbytes + self.schedule.bounds.nbytes + (self.w.nbytes if self.sync_free else 0)
        return super().nbytes + schedule_bytes

    def describe(self):
        name, launches = ("sync_free", 1) if self.sync_free else ("levels", len(self.schedule.groups))
        return f"Exact(schedule={name!r}), {self.schedule.levels} levels in {launches} launches, blocks of {self.block}"


class BlockSwept(BlockTriangular):
    """Approximates T⁻¹ by sweeps."""

    def __init__(self, T, lower, unit, order, settings):
        self.count = settings.count if lower or not settings.upper else settings.upper
        super().__init__(T, lower, unit, order, settings)
        self.w = self.factor.work(min(max(settings.count, settings.upper, 2) - 2, 2))
        self.variable = settings.in_place and self.count > 2

    def _needs_whole(self):
        return self.count == 2 or self.count > 2 and self.factor.n % self.block > 0

    def source(self, out):
        return self._whole[:out.size] if self.count == 2 else out

    def _solve(self, x, out):
        count, diagonal = self.count, self._last_arguments[1]
        if count == 1 and diagonal < 0:
            self.space.copy(x[:out.size], out)
        elif count == 1:
            self._divide(x, out)
        else:
            self._sweep(x, out)

    def _sweep(self, x, out):
        """Write all sweeps but the first, which is w = x."""
        old, in_place, w = x, self.variable, self.w
        whole = self._whole is None or x.size == self._whole.size
        if not whole or (self.count == 2 and x is out):          # the gather needs whole blocks, and not its output
            self.space.copy(x, self._whole[:x.size])
            old = self._whole
        if in_place:
            order, _, *blocks = self._arrays     # w = x
            self._kernels.sweep(order, self._no_blocks, *blocks, x, x, w[0], self.block, -1, True, False,
                                self._whole_warps)
            old = w[0]
        for k in range(2, self.count + 1):
            fresh = out if k == self.count else w[0] if in_place else w[k % 2]
            self._kernels.sweep(*self._arrays, x, old, fresh, *self._last_arguments, k == 2 and not in_place,
                                k == self.count, self._whole_warps)
            old = fresh

    def remainders(self, count):
        """Return ‖(I − D⁻¹ T)ᵏ v‖ / ‖v‖, the error that k sweeps leave, for a fixed random v and k = 1 to ``count``: a
        list of float. Allocates vectors; for setup only."""
        xp, F = self.space.xp, self.factor
        v = random_vector(self.shape[0], self.dtype, self.space)
        out, zero = xp.empty_like(v), xp.zeros_like(v)
        norm, norms = self.space.norms(v)[0], []  # sync
        old, fresh = (xp.zeros(F.count * F.block, self.dtype) for _ in range(2))
        old[:v.size] = v
        old = old.reshape(F.count, F.block, 1)
        old = (old if self.order is None else old[self.order])
        if not self.unit:                        # w = D v
            old = xp.linalg.solve(F.inverse, old)
        old = xp.ascontiguousarray(old).reshape(-1)
        for _ in range(count):
            for target, last in ((out, True), (fresh, False)):
                self._kernels.sweep(*self._arrays, zero, old, target, *self._last_arguments, False, last,
                                    self._whole_warps)
            norms.append(self.space.norms(out)[0] / norm)  # sync
            old, fresh = fresh, old
        return norms

    def describe(self):
        how = ", in_place=True" if self.settings.in_place else ""
        return f"Sweeps(count={self.count}{how}), blocks of {self.block}"
