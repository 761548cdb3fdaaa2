"""Conversion of elements, which list their corners, into the faces of a mesh.

Two cells share a face if its corners are the same. To find such pairs, the faces of all cells are sorted into buckets
by their lowest corner, and compared within each bucket. A cell that is numbered inside out is reversed.
"""
from __future__ import annotations

import re

import numpy as np

from swell.core.errors import InputError
from swell.core.library import native_kernels
from swell.pde.fvm.mesh import Mesh, Patch

kernels = native_kernels("swell.pde.fvm", "elements")
DIMENSION = {"vertex": 0, "line": 1, "triangle": 2, "quad": 2, "polygon": 2,
             "tetra": 3, "pyramid": 3, "wedge": 3, "hexahedron": 3}
COUNT = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
# The faces of each solid, all with the same orientation; triangles are padded with -1.
FACES = {
    "tetra": [(0, 2, 1, -1), (0, 1, 3, -1), (1, 2, 3, -1), (0, 3, 2, -1)],
    "pyramid": [(0, 3, 2, 1), (0, 1, 4, -1), (1, 2, 4, -1), (2, 3, 4, -1), (3, 0, 4, -1)],
    "wedge": [(0, 2, 1, -1), (3, 4, 5, -1), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)],
    "hexahedron": [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)],
}
KIND = re.compile(r"(?:VTK_LAGRANGE_)?(vertex|line|triangle|quadrilateral|quad|polygon|tetrahedron|tetra|pyramid|wedge|"
                  r"hexahedron)\d*", re.IGNORECASE)
SHORT = {"quadrilateral": "quad", "tetrahedron": "tetra"}


def corners(kind, data):
    """Return (shape's name, corners of shape (cells, corners)) for a meshio block of the type ``kind``.

    Raises
    ------
    InputError
        For an unsupported type.
    """
    match = KIND.fullmatch(kind)
    if not match:
        raise InputError(f"it has {len(data)} cells of the type {kind!r}, expected tetra, hexahedron, wedge, pyramid, "
                         "or triangle, quad, polygon in the plane; leave them out or split them into those")
    shape = SHORT.get(match[1].lower(), match[1].lower())
    data = np.asarray(data, dtype=np.int64)
    return shape, data if shape == "polygon" else data[:, :COUNT[shape]]


def mesh_of_solids(points, blocks, groups) -> Mesh:
    """Build a mesh from solid elements.

    Parameters
    ----------
    points : numpy.ndarray, shape (p, 3)
    blocks : list of (str, numpy.ndarray)
        Shape's name and corners, as `corners` returns them; cells are numbered across all blocks.
    groups : dict of str to list of numpy.ndarray
        Patch name → corners of its boundary faces.

    Returns
    -------
    Mesh
    """
    faces, cells, first = [], [], 0
    for shape, members in blocks:
        _check_range(points, shape, members)
        template = np.array(FACES[shape])
        of = np.where(template >= 0, members[:, template], -1)              # (cells, faces, 4)
        kernels.signed_volumes(points, of.reshape(-1, 4), volumes := np.empty(len(members)))
        of[volumes < 0] = _turned(of[volumes < 0])
        faces.append(of.reshape(-1, 4))
        cells.append(np.repeat(np.arange(first, first + len(members)), len(template)))
        first += len(members)
    faces, cells = np.concatenate(faces), np.concatenate(cells)
    inner, outer = _match(faces, cells, points)
    boundary, patches = _patches(faces, outer, groups, len(inner[0]), points)
    order = np.concatenate([inner[0], boundary])
    chosen = faces[order]
    ptr = np.concatenate([[0], np.cumsum((chosen >= 0).sum(axis=1))])
    return Mesh.from_faces(points, ptr, chosen[chosen >= 0], cells[order], cells[inner[1]], patches)


def mesh_of_prisms(points, blocks, groups, thickness) -> Mesh:
    """Return a Mesh of one layer of prisms, made from plane polygons; its patches "front" and "back" are of kind
    "empty".

    The parameters are as in `mesh_of_solids`; ``thickness`` is the layer's.
    """
    points = np.column_stack([points, np.zeros((len(points), 3 - points.shape[1]))])
    for shape, members in blocks:
        _check_range(points, shape, members)
    used = np.unique(np.concatenate([members.ravel() for _, members in blocks]))
    height = points[used, 2]
    if np.ptp(height) > 1e-9 * np.ptp(points[used], axis=0).max():
        raise InputError(f"it has no solids, and its plane elements lie between z = {height.min():.6g} and z = "
                         f"{height.max():.6g}: a surface in space, or a plane that is turned; export the volume's "
                         "elements, or turn the plane to z = 0")
    edges, cells, polygons, first = [], [], [], 0
    for _, members in blocks:
        xy = points[members, :2]
        following = np.roll(xy, -1, axis=1)
        area = (xy[..., 0] * following[..., 1] - xy[..., 1] * following[..., 0]).sum(axis=1)
        members = np.where((area < 0)[:, None], members[:, ::-1], members)  # anticlockwise seen from the front
        polygons.append(members)
        edges.append(np.stack([members, np.roll(members, -1, axis=1)], axis=2).reshape(-1, 2))
        cells.append(np.repeat(np.arange(first, first + len(members)), members.shape[1]))
        first += len(members)
    edges, cells = np.concatenate(edges), np.concatenate(cells)
    inner, outer = _match(edges, cells, points)
    boundary, patches = _patches(edges, outer, groups, len(inner[0]), points)
    order, above = np.concatenate([inner[0], boundary]), len(points)
    low = edges[order]
    sides = np.column_stack([low[:, 0], low[:, 1], low[:, 1] + above, low[:, 0] + above])
    back, front = [p[:, ::-1].ravel() for p in polygons], [p.ravel() + above for p in polygons]
    lengths = np.concatenate([np.full(len(p), p.shape[1]) for p in polygons])
    ptr = np.concatenate([[0], np.cumsum(np.concatenate([np.full(len(sides), 4), lengths, lengths]))])
    owner = np.concatenate([cells[order], np.arange(first), np.arange(first)])
    patches += [Patch("back", len(sides), first, "empty"), Patch("front", len(sides) + first, first, "empty")]
    both = np.concatenate([points, points + [0.0, 0.0, thickness]])
    return Mesh.from_faces(both, ptr, np.concatenate([sides.ravel(), *back, *front]), owner, cells[inner[1]], patches)


