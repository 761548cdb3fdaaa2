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

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.coarsest import GeneralInverse
from swell.preconditioners.amg.cycle import Cycle
from swell.preconditioners.amg.polynomial import Smoothed
from swell.preconditioners.amg.shared_rows import stored

PAD = 32                # rows; a slice of a vector then begins at a multiple of 128 bytes
MIN_DIAGONAL = 0.1      # a diagonal entry below this share of its row's largest entry is raised to it


class AIRCycle(Cycle):
    """The cycle over the levels of a hierarchy. Its vectors are in the cycle's order, with empty places.

    ``scales`` are the diagonals of D, in the order of the levels' matrices. A right-hand side is to be divided by D.

    Attributes
    ----------
    places : int array, shape (n,)
        The place of each row of A in the cycle's order.
    """

    def __init__(self, hierarchy):
        s, orders = hierarchy.settings, [Order.of_last(hierarchy.last)]        # from the finest in the end
        for level in reversed(hierarchy.levels):
            t = level.interpolation
            orders.insert(0, Order.around(level.A.space, t.state, t.numbers, t.P.shape[1], orders[0]))
        super().__init__(orders[0].size, s.dtype, hierarchy.space)
        self.hierarchy, self.places = hierarchy, orders[0].places
        self.scales = self._scaling()
        self.levels = [SweptLevel(*parts, s.f_sweeps, self.dtype)
                       for parts in zip(hierarchy.levels, pairwise(orders), pairwise(self.scales))]
        last = DiagonalInverse if hierarchy.dense else JacobiSteps
        self.levels.append(last(hierarchy.last, self.scales[-1], self.dtype))
        self.space.synchronize()                 # a product may read its matrix before the preceding kernel has ended

    def _scaling(self, first=None):
        return [relaxed_diagonal(M) for M in self.hierarchy.matrices]

    @property
    def nbytes(self):
        return super().nbytes + self.places.nbytes


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
        rows = A.space.xp.arange(A.shape[0], dtype=A.indices.dtype)
        return cls(rows, rows, 0, 0)

    @classmethod
    def around(cls, space, state, numbers, coarse, below):
        """Return the order of a level: fine rows, then coarse rows in the order ``below`` of the next level.

        ``state``, ``numbers``: the `State` of each row, and the number of each coarse row on the next level; ``coarse``
        is their count."""
        n, index = state.size, numbers.dtype
        begin = -(-(n - coarse) // PAD) * PAD
        places, rows = space.empty(n, index), space.xp.full(begin + below.size, -1, index)
        space.kernels("swell.preconditioners.amg", "air_cycle", np.float64).places(state, numbers, below.places, begin,
                                                                                  places, rows)
        return cls(places, rows, n - coarse, begin)

    @property
    def size(self):
        """The number of places."""
        return self.rows.size


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

    scratch = "b_coarse", "_w"

    def __init__(self, level, orders, diagonals, sweeps, dtype):
        order, below = orders
        self.level, self._diagonals, self.sweeps = level, diagonals, sweeps
        self.space, self.fine, self.begin = level.A.space, order.fine, order.begin
        self._identity = self.space.xp.arange(level.A.shape[0], dtype=level.A.indices.dtype)
        fine, coarse = order.rows[:order.fine], order.rows[order.begin:]
        self._picked = picked(dtype, (level.R, below.rows, order), (level.AP.C, fine, below), (level.A, fine, order),
                              (level.A, coarse, order))
        self._write_values()
        # The contents of empty places do not matter: no column leads there.
        self.b_coarse, self._w = (self.space.xp.zeros(each.size, dtype) for each in (below, order))
        self.x_coarse = self._w[order.begin:]
        self.R, self.Q, self.S_fine, self.S_coarse = self.matrices = [stored(p.matrix) for p in self._picked]

    def _write_values(self):
        """Write the values of R̂, Q, S_F and S_C."""
        R, Q, S_fine, S_coarse = self._picked
        level, (diagonal, below) = self.level, self._diagonals
        R.balance(level.R, diagonal, below)
        Q.complement(level.AP.C, diagonal, level.interpolation.parents)
        S_fine.complement(level.A, diagonal, self._identity)
        S_coarse.complement(level.A, diagonal, self._identity)

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level` and of D."""
        self._write_values()
        for matrix, new in zip(self.matrices, self._picked):
            matrix.update(new.matrix)

    def adjoint(self):
        return SweptAdjoint(self)

    def down(self, b, x, again):
        self.R.apply(b, self.b_coarse)                                         # b_c = R̂ b

    def up(self, b, x, again):
        fine, begin, w = self.fine, self.begin, self._w
        self.Q.apply_plus(self.x_coarse, b[:fine], w[:fine])                   # y_F = b_F + Q x_c
        for _ in range(self.sweeps - 1):
            self.S_fine.apply_plus(w, b[:fine], x[:fine])                      # x_F = b_F + S_F [y_F; x_c]
            self.space.copy(x[:fine], w[:fine])
        if self.sweeps == 1:
            self.space.copy(w[:fine], x[:fine])
        self.S_coarse.apply_plus(w, b[begin:], x[begin:])                      # x_C = b_C + S_C [x_F; x_c]

    @property
    def nbytes(self):
        copies = sum(M.nbytes for M, p in zip(self.matrices, self._picked) if M is not p.matrix)
        vectors = self._identity, self.b_coarse, self._w
        return copies + sum(part.nbytes for part in (*vectors, *self._picked))


class SweptAdjoint:
    """The transpose of a `SweptLevel`: its ``up`` transposed is ``down`` here, its ``down`` is ``up``."""

    scratch = "x_coarse", "_w", "_y"

    def __init__(self, level):
        self.level, self._w, self.b_coarse, self.x_coarse = level, level._w, level.x_coarse, level.b_coarse
        self._y = level.space.empty(level.fine, level._w.dtype)

    def down(self, b, x, again):
        level, w, fine = self.level, self._w, self.level.fine
        space = level.space
        space.copy(b, x)
        level.S_coarse.apply_adjoint(b[level.begin:], w)
        space.axpy(1, b[:fine], w[:fine])
        space.copy(w[:fine], x[:fine])
        for _ in range(level.sweeps - 1):
            space.copy(w[:fine], self._y)
            space.assign(0, w[:fine])
            level.S_fine.apply_adjoint(self._y, w, 1, 1)
            space.axpy(1, w[:fine], x[:fine])
        level.Q.apply_adjoint(w[:fine], self.b_coarse, 1, 1)

    def up(self, b, x, again):
        self.level.R.apply_adjoint(self.x_coarse, x, 1, 1)

    @property
    def nbytes(self):
        return self._y.nbytes


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
    """Return a list of `Picked` without values, for each choice (source, rows, the order of its columns: an object with
    the ``places`` of all columns, and ``size``)."""
    space, pointers = choices[0][0].space, []
    for source, rows, _ in choices:
        lengths, indptr = space.empty(rows.size, np.int32), space.empty(rows.size + 1, source.indptr.dtype)
        _kernels(source).picked_lengths(source.indptr, rows, lengths)
        space.prefix_sums(lengths, indptr)
        pointers.append(indptr)
    matrices = []
    for (source, rows, order), indptr, stored in zip(choices, pointers, space.last_entries(*pointers)):  # sync
        indices = space.empty(stored, source.indices.dtype)
        _kernels(source).pick_columns(source.indptr, source.indices, rows, order.places, indptr, indices)
        shape = rows.size, order.size
        matrices.append(Picked(rows, CSRMatrix(space, indptr, indices, space.empty(stored, dtype), shape)))
    return matrices


class DiagonalInverse(GeneralInverse):
    """The coarsest level: x = A⁻¹ D b by one dense product. A is balanced by √|d| from both sides, then inverted."""

    def update(self, A, diagonal):
        """Invert anew, into the stored inverse."""
        self._diagonal, self._roots = diagonal, 1 / A.space.xp.sqrt(abs(diagonal))
        super().update(A, self._roots)

    def _inverse(self, dense, n, kernels):
        G = super()._inverse(dense, n, kernels).reshape(n, n)
        return (self._roots[:, None] * G * (self._roots * self._diagonal)).ravel()


class JacobiSteps(Smoothed):
    """The coarsest level if it is too large for a dense inverse: x = b + S b + S² b."""

    def __init__(self, A, diagonal, dtype):
        super().__init__(A, diagonal, dtype, [(0, 1, 1)] * 3)

    def _matrix(self, A, diagonal, dtype):
        S, every = A.with_values(A.space.empty(A.nnz, dtype)), A.space.xp.arange(A.shape[0], dtype=A.indices.dtype)
        Picked(every, S).complement(A, diagonal, every)
        return S


def relaxed_diagonal(A):
    """Return the diagonal of A, a new float64 array, at least `MIN_DIAGONAL` times each row's largest modulus."""
    diagonal = A.space.empty(A.shape[0], np.float64)
    _kernels(A).relaxed_diagonal(A.indptr, A.indices, A.data, MIN_DIAGONAL, diagonal)
    return diagonal


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "air_cycle", np.float64)
