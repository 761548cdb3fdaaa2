"""The cycle of AIR, x ≈ (D⁻¹A)⁻¹ b: coarse correction, sweeps over fine rows, a sweep over coarse rows.

With S = I − D⁻¹A, d the diagonal of A, a level with right-hand side b computes

    b_c = R̂ b,   (coarse levels: x_c),   y_F = b_F + Q x_c,   x_F = b_F + S_F [y_F; x_c],   x_C = b_C + S_C [x_F; x_c].

R̂ = D_c⁻¹ R D acts on the rows scaled by D⁻¹, so that the entries of all matrices are about 1, and single precision
suffices for every scale of A. No sweep precedes the correction: R nearly ignores the error at fine rows. Q = (S P)_F is
interpolation and the first F sweep in one. It follows from A P without a further product.

All levels share one order of rows: fine rows of the finest level, fine rows of the second, and so on. So a level's fine
and coarse rows are each contiguous; the next level writes x_c to its place. A level takes four products and a copy of
x_F. Together they read R, the fine rows of A P and A once. Fine rows are padded to a multiple of PAD, with empty rows.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from swell.formats.csr import CSR, CSRMatrix
from swell.formats.sell import SELL
from swell.preconditioners.amg.coarsest import GeneralInverse
from swell.preconditioners.amg.shared_rows import SharedRows, suits

PAD = 32                # rows; a slice of a vector then begins at a multiple of 128 bytes
LEAST = 0.1             # a diagonal entry below this share of its row's largest entry is raised to it


class AIRCycle:
    """The cycle over the levels of a hierarchy. Its vectors are in the cycle's order, with empty places.

    Attributes
    ----------
    levels : list of SweptLevel
    places : int array, shape (n,)
        The place of each row of A in the cycle's order.
    diagonals : list of float64 arrays
        The diagonal of D of each level, in the order of its matrix.
    b, x : arrays
        The caller writes D⁻¹ times the right-hand side to b, and reads the result from x.
    """

    scratch = "b", "x", "_b", "_w"

    def __init__(self, hierarchy, sweeps, dtype):
        self.hierarchy, self.space = hierarchy, hierarchy.last.space
        self.dtype = np.dtype(dtype)
        self.diagonals = [relaxed_diagonal(M) for M in hierarchy.matrices]
        orders = [Order.of_last(hierarchy.last)]                               # from the finest in the end
        for level in reversed(hierarchy.levels):
            orders.insert(0, Order.around(level, orders[0]))
        self.places = orders[0].places
        self.levels = [SweptLevel(*parts, sweeps, self.dtype)
                       for parts in zip(hierarchy.levels, pairwise(orders), pairwise(self.diagonals))]
        end = CoarsestInverse if hierarchy.dense else JacobiSteps
        self._end = end(hierarchy.last, self.diagonals[-1], self.dtype)
        # The contents of empty places do not matter: no column leads there.
        self.b, *self._b = self._vectors(orders)
        self.x, *self._w = self._vectors([orders[0], *orders[:-1]])
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def _vectors(self, orders):
        return [self.space.xp.zeros(order.rows.size, self.dtype) for order in orders]

    def update(self, A):
        """Recompute all levels, in place, for new values of A."""
        self.hierarchy.update(A)
        for old, M in zip(self.diagonals, self.hierarchy.matrices):
            old[...] = relaxed_diagonal(M)
        for level in self.levels:
            level.update()
        self._end.update(self.hierarchy.last, self.diagonals[-1])
        self.space.synchronize()

    def solve(self):
        """Write ``x``, the result of one cycle from zero for the right-hand side ``b``."""
        self._solve(0, self.b, self.x)

    def _solve(self, k, b, x):
        """Write x: the result of level k and the levels below it for the right-hand side b."""
        if k == len(self.levels):
            return self._end.solve(b, x)
        level, below, w = self.levels[k], self._b[k], self._w[k]
        level.R.apply(b, below)                                                # b_c = R̂ b
        self._solve(k + 1, below, w[level.begin:])                             # x_c
        level.ascend(b, w, x)

    def solve_adjoint(self):
        """Write ``b``, the transpose of `solve` applied to ``x``."""
        self._solve_adjoint(0, self.x, self.b)

    def _solve_adjoint(self, k, x, b):
        """Write b, the transpose of `_solve` applied to x."""
        if k == len(self.levels):
            return self._end.solve_adjoint(x, b)
        level, below, w = self.levels[k], self._b[k], self._w[k]
        level.ascend_adjoint(x, w, b)
        self._solve_adjoint(k + 1, w[level.begin:], below)
        level.R.apply_adjoint(below, b, 1, 1)

    @property
    def revision(self):
        """Changes if an adjoint that a graph may hold was discarded."""
        return self._end.revision + sum(matrix.revision for level in self.levels for matrix in level.matrices)

    @property
    def nbytes(self):
        vectors = self.b, self.x, *self._b, *self._w, self.places, *self.diagonals
        return self.hierarchy.nbytes + sum(part.nbytes for part in (*self.levels, self._end, *vectors))


@dataclass
class Order:
    """The order of a level's rows in the cycle.

    Attributes
    ----------
    places : int array, shape (n,)
        The place of each row.
    rows : int array
        The row at each place; −1 for an empty place.
    fine : int
        The number of fine rows, which come first.
    begin : int
        The place at which the coarse rows begin.
    """

    places: Any
    rows: Any
    fine: int
    begin: int

    @classmethod
    def of_last(cls, A):
        """Return the order of the coarsest level: of its matrix."""
        own = A.space.xp.arange(A.shape[0], dtype=A.indices.dtype)
        return cls(own, own, 0, 0)

    @classmethod
    def around(cls, level, below):
        """Return the order of a Level: fine rows, then coarse rows in the order ``below`` of the next level."""
        A, t = level.A, level.interpolation
        space, (n, coarse) = A.space, t.P.shape
        begin = -(-(n - coarse) // PAD) * PAD
        places = space.empty(n, A.indices.dtype)
        rows = space.xp.full(begin + below.rows.size, -1, A.indices.dtype)
        _kernels(A).places(t.state, t.numbers, below.places, begin, places, rows)
        return cls(places, rows, n - coarse, begin)


class SweptLevel:
    """One level of the cycle: the matrices R̂, Q, S_F and S_C.

    Parameters
    ----------
    level : Level
    orders : (Order, Order)
        Of this level and of the next one.
    diagonals : (float64 array, float64 array)
        The diagonals of D on this level and on the next one.
    sweeps : int
        The number of sweeps over fine rows.
    dtype : numpy.dtype
    """

    scratch = ("_y",)

    def __init__(self, level, orders, diagonals, sweeps, dtype):
        own, below = orders
        self.level, self._diagonals, self._sweeps = level, diagonals, sweeps
        self.space, self.fine, self.begin = level.A.space, own.fine, own.begin
        self._identity = self.space.xp.arange(level.A.shape[0], dtype=level.A.indices.dtype)
        fine, coarse = own.rows[:own.fine], own.rows[own.begin:]
        self._picked = picked(dtype, (level.R, below.rows, own), (level.AP.C, fine, below), (level.A, fine, own),
                              (level.A, coarse, own))
        self._write_values()
        self._y = self.space.empty(self.fine, dtype)                           # for the adjoint
        stored = (CSR() if self.space.name == "cpu" else SELL()).build
        self.matrices = [SharedRows(p.matrix) if suits(p.matrix) else stored(p.matrix) for p in self._picked]
        self.R, self.Q, self.S_fine, self.S_coarse = self.matrices

    def _write_values(self):
        """Write the values of R̂, Q, S_F and S_C."""
        R, Q, S_fine, S_coarse = self._picked
        level, (own, below) = self.level, self._diagonals
        R.balance(level.R, own, below)
        Q.complement(level.AP.C, own, level.interpolation.parents)
        S_fine.complement(level.A, own, self._identity)
        S_coarse.complement(level.A, own, self._identity)

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level` and of D."""
        self._write_values()
        for matrix, new in zip(self.matrices, self._picked):
            matrix.update(new.matrix)

    def ascend(self, b, w, x):
        """Write x for the right-hand side b. The end of w holds x_c, its beginning is overwritten."""
        fine, begin = self.fine, self.begin
        self.Q.apply_plus(w[begin:], b[:fine], w[:fine])                       # y_F = b_F + Q x_c
        for _ in range(self._sweeps - 1):
            self.S_fine.apply_plus(w, b[:fine], x[:fine])                      # x_F = b_F + S_F [y_F; x_c]
            self.space.copy(x[:fine], w[:fine])
        if self._sweeps == 1:
            self.space.copy(w[:fine], x[:fine])
        self.S_coarse.apply_plus(w, b[begin:], x[begin:])                      # x_C = b_C + S_C [x_F; x_c]

    def ascend_adjoint(self, x, w, b):
        """Write to b and to the end of w the transpose of `ascend`, applied to x: what depends on b, and on x_c."""
        fine, begin, space = self.fine, self.begin, self.space
        space.copy(x, b)
        self.S_coarse.apply_adjoint(x[begin:], w)
        space.axpy(1, x[:fine], w[:fine])
        space.copy(w[:fine], b[:fine])
        for _ in range(self._sweeps - 1):
            space.copy(w[:fine], self._y)
            space.assign(0, w[:fine])
            self.S_fine.apply_adjoint(self._y, w, 1, 1)
            space.axpy(1, w[:fine], b[:fine])
        self.Q.apply_adjoint(w[:fine], w[begin:], 1, 1)

    @property
    def nbytes(self):
        copies = sum(M.nbytes for M, p in zip(self.matrices, self._picked) if M is not p.matrix)
        return copies + self._identity.nbytes + self._y.nbytes + sum(p.nbytes for p in self._picked)