def _check_range(points, shape, members):
    """Raise InputError if ``members``, the corners of cells of type ``shape``, has a number outside 0 … number of
    points − 1."""
    if members.size and not 0 <= members.min() <= members.max() < len(points):
        wrong = members.max() if members.max() >= len(points) else members.min()
        raise InputError(f"a cell of the type {shape} has the point {wrong}, but points are numbered 0 to "
                         f"{len(points) - 1}; write the mesh again")


def _turned(faces):
    """Return faces, shape (..., 4), with their corners in reverse order; a triangle's −1 stays last."""
    return np.where(faces[..., 3:] >= 0, faces[..., ::-1], faces[..., [2, 1, 0, 3]])


def _sorted(faces, n_points):
    """Return the corners of each face in ascending order; −1 (no corner) becomes n_points and comes last."""
    return np.sort(np.where(faces < 0, n_points, faces), axis=1)


def _match(faces, cells, points):
    """Find the pairs of equal faces; return ((first faces, second faces), unpaired faces), as indices into ``faces``.
    ``faces``: corners, shape (m, 4), −1 for none; ``cells``: the cell of each face.

    The first face of a pair belongs to the lower cell. Pairs are in the order of the matrix's upper triangle.
    """
    mates, corners = np.empty(len(faces), np.int64), _sorted(faces, len(points))
    if (one := kernels.match(corners, len(points), mates)) >= 0:
        three = cells[(corners == corners[one]).all(axis=1)]
        place = points[faces[one][faces[one] >= 0]].mean(axis=0)
        raise InputError(f"cells {', '.join(map(str, three))} share one face, near "
                         f"({', '.join(f'{x:.6g}' for x in place)}); a face lies between two cells at most: drop the "
                         "cell that overlaps")
    first = np.flatnonzero(mates > np.arange(len(faces)))       # faces are in the order of their cells
    second = mates[first]
    order = np.lexsort((cells[second], cells[first]))
    return (first[order], second[order]), np.flatnonzero(mates < 0)


def _patches(faces, outer, groups, start, points):
    """Return (boundary faces ordered by patch, list of Patch). Faces in no group come last, as the patch "boundary".

    ``faces``: corners of all faces; ``outer``: indices of the boundary faces; ``groups``: name → arrays of corners;
    ``start``: number of the first boundary face in the mesh.
    """
    names, of, corners = list(groups), np.full(len(outer), -1), _sorted(faces[outer], len(points))
    for number, name in enumerate(names):
        rows = np.concatenate([_find(corners, members, len(points)) for members in groups[name]])
        others = of[rows][(of[rows] >= 0) & (of[rows] != number)]
        if others.size:
            raise InputError(f"the groups {names[others[0]]!r} and {name!r} share "
                             f"{np.count_nonzero(others == others[0])} faces of the boundary, which can have one "
                             "condition only; give each face to one group")
        of[rows] = number
    names.append("boundary")
    of[of < 0] = len(names) - 1
    order = np.argsort(of, kind="stable")
    patches = []
    for number, size in enumerate(np.bincount(of, minlength=len(names))):
        if size:
            patches.append(Patch(names[number], start, int(size)))
            start += int(size)
    return outer[order], patches


def _find(corners, members, n_points):
    """Return, for each face of ``members``, the row of ``corners`` with the same corners; a face without such a row
    lies inside the domain and is left out. The rows of ``corners`` are sorted; ``members``: corners, shape (k, at most
    4)."""
    wanted = np.full((len(members), corners.shape[1]), n_points)
    wanted[:, :members.shape[1]] = members
    wanted.sort(axis=1)
    both = np.concatenate([corners, wanted])
    order = np.lexsort(both.T)
    new = np.ones(len(both), bool)
    new[1:] = (both[order[1:]] != both[order[:-1]]).any(axis=1)
    number = np.empty(len(both), np.int64)
    number[order] = np.cumsum(new) - 1
    row = np.full(len(both), -1)
    row[number[:len(corners)]] = np.arange(len(corners))
    places = row[number[len(corners):]]
    return places[places >= 0]
