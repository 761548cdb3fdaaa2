"""Classical coarsening: strong links, PMIS and interpolation, level after level.

Links and weights are real; a complex matrix gives its real part (real_part.py). The restriction is Pᵀ. For a
nonsymmetric matrix with ``restriction="adjoint"`` it is the transposed interpolation of Aᴴ with the same coarse rows.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.formats.csr import CSRMatrix
from swell.formats.transpose import transposed
from swell.preconditioners.amg.hierarchy import Level
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers, pmis
from swell.preconditioners.amg.real_part import mirrored, real_part
from swell.preconditioners.amg.strength import positive_rows, strong_links, with_neighbours


class Classical:
    """Makes the interpolation of one level after the other.

    ``marked``: 1 for a row that must stay on every level; None: `positive_rows` of strength.py finds them.
    ``symmetry``: the `Symmetry` of A."""

    def __init__(self, A, settings, symmetry, marked=None):
        self.settings, self.symmetry = settings, symmetry
        self.marked = positive_rows(real_part(A), settings) if marked is None else marked

    level = staticmethod(Level.of)               # makes a level of its matrix and the result of `interpolation`

    def interpolation(self, A):
        """Return the `Interpolation` to the level of a CSRMatrix A from the next one. Goes on to the next level."""
        s, B, symmetric = self.settings, real_part(A), self.symmetry.real
        strong = strong_links(B, s)
        state = pmis(B, strong, with_neighbours(B, self.marked))
        numbers = coarse_numbers(B, state)
        P = interpolation(B, mirrored(B, symmetric), strong, state, numbers, s)
        self.marked = carried(B, state, numbers, self.marked, P.shape[1])
        weights_left = None
        if s.restriction == "adjoint" and not self.symmetry.any:
            B = real_part(A.transpose(conjugate=True))
            strong_left = strong_links(B, s)
            weights_left = Weights(s, False, strong_left, state, numbers,
                                   interpolation(B, mirrored(B, False), strong_left, state, numbers, s))
        return Interpolation(Weights(s, symmetric, strong, state, numbers, P), weights_left)


@dataclass
class Weights:
    """An interpolation matrix, with the arrays that `update` needs.

    Attributes
    ----------
    settings : AMG
    symmetric : bool
        True for a real symmetric matrix.
    strong, state, numbers : integer arrays
        The strong links of A, the `State` of its rows, and their numbers on the next level.
    P : CSRMatrix
    """

    settings: Any
    symmetric: bool
    strong: Any
    state: Any
    numbers: Any
    P: CSRMatrix

    def update(self, A):
        """Recompute P, in place, for new values of A."""
        B = real_part(A)
        reinterpolate(B, mirrored(B, self.symmetric), self.strong, self.state, self.numbers, self.settings, self.P)


class Interpolation:
    """The interpolation of a level, and a restriction of its own if it has one.

    Parameters
    ----------
    right : Weights
        Interpolation of A.
    left : Weights or None
        Interpolation of Aᴴ.

    Attributes
    ----------
    P : CSRMatrix
    R : CSRMatrix or None
        None for Pᵀ.
    radius : float
        A bound of the eigenvalues of D⁻¹A, D the ℓ1 diagonal.
    """

    radius = 1.0

    def __init__(self, right, left):
        self.right, self.left, self.P = right, left, right.P
        self.R, self._order = (None, None) if left is None else transposed(left.P)

    def update(self, A):
        """Recompute P and R, in place, for new values of A."""
        self.right.update(A)
        if self.left is not None:
            self.left.update(A.transpose(conjugate=True))
            self.R.data[...] = self.left.P.data[self._order]
            self.R.discard_adjoint()

    @property
    def nbytes(self):
        right, left = self.right, self.left
        both = sum(part.nbytes for part in (right.strong, right.state, right.numbers, right.P))
        return both + (0 if left is None else left.strong.nbytes + left.P.nbytes + self._order.nbytes)
