"""Meshes for finite elements: one shape of cell, named regions, named boundaries.

Only corners describe a cell, in VTK's order. Elements of degree 2 use the midpoints of straight edges.
"""
from __future__ import annotations

from functools import cached_property

import numpy as np

from swell.core.encoding import printable
from swell.core.errors import InputError, MissingDependency
from swell.pde.helmholtz import mesh_file

CORNERS = {"triangle": 3, "quad": 4, "tetra": 4, "hexahedron": 8}
DIMENSION = {"triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3}
# scikit-fem's corner k of a cell is VTK's corner ORDER[shape][k].
ORDER = {"triangle": (0, 1, 2), "quad": (0, 1, 2, 3), "tetra": (0, 1, 2, 3), "hexahedron": (0, 4, 3, 1, 7, 5, 2, 6)}
CLASS = {"triangle": "MeshTri1", "quad": "MeshQuad1", "tetra": "MeshTet1", "hexahedron": "MeshHex1"}
EDGES = {"triangle": ((0, 1), (1, 2), (2, 0)), "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
         "tetra": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
         "hexahedron": ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7))}
OTHERS = "boundary"     # the name of the outer facets without a group
FLAT = 1e-12            # |determinant| / (longest edge)^dim up to which a cell counts as without volume


def require_skfem():
    """Return the module skfem; raise MissingDependency, with the command that installs it, if it is missing."""
    try:
        import skfem
    except ImportError as error:
        raise MissingDependency(f"finite elements need scikit-fem ({error}): {mesh_file.INSTALL}") from None
    return skfem


