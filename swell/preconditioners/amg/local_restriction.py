"""Local approximate ideal restriction (ℓAIR). Manteuffel, Ruge and Southworth 2018, SIAM J. Sci. Comput. 40, A4105.

With fine rows F and coarse rows C, the ideal restriction R = [−A_CF A_FF⁻¹, I] satisfies (R A)_F = 0. The coarse
correction then makes the error at coarse rows zero, whatever it is at fine rows. But A_FF⁻¹ is dense. ℓAIR asks for
zeros in Nᵢ only, the strong fine neighbours of coarse row i at a distance of one or two links:

    Σₖ zₖ aₖⱼ = −aᵢⱼ,    j in Nᵢ, the sum over k in Nᵢ.

A small dense system for each coarse row gives row i of R = [Z, I]. If convection dominates, a row depends on upwind
rows only, so few links suffice. P has one entry a row, 1 for the strongest coarse column: R is nearly ideal, so a
better P gains little. PMIS (pmis.py) chooses coarse rows by links of at least ``strength`` times the row's largest one;
Nᵢ takes links of at least ``neighbours`` times that. Moduli decide, since coarse matrices have entries of both signs.

R A P fills up with small entries, in 3D above all. Entries below ``drop`` times the largest of their row are added to
the diagonal (Manteuffel, Münzenmaier, Ruge and Southworth 2019), which keeps row sums.

Differs from the papers: PMIS instead of Ruge–Stüben coarsening, which has more coarse rows and fewer iterations, at
about equal cost; at most 31 unknowns a local system, the strongest links first. A warp of a GPU solves a system in
shared memory, with a lane for each column.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.hierarchy import Level
from swell.preconditioners.amg.pmis import coarse_numbers, pmis

WIDTH = 32              # most entries of a row of R: the local unknowns and 1, as in kernels/local_restriction.cu


class LocalRestriction:
    """Makes restriction and interpolation of one level after the other; ``settings`` is an `AIR`."""

    def __init__(self, settings):
        self.settings = settings

    def interpolation(self, A):
        """Return the `Transfer` between the level of a CSRMatrix A and the next one."""
        s, none = self.settings, A.space.empty(0, np.uint8)
        strong = strong_moduli(A, s.strength)
        state = pmis(A, strong, none)
        numbers = coarse_numbers(A, state)
        parents, P = one_point(A, strong, state, numbers)
        rows = A.space.empty(P.shape[1], A.indices.dtype)
        _kernels(A).coarse_rows(state, numbers, rows)
        R = restriction(A, strong_moduli(A, s.neighbours), state, rows, s.distance)
        return Transfer(state, numbers, parents, rows, P, R)

    def level(self, A, transfer):
        """Return the `FilteredLevel` of a CSRMatrix A and its `Transfer`."""
        return FilteredLevel.filtered(A, transfer, self.settings.drop)


@dataclass
class Transfer:
    """Interpolation P and restriction R of one level, with the arrays that the cycle and `update` need.

    Attributes
    ----------
    state, numbers : integer arrays
        The `State` of the rows of A, and their numbers on the next level.
    parents : int array, shape (n,)
        The column of the entry of each row of P; −1 for a row without one.
    rows : int array, shape (n_c,)
        The row of A that each row of the next level was.
    P, R : CSRMatrix
    """

    state: Any
    numbers: Any
    parents: Any
    rows: Any
    P: CSRMatrix
    R: CSRMatrix

    def update(self, A):
        """Recompute R, in place, for new values of A. P has no values of A."""
        weigh(A, self.rows, self.R)
        self.R.discard_adjoint()

    @property
    def nbytes(self):
        return sum(part.nbytes for part in (self.state, self.numbers, self.parents, self.rows, self.P))


@dataclass
class FilteredLevel(Level):
    """A level whose next matrix loses its small entries.

    Attributes
    ----------
    filter : Filtered
        Of ``RAP.C``.
    """

    filter: Any = None

    @classmethod
    def filtered(cls, A, transfer, share):
        """Return a new FilteredLevel; ``share`` as for `Filtered`."""
        level = cls.of(A, transfer)
        level.filter = Filtered(level.RAP.C, share)
        return level

    @property
    def coarse(self):
        return self.filter.matrix

    def update(self, A):
        super().update(A)
        return self.filter.update()

    @property
    def nbytes(self):
        return super().nbytes + self.filter.nbytes


class Filtered:
    """A matrix without its small entries, which are added to the diagonal.

    Parameters
    ----------
    C : CSRMatrix
        It is kept.
    share : float
        Least modulus of an entry that stays, over its row's largest.

    Attributes
    ----------
    kept : uint8 array
        1 for each entry of C that stays.
    matrix : CSRMatrix
    """

    def __init__(self, C, share):
        space = C.space
        lengths, self.kept, self._C = space.empty(C.shape[0], np.int32), space.empty(C.nnz, np.uint8), C
        _kernels(C).mark_kept(C.indptr, C.indices, C.data, share, self.kept, lengths)
        indptr = space.empty(C.shape[0] + 1, C.indptr.dtype)
        space.prefix_sums(lengths, indptr)
        stored, = space.last_entries(indptr)  # sync
        indices, data = space.empty(stored, C.indices.dtype), space.empty(stored, C.dtype)
        self.matrix = CSRMatrix(space, indptr, indices, data, C.shape)
        self.update()

    def update(self):
        """Write pattern and values of ``matrix`` for the values that C has now, and return it."""
        C, to = self._C, self.matrix
        _kernels(C).keep(C.indptr, C.indices, C.data, self.kept, to.indptr, to.indices, to.data)
        to.discard_adjoint()
        return to

    @property
    def nbytes(self):
        return self.kept.nbytes + self.matrix.nbytes


def strong_moduli(A, share):
    """Return a new uint8 array with an entry for each entry of A: 1 for an entry off the diagonal with at least
    ``share`` times the largest modulus off the diagonal in its row, else 0."""
    strong = A.space.empty(A.nnz, np.uint8)
    _kernels(A).strong_moduli(A.indptr, A.indices, A.data, share, strong)
    return strong


def one_point(A, strong, state, numbers):
    """Return (the column of each row's entry, an int array, −1 for none; P, a CSRMatrix).

    The strongest coarse column of a fine row, by the links ``strong``; ``state`` and ``numbers`` are the results of
    `pmis` and `coarse_numbers`."""
    space, n, kernels = A.space, A.shape[0], _kernels(A)
    parents, lengths = space.empty(n, A.indices.dtype), space.empty(n, np.int32)
    kernels.one_point(A.indptr, A.indices, A.data, strong, state, numbers, parents, lengths)
    indptr = space.empty(n + 1, A.indptr.dtype)
    space.prefix_sums(lengths, indptr)
    coarse, stored = space.last_entries(numbers, indptr)  # sync
    indices, data = space.empty(stored, A.indices.dtype), space.xp.ones(stored)
    kernels.place_parents(parents, indptr, indices)
    return parents, CSRMatrix(space, indptr, indices, data, (n, coarse))


def restriction(A, strong, state, rows, distance):
    """Return R, a CSRMatrix with a row for each coarse row: R = [Z, I], Z from local systems.

    Parameters
    ----------
    A : CSRMatrix
    strong, state : uint8 arrays
        The links that may lead to a neighbour, and the result of `pmis`.
    rows : int array, shape (n_c,)
        The row of A of each coarse row.
    distance : {1, 2}
        Links between a coarse row and its neighbours.
    """
    space, count = A.space, rows.size
    wide, lengths = space.empty(count * WIDTH, A.indices.dtype), space.empty(count, np.int32)
    _kernels(A).neighbourhoods(rows, A.indptr, A.indices, A.data, strong, state, distance, wide, lengths)
    indptr = space.empty(count + 1, A.indptr.dtype)
    space.prefix_sums(lengths, indptr)
    stored, = space.last_entries(indptr)  # sync
    indices = space.empty(stored, A.indices.dtype)
    _kernels(A).compact_columns(wide, indptr, indices)
    R = CSRMatrix(space, indptr, indices, space.empty(stored, np.float64), (count, A.shape[0]))
    weigh(A, rows, R)
    return R


def weigh(A, rows, R):
    """Write the values of R, the solutions of the local systems; the arguments are those of `restriction`."""
    _kernels(A).ideal_weights(rows, A.indptr, A.indices, A.data, R.indptr, R.indices, R.data)


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "local_restriction", np.float64)
