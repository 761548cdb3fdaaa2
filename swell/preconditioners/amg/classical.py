"""Classical coarsening: strong links, PMIS and interpolation, level after level."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.hierarchy import Level
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import carried, coarse_numbers, pmis
from swell.preconditioners.amg.strength import positive_rows, strong_links, with_neighbours


class Classical:
    """Makes the interpolation of one level after the other.

    ``marked``: 1 for a row that must stay on every level; see `positive_rows` in strength.py."""

    def __init__(self, A, settings):
        self.settings, self.marked = settings, positive_rows(A, settings)

    level = staticmethod(Level.of)               # makes a level of its matrix and the result of `interpolation`

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
    """

    settings: Any
    strong: Any
    state: Any
    numbers: Any
    P: CSRMatrix
    R: CSRMatrix | None = None

    def update(self, A):
        """Recompute P, in place, for new values of A."""
        reinterpolate(A, self.strong, self.state, self.numbers, self.settings, self.P)

    @property
    def nbytes(self):
        return sum(part.nbytes for part in (self.strong, self.state, self.numbers, self.P))