@dataclass
class Picked:
    """A matrix whose rows are rows of another one, the ``source``. ``rows``: their numbers there, −1 for an empty row.

    Its columns are renumbered, and keep the order of the source."""

    rows: Any
    matrix: CSRMatrix

    def complement(self, source, diagonal, parents):
        """Write the values eⱼ − row i of ``source`` / diagonal[i] of each row i, with j = parents[i]."""
        M = self.matrix
        _kernels(source).pick_complement(source.indptr, source.indices, source.data, self.rows, diagonal, parents,
                                         M.indptr, M.data)

    def balance(self, source, fine, coarse):
        """Write the values D_c⁻¹ ``source`` D with D = diag(``fine``) and D_c = diag(``coarse``)."""
        M = self.matrix
        _kernels(source).pick_balanced(source.indptr, source.indices, source.data, self.rows, fine, coarse, M.indptr,
                                       M.data)

    @property
    def nbytes(self):
        return self.matrix.nbytes


def picked(dtype, *choices):
    """Return a list of `Picked` without values, for each choice (source, rows, the `Order` of its columns)."""
    space, pointers = choices[0][0].space, []
    for source, rows, _ in choices:
        lengths, indptr = space.empty(rows.size, np.int32), space.empty(rows.size + 1, source.indptr.dtype)
        _kernels(source).picked_lengths(source.indptr, rows, lengths)
        space.prefix_sums(lengths, indptr)
        pointers.append(indptr)
    found = []
    for (source, rows, order), indptr, stored in zip(choices, pointers, space.last_entries(*pointers)):  # sync
        indices = space.empty(stored, source.indices.dtype)
        _kernels(source).pick_columns(source.indptr, source.indices, rows, order.places, indptr, indices)
        shape = rows.size, order.rows.size
        found.append(Picked(rows, CSRMatrix(space, indptr, indices, space.empty(stored, dtype), shape)))
    return found