class Mesh:
    """A checked mesh of cells of one shape.

    Parameters
    ----------
    points : array, shape (p, dim)
        Points that no cell uses are dropped. A plane mesh may have two or three coordinates, and keeps two.
    shape : {"tetra", "hexahedron", "triangle", "quad"}
    cells : array of int, shape (n, corners)
        Corners in VTK's order.
    regions : dict of str to array of int
        Name → cells.
    groups : dict of str to array of int, shape (k, corners of a facet)
        Name of a boundary → its facets (faces in 3D, edges in 2D), as corners. Outer facets without a group make the
        boundary "boundary".

    Attributes
    ----------
    boundaries : dict of str to array of int
        Name → numbers of facets.
    exterior : bool array
        True for facets with a cell on one side only.

    Raises
    ------
    InputError
        For cells without volume, folded or inverted, or facets of no cell; the message says which and where.
    """

    def __init__(self, points, shape, cells, regions=None, groups=None):
        if shape not in CORNERS:
            raise InputError(f"cells of the shape {shape!r}: expected one of {', '.join(CORNERS)}")
        cells = _integers(cells, "cells")
        if cells.ndim != 2 or cells.shape[1] != CORNERS[shape] or not len(cells):
            raise InputError(f"cells have shape {cells.shape}: expected (n, {CORNERS[shape]}) for the shape {shape!r}")
        points = np.asarray(points, float)
        if points.ndim != 2 or not np.isfinite(points).all():
            raise InputError("points: expected finite numbers of shape (p, 2) or (p, 3)")
        if cells.min() < 0 or cells.max() >= len(points):
            raise InputError(f"a cell has the point {cells.max() if cells.max() >= len(points) else cells.min()}, but "
                             f"points are numbered 0 to {len(points) - 1}")
        used, inverse = np.unique(cells, return_inverse=True)
        self.shape, self.dim = shape, DIMENSION[shape]
        self.points = np.ascontiguousarray(_in_plane(points[used]) if self.dim == 2 else points[used])
        self.cells = inverse.reshape(cells.shape)
        self.regions = {name: _integers(of, f"region {name!r}") for name, of in (regions or {}).items()}
        self._check_cells()
        self._check_sides()
        number = np.full(len(points), -1, np.int64)
        number[used] = np.arange(len(used))
        self.boundaries = self._named({name: number[_integers(of, f"boundary {name!r}")]
                                       for name, of in (groups or {}).items()})

    @cached_property
    def fem(self):
        """The mesh as an object of scikit-fem."""
        skfem = require_skfem()
        order = list(ORDER[self.shape])
        return getattr(skfem, CLASS[self.shape])(np.ascontiguousarray(self.points.T),
                                                 np.ascontiguousarray(self.cells[:, order].T))

    @cached_property
    def exterior(self):
        return self.fem.f2t[1] < 0

    @cached_property
    def facet_centres(self):
        """The mean of each facet's corners, shape (facets, dim)."""
        return self.points[self.fem.facets].mean(axis=0)

    @cached_property
    def centres(self):
        """The mean of each cell's corners, shape (n, dim)."""
        return self.points[self.cells].mean(axis=1)

    @cached_property
    def mean_edges(self):
        """The mean length of each cell's edges, shape (n,)."""
        return np.mean([self._length(*edge) for edge in EDGES[self.shape]], axis=0)

    @cached_property
    def parts(self) -> int:
        """Number of connected components; cells are connected across facets."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        inside = self.fem.f2t[:, ~self.exterior]
        links = sp.coo_matrix((np.ones(inside.shape[1], np.int8), tuple(inside)), shape=(len(self.cells),) * 2)
        return int(connected_components(links, directed=False)[0])

    def _length(self, a, b):
        return np.linalg.norm(self.points[self.cells[:, a]] - self.points[self.cells[:, b]], axis=1)

    def _check_cells(self):
        """Raise InputError for flat or folded cells: the Jacobian must keep its sign at the Gauss points."""
        x = self.points[self.cells]
        longest = np.max([self._length(*edge) for edge in EDGES[self.shape]], axis=0)
        dets = np.stack([np.linalg.det(np.einsum("nkd,ke->nde", x, slope)) for slope in _slopes(self.shape)])
        tiny = FLAT * longest ** self.dim
        flat, folded = (abs(dets) <= tiny).any(axis=0), (dets > tiny).any(axis=0) & (dets < -tiny).any(axis=0)
        for bad, what in ((flat, "has no volume (points coincide, or lie in one plane)"),
                          (folded, "is folded: its corners have another order than VTK's, or it is inverted in part")):
            if bad.any():
                cell, count = int(np.argmax(bad)), np.count_nonzero(bad)
                place = ", ".join(f"{v:.6g}" for v in x[cell].mean(axis=0))
                raise InputError(f"cell {cell}{f' (the first of {count})' if count > 1 else ''} near ({place}) {what}: "
                                 "repair the mesh")

    def _check_sides(self):
        """Raise InputError unless two cells lie on opposite sides of their facet; otherwise one is inverted.

        The check does not depend on the numbering of the corners."""
        reference = self.fem.elem.refdom
        centre = reference.p.mean(axis=1)
        handed = np.sign(self.fem.mapping().detDF(centre[:, None])[:, 0])
        sides = np.zeros(self.fem.nfacets)                       # sum of the two cells' outward directions, +1 and −1
        for facet, corners in zip(self.fem.t2f, reference.facets):
            outward = handed * _turn(reference.p[:, corners].T, centre) * _orientation(self.fem.t[corners])
            sides += np.bincount(facet, outward, len(sides))
        bad = np.flatnonzero((sides != 0) & ~self.exterior)
        if bad.size:
            cell = int(np.argmax(np.bincount(self.fem.f2t[:, bad].ravel())))
            place = ", ".join(f"{v:.6g}" for v in self.centres[cell])
            raise InputError(f"cell {cell} near ({place}) lies on the same side of a face as its neighbour; {bad.size} "
                             "faces have this problem: cells are inverted, or overlap: repair the mesh")

    def _named(self, groups) -> dict:
        """Return name → facet numbers, from ``groups``, name → corners of facets. Outer facets without a group belong
        to the name `OTHERS`."""
        facets = np.sort(self.fem.facets.T, axis=1)
        members = [np.sort(np.asarray(of, np.int64).reshape(-1, facets.shape[1]), axis=1) for of in groups.values()]
        every = np.concatenate([facets, *members])
        order = np.lexsort(every.T[::-1])                        # stable: the mesh's own facet comes first
        new = np.ones(len(every), bool)
        new[1:] = (every[order[1:]] != every[order[:-1]]).any(axis=1)
        number = np.empty(len(every), np.int64)
        number[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(every)), 0))]
        named, first = {}, len(facets)
        for name, of in zip(groups, members):
            facet_of = number[first:first + len(of)]
            if (facet_of >= len(facets)).any():
                k = int(np.argmax(facet_of >= len(facets)))
                raise InputError(f"boundary {name!r} has a face with the points {of[k].tolist()} that is the face of "
                                 "no cell: the boundary's mesh and the volume's mesh do not belong together")
            named[name], first = np.unique(facet_of), first + len(of)
        free = self.exterior.copy()
        for of in named.values():
            free[of] = False
        if free.any():
            named[OTHERS] = np.union1d(named.get(OTHERS, np.zeros(0, np.int64)), np.flatnonzero(free))
        return named

    def facts(self) -> dict:
        """Statistics in plain types: cells, points, edge lengths, bounds, regions, boundaries."""
        edges = self.mean_edges
        return {"cells": len(self.cells), "shape": self.shape, "points": len(self.points),
                "size": {"min": float(edges.min()), "mean": float(edges.mean()), "max": float(edges.max())},
                "lower": self.points.min(axis=0).tolist(), "upper": self.points.max(axis=0).tolist(),
                "regions": {name: len(of) for name, of in self.regions.items()},
                "boundaries": {name: len(of) for name, of in self.boundaries.items()}}

    def write(self, path):
        """Write the mesh with its names as a Gmsh file (.msh), which `read_mesh` reads."""
        mesh_file.write(path, self)

    @printable
    def __str__(self):
        facts = self.facts()
        box = " × ".join(f"{high - low:.4g}" for low, high in zip(facts["lower"], facts["upper"]))
        size = facts["size"]
        return (f"{facts['cells']} cells ({self.shape}), {facts['points']} points, {box} m; edges {size['min']:.3g} to "
                f"{size['max']:.3g} m; boundaries: "
                + ", ".join(f"{name} ({count})" for name, count in facts["boundaries"].items()))


def _integers(numbers, name):
    """Return numbers of points or cells as an int64 array. Raises InputError for another type, which NumPy would
    truncate; ``name``: their name in the message."""
    array = np.asarray(numbers)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {array.dtype}: expected integers; np.flatnonzero(mask) of a mask")
    return array.astype(np.int64)


def _in_plane(points):
    """Return only x and y of points; raise InputError unless they lie in a plane z = const."""
    if points.shape[1] == 3 and np.ptp(points[:, 2]) > 1e-9 * max(np.ptp(points[:, 0]), np.ptp(points[:, 1])):
        raise InputError("the mesh is a surface in space (its z varies): expected solids, or a plane mesh")
    return points[:, :2]


def _turn(corners, centre):
    """Return +1 if a facet's normal, by the order of its corners (k, dim), points away from the cell's centre; −1
    otherwise."""
    along = corners[1:3] - corners[0]
    normal = np.cross(*along) if len(along) == 2 else np.array([along[0, 1], -along[0, 0]])
    return np.sign(normal @ (corners[0] - centre))


def _orientation(corners):
    """Return ±1 for each facet: the sense in which its corners, shape (corners, facets), go around it. Two cells that
    list a facet in opposite senses get opposite signs."""
    if len(corners) < 4:
        pairs = [(i, j) for j in range(len(corners)) for i in range(j)]
        return np.prod([np.where(corners[i] < corners[j], 1, -1) for i, j in pairs], axis=0)
    least, faces = corners.argmin(axis=0), np.arange(corners.shape[1])
    return np.where(corners[(least + 1) % 4, faces] < corners[least - 1, faces], 1, -1)


def _slopes(shape):
    """Return a list of arrays of shape (corners, dim), one for each Gauss point: the gradients there of the degree-1
    basis functions of the reference cell."""
    if shape in ("triangle", "tetra"):
        dim = DIMENSION[shape]
        return [np.vstack([-np.ones(dim), np.eye(dim)])]
    signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    if shape == "hexahedron":
        signs = np.array([(*c, z) for z in (-1, 1) for c in signs])
    gradients = []
    for at in signs / np.sqrt(3):
        parts = (1 + signs * at) / 2                             # a basis function is the product over the axes
        gradients.append(np.stack([signs[:, d] / 2 * np.delete(parts, d, axis=1).prod(axis=1)
                                   for d in range(signs.shape[1])], axis=1))
    return gradients
