"""Classical coarsening: strong links, PMIS and interpolation, level after level."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers, pmis
from swell.preconditioners.amg.strength import positive_rows, strong_links, with_neighbours


class Classical:
    """Makes the interpolation of one level after the other.

    ``marked``: 1 for a row that must stay on every level; None: `positive_rows` of strength.py finds them."""

    def __init__(self, A, settings, marked=None):
        self.settings, self.marked = settings, positive_rows(A, settings) if marked is None else marked

    def interpolation(self, A):
        """Return the `Interpolation` to the level of a CSRMatrix A from the next one. Goes on to the next level."""
        strong = strong_links(A, self.settings)
        state = pmis(A, strong, with_neighbours(A, self.marked))
        numbers = coarse_numbers(A, state)
        P = interpolation(A, strong, state, numbers, self.settings)
        self.marked = carried(A, state, numbers, self.marked, P.shape[1])
        return Interpolation(self.settings, strong, state, numbers, P)


@dataclass
class Interpolation:
    """P, with the arrays that `update` needs.

    Attributes
    ----------
    settings : AMG
    strong, state, numbers : integer arrays
        The strong links of A, the `State` of its rows, and their numbers on the next level.
    P : CSRMatrix
    R : CSRMatrix or None
        A restriction of its own; None for Pᵀ.
    radius : float
        A bound of the eigenvalues of D⁻¹A, D the ℓ1 diagonal.
    """

    settings: Any
    strong: Any
    state: Any
    numbers: Any
    P: CSRMatrix
    R: CSRMatrix | None = None
    radius: float = 1.0

    def update(self, A):
        """Recompute P, in place, for new values of A."""
        reinterpolate(A, self.strong, self.state, self.numbers, self.settings, self.P)

    @property
    def nbytes(self):
        return sum(part.nbytes for part in (self.strong, self.state, self.numbers, self.P))