class CoarsestInverse(GeneralInverse):
    """The coarsest level: x = A⁻¹ D b by one dense product. A is balanced by √|d| from both sides, then inverted."""

    revision = 0

    def __init__(self, A, diagonal, dtype):
        self._adjoint = None
        super().__init__(A, diagonal, dtype)

    def update(self, A, diagonal):
        """Invert anew, into the stored inverse."""
        self._diagonal = diagonal
        super().update(A, self._scales)
        if self._adjoint is not None:
            self._adjoint[...] = self._transposed()
            self.space.synchronize()

    @property
    def _scales(self):
        return 1 / self.space.xp.sqrt(abs(self._diagonal))

    def _inverse(self, dense, n, kernels):
        G = super()._inverse(dense, n, kernels).reshape(n, n)
        return (self._scales[:, None] * G * (self._scales * self._diagonal)).ravel()

    def _transposed(self):
        n = math.isqrt(self.inverse.size)
        return self.inverse.reshape(n, n).T.ravel()

    def solve_adjoint(self, x, b):
        """Write b, the transpose of `solve` applied to x. The transposed inverse is built at the first call."""
        if self._adjoint is None:
            self._adjoint = self._transposed()
            self.space.synchronize()
        self._kernels.dense_product(self._adjoint, 1, x, b)


class JacobiSteps:
    """The coarsest level if it is too large for a dense inverse: x = b + S b + S² b."""

    scratch = ("_y",)

    def __init__(self, A, diagonal, dtype):
        space, n = A.space, A.shape[0]
        every = space.xp.arange(n, dtype=A.indices.dtype)
        self.space, self._every = space, every
        self._picked, = picked(dtype, (A, every, Order(every, every, 0, 0)))
        self._picked.complement(A, diagonal, every)
        self.S, self._y = (CSR() if space.name == "cpu" else SELL()).build(self._picked.matrix), space.empty(n, dtype)

    @property
    def revision(self):
        return self.S.revision

    def update(self, A, diagonal):
        """Recompute S, in place."""
        self._picked.complement(A, diagonal, self._every)
        self.S.update(self._picked.matrix)

    def solve(self, b, x):
        """Write x."""
        self.S.apply_plus(b, b, self._y)                                       # y = b + S b
        self.S.apply_plus(self._y, b, x)                                       # x = b + S y

    def solve_adjoint(self, x, b):
        """Write b, the transpose of `solve` applied to x."""
        self.space.copy(x, self._y)
        self.S.apply_adjoint(x, self._y, 1, 1)                                 # y = x + Sᵀ x
        self.space.copy(x, b)
        self.S.apply_adjoint(self._y, b, 1, 1)                                 # b = x + Sᵀ y

    @property
    def nbytes(self):
        return self.S.nbytes + self._picked.nbytes + self._y.nbytes


def relaxed_diagonal(A):
    """Return the diagonal of A, a new float64 array; entries below `LEAST` times their row's largest modulus are raised
    to it."""
    found = A.space.empty(A.shape[0], np.float64)
    _kernels(A).relaxed_diagonal(A.indptr, A.indices, A.data, LEAST, found)
    return found


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "air_cycle", np.float64)
