"""Gathering over the faces of each cell, in parallel over cells, on the CPU; ``assembly.cu`` is the GPU version."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import parallel


@parallel
def assemble(ptr, faces, places, middle, a, b, diagonal, indptr, values):
    """Write the matrix of Σ ±F over each cell's faces to ``values``, from the fluxes F = a p_O + b p_N.

    Row i holds cell i's coefficients, plus diagonal[i] on the diagonal (unless that array is empty).

    ``ptr``, ``faces``: cell i has the faces faces[ptr[i]:ptr[i+1]]; f if cell i owns the face, ~f if it is its
    neighbour. Faces to the same cell are consecutive, and the loop adds up their coefficients. places[k]: index in
    ``values`` of the entry for faces[k], −1 for a boundary face; middle[i]: index of row i's diagonal. Only the GPU
    uses ``indptr``, the starts of the rows in ``values``; it is empty for formats other than CSR.
    """
    for i in prange(middle.size):
        own = values.dtype.type(0)
        if diagonal.size:
            own += diagonal[i]
        other = values.dtype.type(0)
        last = -1
        for k in range(ptr[i], ptr[i + 1]):
            f = faces[k]
            place = places[k]
            if f >= 0:
                own += a[f]
                part = b[f] if place >= 0 else values.dtype.type(0)
            else:
                own -= b[~f]
                part = -a[~f]
            if place >= 0:
                other = other + part if place == last else part
                values[place] = other
            last = place
        values[middle[i]] = own


@parallel
def collect(ptr, faces, flux, sign, out):
    """out[i] = Σ flux over the faces that cell i owns + sign · Σ flux over the faces whose neighbour it is. ``ptr``,
    ``faces`` as in ``assemble``; ``flux``: one value a face."""
    for i in prange(out.size):
        total = out.dtype.type(0)
        for k in range(ptr[i], ptr[i + 1]):
            f = faces[k]
            if f >= 0:
                total += flux[f]
            else:
                total += sign * flux[~f]
        out[i] = total
