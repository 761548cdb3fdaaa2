"""Conversion of a mesh to lists of faces by cell, for the VTU writer, on the CPU."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


@njit(cache=True)
def faces_of_cells(owner, neighbour, ptr, faces):
    """List the faces of each cell in CSR form: writes ``ptr`` and ``faces``; cell c has faces[ptr[c]:ptr[c+1]]. ``ptr``
    holds n + 1 zeros on entry. ``owner``, ``neighbour``: the two cells of each face, see ``Mesh``."""
    internal = neighbour.size
    for f in range(owner.size):
        ptr[owner[f] + 1] += 1
        if f < internal:
            ptr[neighbour[f] + 1] += 1
    for c in range(1, ptr.size):
        ptr[c] += ptr[c - 1]
    fill = ptr[:-1].copy()
    for f in range(owner.size):
        faces[fill[owner[f]]] = f
        fill[owner[f]] += 1
        if f < internal:
            faces[fill[neighbour[f]]] = f
            fill[neighbour[f]] += 1


@njit(cache=True)
def polyhedra(face_ptr, face_points, owner, ptr, faces, n_points, stream, stream_ends, connectivity, ends):
    """Fill VTK's arrays of polyhedra. Face f has the points face_points[face_ptr[f]:face_ptr[f+1]]; ``ptr``, ``faces``
    as ``faces_of_cells`` writes them.

    ``stream`` gets, for each cell, its number of faces and for each face the number of points and the points, so that
    the face points outwards; stream_ends[c]: the end of cell c there. ``connectivity`` gets the distinct points of each
    cell, which end at ends[c]. Returns the number of used entries of ``connectivity``.
    """
    seen = np.full(n_points, -1, np.int64)
    at, total = 0, 0
    for c in range(ptr.size - 1):
        stream[at] = ptr[c + 1] - ptr[c]
        at += 1
        for k in range(ptr[c], ptr[c + 1]):
            f = faces[k]
            start, stop = face_ptr[f], face_ptr[f + 1]
            stream[at] = stop - start
            at += 1
            for j in range(stop - start):
                p = face_points[start + j] if owner[f] == c else face_points[stop - 1 - j]
                stream[at] = p
                at += 1
                if seen[p] != c:
                    seen[p] = c
                    connectivity[total] = p
                    total += 1
        stream_ends[c] = at
        ends[c] = total
    return total
