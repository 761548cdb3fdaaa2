"""From elements, which list their corners, to the faces of a mesh.

Two cells have the same face if it has the same corners: all faces of all cells are sorted by them, so that the sides of
an internal face become neighbours. A cell that is numbered inside out is turned round.

Cost: sorting, about a second for a million hexahedra.
"""
from __future__ import annotations

import re

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.mesh import Mesh, Patch

DIMENSION = {"vertex": 0, "line": 1, "triangle": 2, "quad": 2, "polygon": 2,
             "tetra": 3, "pyramid": 3, "wedge": 3, "hexahedron": 3}
COUNT = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
# The faces of each solid, all of one orientation; triangles are padded with -1.
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
    """The shape of a block of cells, and their corners, shape (cells, corners).

    Raises
    ------
    InputError
        A type that is not read.
    """
    found = KIND.fullmatch(kind)
    if not found:
        raise InputError(f"it has {len(data)} cells of the type {kind!r}, expected tetra, hexahedron, wedge, pyramid, "
                         "or triangle, quad, polygon in the plane; leave them out or split them into those")
    shape = SHORT.get(found[1].lower(), found[1].lower())
    data = np.asarray(data, dtype=np.int64)
    return shape, data if shape == "polygon" else data[:, :COUNT[shape]]


def mesh_of_solids(points, blocks, groups) -> Mesh:
    """A mesh of solids.

    Parameters
    ----------
    points : numpy.ndarray, shape (p, 3)
    blocks : list of (str, numpy.ndarray)
        Shapes, and corners as `corners` gives them; cells are numbered through.
    groups : dict of str to list of numpy.ndarray
        Faces of the boundary by patch, as their corners.

    Returns
    -------
    Mesh
    """
    faces, cells, first = [], [], 0
    for shape, members in blocks:
        _check_range(points, shape, members)
        template = np.array(FACES[shape])
        of = np.where(template >= 0, members[:, template], -1)              # (cells, faces, 4)
        inside_out = _volumes(points, of) < 0
        of[inside_out] = _turned(of[inside_out])
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
    """A plane mesh of polygons, extruded by one layer, whose patches "front" and "back" are of kind "empty".

    Parameters are those of `mesh_of_solids`, and the thickness of the layer.
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
    """Corners are points that there are."""
    if members.size and not 0 <= members.min() <= members.max() < len(points):
        wrong = members.max() if members.max() >= len(points) else members.min()
        raise InputError(f"a cell of the type {shape} has the point {wrong}, but points are numbered 0 to "
                         f"{len(points) - 1}; write the mesh again")


def _volumes(points, faces):
    """Six times the volumes that the faces (cells, faces, 4) enclose, seen from each cell's first corner; signed."""
    start = points[faces[:, :1, 0]]
    a, b, c, d = (points[faces[..., k]] - start for k in range(4))
    volume = np.einsum("cfi,cfi->cf", a, np.cross(b, c))
    volume += np.where(faces[..., 3] >= 0, np.einsum("cfi,cfi->cf", a, np.cross(c, d)), 0.0)
    return volume.sum(axis=1)


def _turned(faces):
    """Faces with their corners in the opposite order, -1 still last."""
    return np.where(faces[..., 3:] >= 0, faces[..., ::-1], faces[..., [2, 1, 0, 3]])


def _key(faces, n_points):
    """Two integers for each face, the same for the same corners in any order."""
    corners = np.sort(np.where(faces < 0, n_points, faces), axis=1)
    if corners.shape[1] == 2:
        return corners[:, 0], corners[:, 1]
    if corners.shape[1] == 3:
        corners = np.column_stack([corners, np.full(len(corners), n_points)])
    base = n_points + 1                         # 32-bit indices: two of them fit into 64 bits
    return corners[:, 0] * base + corners[:, 1], corners[:, 2] * base + corners[:, 3]


def _match(faces, cells, points):
    """Which faces are two sides of one: ((first sides, second sides), the others).

    First sides are those of the lower cell, in the order of the matrix's upper triangle.
    """
    high, low = _key(faces, len(points))
    order = np.lexsort((cells, low, high))
    same = (high[order[1:]] == high[order[:-1]]) & (low[order[1:]] == low[order[:-1]])
    thrice = same[1:] & same[:-1]
    if thrice.any():
        three = order[np.argmax(thrice):][:3]
        place = points[faces[three[0]][faces[three[0]] >= 0]].mean(axis=0)
        raise InputError(f"cells {', '.join(map(str, cells[three]))} share one face, near ({place[0]:.6g}, "
                         f"{place[1]:.6g}, {place[2]:.6g}); a face lies between two cells at most: drop the "
                         "cell that overlaps")
    pairs = np.flatnonzero(same)
    one, two = order[pairs], order[pairs + 1]
    alone = np.ones(len(faces), bool)
    alone[one] = alone[two] = False
    sorting = np.lexsort((cells[two], cells[one]))
    return (one[sorting], two[sorting]), np.flatnonzero(alone)


def _patches(faces, outer, groups, start, points):
    """The faces of the boundary ordered by patch, and the patches; those in no group come last, as "boundary"."""
    of = np.full(len(outer), -1)
    high, low = _key(faces[outer], len(points))
    sorting = np.lexsort((low, high))
    pairs = np.empty(len(outer), [("high", np.int64), ("low", np.int64)])
    pairs["high"], pairs["low"] = high[sorting], low[sorting]
    names = list(groups)
    for number, name in enumerate(names):
        for members in groups[name]:
            wanted = np.empty(len(members), pairs.dtype)
            wanted["high"], wanted["low"] = _key(members, len(points))
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            found = sorting[at[pairs[at] == wanted]]        # the others lie inside the domain
            others = of[found][(of[found] >= 0) & (of[found] != number)]
            if others.size:
                raise InputError(f"the groups {names[others[0]]!r} and {name!r} share "
                                 f"{np.count_nonzero(others == others[0])} faces of the boundary, which can have one condition only; "
                                 "give each face to one group")
            of[found] = number
    names.append("boundary")
    of[of < 0] = len(names) - 1
    order = np.argsort(of, kind="stable")
    patches = []
    for number, size in enumerate(np.bincount(of, minlength=len(names))):
        if size:
            patches.append(Patch(names[number], start, int(size)))
            start += int(size)
    return outer[order], patches
