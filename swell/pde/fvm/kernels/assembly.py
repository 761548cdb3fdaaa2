"""Gathering over the faces of a cell, on the CPU; ``assembly.cu`` is the same on a GPU. A thread a cell, no atomics."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import parallel


@parallel
def assemble(ptr, faces, places, middle, a, b, diagonal, indptr, values):
    """The rows of the matrix from the fluxes F = a p_O + b p_N of the faces.

    Row i holds the coefficients of Σ ±F over its faces, and diagonal[i] besides (an empty array: nothing besides).
    A face of which cell i is the neighbour is stored as ~f. Faces to the same cell are consecutive, so that their
    coefficients are added up on the way; places[k] = −1 marks a face of the boundary. indptr, where rows begin in
    values, is of use on a GPU only; it is empty where rows do not lie one after the other.
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
    """out[i] = Σ flux over the faces that cell i owns + sign · Σ flux over those whose neighbour it is."""
    for i in prange(out.size):
        total = out.dtype.type(0)
        for k in range(ptr[i], ptr[i + 1]):
            f = faces[k]
            if f >= 0:
                total += flux[f]
            else:
                total += sign * flux[~f]
        out[i] = total
