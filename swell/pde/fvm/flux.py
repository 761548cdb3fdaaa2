"""What every spatial term is made of: the flux through each face as an affine function of the cells beside it.

F = a p_O + b p_N + c, counted from the owner O to the neighbour N, or out of the domain, where there is no b.

The neighbour's balance holds −F with the same numbers, so that whatever is assembled from fluxes conserves; and the
matrix, with b off the diagonal of the owner's row and −a of the neighbour's (2.13–2.15), is symmetric if and only if
b = −a on every internal face.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Flux:
    """Fluxes through all faces, integrated over each.

    Attributes
    ----------
    a, c : arrays of one space, shape (f,)
    b : array of the space, shape (fi,)
        Internal faces only.
    """

    a: object
    b: object
    c: object

    def __add__(self, other: "Flux") -> "Flux":
        return Flux(self.a + other.a, self.b + other.b, self.c + other.c)

    def with_explicit(self, c) -> "Flux":
        """The same with more that is known: c + c'."""
        return Flux(self.a, self.b, self.c + c)

    def of(self, metrics, p):
        """The fluxes for values p of the cells, shape (f,)."""
        fluxes = self.a * p[metrics.owner] + self.c
        fluxes[:metrics.n_internal] += self.b * p[metrics.neighbour]
        return fluxes
