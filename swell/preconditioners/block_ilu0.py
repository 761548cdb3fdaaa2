"""Block ILU(0): incomplete LU with dense blocks for entries, on the block pattern of A. Chow and Heroux 1998; the
factor of "A Parallel Preconditioned GMRES for Block-Sparse Matrices on GPUs", section 3.3, as PETSc makes it.

For systems with several unknowns a vertex: (L U)ᵢⱼ = Aᵢⱼ in whole blocks, fill inside a block included, with a block
unit lower L; a block is divided by with partial pivoting inside it, so that a zero on the diagonal is no breakdown, a
singular diagonal block is. Diagonal blocks of U are kept inverted. With blocks of 1 this is ILU(0).

Setup: 2 s³ operations for each product of two blocks, one block row after the other on a CPU, or threaded by levels; on
a GPU a warp a block row, as soon as those that it needs are done; or by ``factor_sweeps`` fixed-point sweeps over all
blocks at once, with two buffers (ParILU, Chow and Patel 2015, with blocks for entries), which tend to the same factors.
An application: two blockwise solves (block_triangular.py), exact or by sweeps.

Storage: A's blocks twice (the factor, and L and U as they are solved with), 2 s words a row for the inverses.

A pivot inside a block below 100 ε of the largest entry of its row of A is a breakdown; shifted or perturbed as in
incomplete_lu.py, and said. Differs from the textbook: pivots are compared after division by their rows' largest
entries, so that equations of different scales in a block (flow in a well, and in a cell) do not count as singular.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import describe, positive
from swell.formats.blocks import LARGEST, check_pad, chosen_size
from swell.formats.bsr import BSR, UNROLLED
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import rows_of
from swell.preconditioners.block_triangular import BlockFactor
from swell.preconditioners.incomplete import LEVELS, check_factor
from swell.preconditioners.incomplete_lu import IncompleteLU, LUOperator, largest_moduli, shifted
from swell.preconditioners.lu_factorisation import TINY, ByColumns, levels, levels_pay, relative_change

APART = 16              # words between the work of two threads: no cache line has some of both


@dataclass(frozen=True)
class BlockILU0(IncompleteLU):
    """Incomplete LU with dense blocks for entries, without fill beyond them.

    Attributes
    ----------
    block : int
        Rows of a block, 1 to 32; 0: as `BSR` detects it, 1 where there are no blocks.
    pad : bool
        Allow a size that does not divide the rows; the last block is filled with the identity.
    ordering : str or Ordering
        In which order block rows are eliminated.
    factor : str
        "exact": on a CPU one block row after the other or, with threads enough, by levels, the same to the bit;
        "levels": these in any case (on a GPU "exact" is that already); "sweeps": the fixed-point iteration of Chow and
        Patel, with blocks.
    factor_sweeps : int
        How many of these.
    """

    block: int = 0
    pad: bool = False
    factor: str = "exact"
    factor_sweeps: int = 5

    problem = "any matrix whose diagonal blocks are not singular; unknowns in groups"
    cost = "two blockwise triangular solves"
    idle = LEVELS,

    def __post_init__(self):
        super().__post_init__()
        positive(self, "block", 0, LARGEST)
        check_pad(self)
        check_factor(self, ("exact", "levels", "sweeps"))

    def build(self, A):
        """The operator (L U)⁻¹.

        Raises
        ------
        InputError
            If the block size does not divide the rows and ``pad`` is False, or a diagonal block has no entry.
        FactorisationError
            If a diagonal block is singular and stays so, or may not be helped; the message names the first.
        OutOfMemory
            If the blocks would not fit.
        """
        return BlockILU0Operator(A, self)


class BlockILU0Operator(LUOperator):
    """z = U⁻¹ L⁻¹ r, blockwise, for one matrix.

    Attributes
    ----------
    factor : BlockFactor
        L strictly below the diagonal blocks, and U, in the order of elimination; the inverses beside it.
    order : int array or None
        Block row i of the factors belongs to block row ``order[i]`` of A.
    """

    def __init__(self, A, settings):
        size = chosen_size(A, settings, "BlockILU0")
        self.matrix = BSR(size, size > 1).build(A)
        self.block = self.matrix.block
        super().__init__(A, settings)

    def _find_order(self, A):
        """An ordering of the graph of the blocks."""
        return super()._find_order(self._numbers())

    def _numbers(self):
        """A CSRMatrix with an entry for each block, its number."""
        indptr, indices = self.matrix.indptr, self.matrix.indices
        count, numbers = indptr.size - 1, self.space.xp.arange(indices.size, dtype=np.float64)
        return CSRMatrix(self.space, indptr, indices, numbers, (count, count))

    def _analyse(self, A):
        xp, s = self.space.xp, self.block
        numbers, self._entry = self._numbers(), None
        if self.order is not None:
            from swell.transforms.permutation import Permutation
            numbers = Permutation(numbers, self.order).matrix(numbers)
            self._entry = numbers.data.astype(np.int64)
        count = numbers.shape[0]
        self.diagonal = self._diagonal_blocks(numbers)
        inverse = xp.empty((count, s, s), A.dtype)
        self.factor = BlockFactor(self.space, numbers.indptr, numbers.indices, xp.empty_like(self.matrix.data), inverse,
                                  A.shape[0])
        every = xp.arange(s)                     # where the diagonal entries lie in the blocks, read as one array
        self._entries = ((self.diagonal.astype(np.int64) * s)[:, None] * s + every * (s + 1)).reshape(-1)
        places = xp.arange(count) if self.order is None else self.order
        self._point_rows = (places[:, None] * s + every).reshape(-1)
        self._beyond = self._entries[self._point_rows >= A.shape[0]]
        self._kernels = self.space.kernels("swell.preconditioners", "block_ilu", A.dtype)
        self._size = (0,) * (s if s <= UNROLLED else 0) if self.space.name == "cpu" else s
        self._bad = xp.empty(2, np.int64)
        self._columns = self._sequence = self._bounds = None
        if self.settings.factor == "sweeps":
            self.diagonal = self.diagonal.astype(self.factor.indptr.dtype)
            self._columns = ByColumns(self.factor.indptr, self.factor.indices, xp)
        elif self.space.name == "cpu":
            if self.settings.factor == "levels" or levels_pay(count, s):
                self._sequence, self._bounds = levels(self.factor.indptr, self.factor.indices, self.diagonal)
        else:
            from swell.preconditioners.level_schedule import Schedule
            self._sequence = Schedule(numbers, True).sequence.astype(self.factor.indptr.dtype)
            self.diagonal = self.diagonal.astype(self.factor.indptr.dtype)

    def _diagonal_blocks(self, pattern):
        """Where they are; an error that names the first block row without one."""
        xp, count = self.space.xp, pattern.shape[0]
        found = xp.flatnonzero(pattern.indices == pattern.rows())
        if found.size < count:
            there = xp.zeros(count, bool)
            there[pattern.indices[found]] = True
            first = self._named(int(there.argmin()))  # sync
            raise InputError(f"{self._name}: {count - found.size} of {count} diagonal blocks have no entry (the first "
                             f"is {first}), and block ILU divides by them: with order = swell.transversal(A), a "
                             "maximum matching, solve A[order] x = b[order], whose x is the same; or use "
                             "method='direct'")
        return found.astype(pattern.indptr.dtype)

    def _named(self, row):
        """A block row of the factors, in words."""
        block = row if self.order is None else int(self.order[row])
        last = min((block + 1) * self.block, self.shape[0]) - 1
        return f"diagonal block {block} (rows {block * self.block} to {last})"

    def _pivot(self, bad):
        return f"a pivot of {self._named(bad)}"

    def _load(self, A):
        xp = self.space.xp
        if self.L is not None:                   # else it has just been made of A
            self.matrix.update(A)
        self._values = self.matrix.data if self._entry is None else self.matrix.data[self._entry]
        if self._beyond.size:
            self._values = self._values.copy()
            self._values.reshape(-1)[self._beyond] = 1
        scale = xp.ones(self._point_rows.size, self._values.real.dtype)
        scale[:A.shape[0]] = largest_moduli(A.row_maxima(xp.ones(A.shape[1], scale.dtype)), xp)
        self._scale = scale[self._point_rows]

    def _factorise(self, shift, replacement):
        xp, T = self.space.xp, self.factor
        data = shifted(xp, self._values.reshape(-1), self._entries, self._scale, shift).reshape(T.data.shape)
        self._clear()
        tiny, count = TINY * float(np.finfo(self.dtype).eps), self.diagonal.size
        arrays = T.indptr, T.indices, self.diagonal, self._scale, T.data, T.inverse, self._size
        if self.settings.factor == "sweeps":
            self._sweep(data, tiny, replacement)
        elif self.space.name == "cpu":
            T.data[...] = data
            self._factor_on_host(arrays, tiny, replacement)
        else:
            T.data[...] = data
            done, drawn = xp.zeros(count, np.int32), xp.zeros(1, np.int32)
            self._kernels.factor_rows(*arrays, done, self._sequence, drawn, tiny, replacement, self._bad)
        first, found = (int(v) for v in self.space.to_host(self._bad))  # sync
        if found:
            return first, found
        finite = xp.isfinite(T.data).all(axis=(1, 2))                        # an entry, though no pivot, has overflowed
        if not bool(finite.all()):
            return int(rows_of(T.indptr, T.indices.size, xp)[int(finite.argmin())]), 1
        return None, 0

    def _factor_on_host(self, arrays, tiny, replacement):
        """Block rows one after the other, or by levels on threads, each with work arrays of its own."""
        count, s = self.diagonal.size, self.block
        if self._sequence is None:
            work, order = np.empty(s * s, self.dtype), np.empty(s, np.int64)
            self._kernels.factor(*arrays, np.zeros(count, np.int64), work, order, tiny, replacement, self._bad)
            return
        from numba import get_num_threads
        threads = get_num_threads()
        work, order = np.empty((threads, s * s + APART), self.dtype), np.empty((threads, s + APART), np.int64)
        self._kernels.factor_levels(*arrays, np.zeros((threads, count), np.int64), work, order, self._sequence,
                                    self._bounds, tiny, replacement, self._bad)

    def _clear(self):
        self._bad[0], self._bad[1] = np.iinfo(np.int64).max, 0

    def _sweep(self, data, tiny, replacement):
        """Chow and Patel's sweeps, from the triangles of A, the lower one divided by the diagonal blocks."""
        xp, T, kernels = self.space.xp, self.factor, self._kernels
        size = () if self.space.name == "cpu" else self.block                  # compiled once for all sizes
        old, fresh = data.copy(), xp.empty_like(data)
        kernels.invert_blocks(self.diagonal, self._scale, old, T.inverse, size, tiny, 1.0, self._bad)
        lower = xp.flatnonzero(T.indices < self._columns.entry_rows)
        old[lower] = xp.matmul(old[lower], T.inverse[T.indices[lower]])
        for _ in range(self.settings.factor_sweeps):
            kernels.fixed_point(T.indptr, T.indices, *self._columns.arrays, data, T.inverse, old, fresh, size)
            self._clear()                        # the last sweep's pivots count
            kernels.invert_blocks(self.diagonal, self._scale, fresh, T.inverse, size, tiny, replacement, self._bad)
            old, fresh = fresh, old
        T.data[...] = old
        self.change = relative_change(xp, fresh, old)

    @property
    def nbytes(self):
        beside = (self._entry, self._entries, self._point_rows, self.diagonal, self._sequence,
                  *(() if self._columns is None else self._columns.arrays))
        maps = sum(a.nbytes for a in beside if a is not None)
        return super().nbytes + self.matrix.nbytes + self.factor.inverse.nbytes + maps

    def _described(self):
        return f"{describe(self.settings)}, blocks of {self.block}, fill {self.matrix.fill:.2f}"
