"""Flux: the form of every spatial term, a flux through each face that is affine in the values of the adjacent cells.

F = a p_O + b p_N + c, positive from the owner O to the neighbour N. A boundary face has no neighbour and no b; there F
is positive out of the domain.

The neighbour's balance contains −F with the same numbers, so that every assembled system conserves. Off the diagonal,
the matrix has b in the owner's row and −a in the neighbour's (2.13–2.15). It is symmetric if and only if b = −a on
every internal face.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Flux:
    """Fluxes through all faces, integrated over each.

    Attributes
    ----------
    a, c : arrays of one space, shape (f,)
    b : array of the space, shape (fi,)
        Internal faces only.
    """

    a: Any
    b: Any
    c: Any

    def __add__(self, other: "Flux") -> "Flux":
        return Flux(self.a + other.a, self.b + other.b, self.c + other.c)

    def with_explicit(self, c) -> "Flux":
        """Return a new Flux with the array ``c``, shape (f,), added to the explicit part; a and b are shared."""
        return Flux(self.a, self.b, self.c + c)

    def of(self, metrics, p):
        """Return the fluxes a p_O + b p_N + c through all faces, shape (f,), for cell values p; ``metrics``: the mesh's
        Metrics."""
        fluxes = self.a * p[metrics.owner] + self.c
        fluxes[:metrics.n_internal] += self.b * p[metrics.neighbour]
        return fluxes
