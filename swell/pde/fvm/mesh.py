"""Meshes of arbitrary polyhedra as lists of faces, in OpenFOAM's order.

Each face lists its points and the cell it belongs to (owner). An internal face also names the cell on its other side
(neighbour). Internal faces come first. Seen from outside the owner, a face's points run anticlockwise. Its area vector
therefore points from owner to neighbour, or out of the domain. The faces of a patch are consecutive.
"""
from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError, meant
from swell.pde.fvm import check
from swell.pde.fvm.geometry import Geometry, aspect_ratios, geometry, non_orthogonality
from swell.pde.fvm.periodic import CoupledMesh, check_pairs, pairs


CUT = "cut"             # kind of a patch beyond which the mesh continues in another rank's part


@dataclass(frozen=True)
class Patch:
    """A named part of the boundary: the faces from ``start`` up to, not including, ``start + size``.

    Parameters
    ----------
    name : str
    start : int
        The first face, counted among all faces of the mesh.
    size : int
        Number of faces.
    kind : str
        "patch" for a boundary that needs a condition. Three kinds need none: "empty", the front and back of a
        two-dimensional mesh, which nothing crosses; "cut", where the mesh continues in another rank's part; "cyclic",
        where it continues at another patch. OpenFOAM's other types ("wall", "symmetry", ...) keep their names. Types
        that couple faces in other ways are refused.
    neighbour : str
        The name of the patch that a cyclic patch is coupled with, face by face; or of the cyclic patch through which a
        patch leads to another part.
    """

    name: str
    start: int
    size: int
    kind: str = "patch"
    neighbour: str = ""

    @property
    def faces(self) -> slice:
        """The patch's faces, as a slice of all faces of the mesh."""
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of polyhedra. `Mesh.from_faces` builds and checks one; `box` builds one without the checks.

    In shapes, p, f, fi and n are the numbers of points, faces, internal faces and cells.

    Parameters
    ----------
    points : numpy.ndarray, shape (p, 3), float64
    face_ptr : numpy.ndarray, shape (f + 1,), int32
        The points of face i are face_points[face_ptr[i]:face_ptr[i + 1]], anticlockwise seen from outside its owner.
    face_points : numpy.ndarray, shape (face_ptr[-1],), int32
    owner : numpy.ndarray, shape (f,), int32
        The cell that each face belongs to.
    neighbour : numpy.ndarray, shape (fi,), int32
        The other cell of each internal face; always greater than the owner. Internal faces come first.
    patches : tuple of Patch
        The patches that cover the boundary faces, in order.
    """

    points: np.ndarray
    face_ptr: np.ndarray
    face_points: np.ndarray
    owner: np.ndarray
    neighbour: np.ndarray
    patches: tuple[Patch, ...]

    @classmethod
    def from_faces(cls, points, face_ptr, face_points, owner, neighbour, patches=None) -> Mesh:
        """Build a mesh from its faces, and check it.

        Parameters
        ----------
        points : array_like, shape (p, 3) or (p, 2)
            Points that no face uses are kept.
        face_ptr, face_points : array_like of int
            The points of each face; see `Mesh`.
        owner : array_like of int, shape (f,)
        neighbour : array_like of int, shape (fi,)
            Internal faces come first. Where owner > neighbour, this function swaps the two and reverses the face.
        patches : sequence of Patch, optional
            Patches that cover the boundary faces; one patch "boundary" by default.

        Returns
        -------
        Mesh

        Raises
        ------
        InputError
            For indices out of range, duplicate faces, faces without area, cells that are open or whose volume is not
            positive, patches that do not cover the boundary, cyclic patches that do not match. The message names the
            face, the cell or the patch, and its location.

        Examples
        --------
        >>> from swell.pde.fvm import Mesh
        >>> tetrahedron = [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]
        >>> mesh = Mesh.from_faces([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 3, 6, 9, 12],
        ...                        sum(tetrahedron, []), owner=[0, 0, 0, 0], neighbour=[])
        >>> round(6 * float(mesh.volumes[0]), 12)
        1.0
        """
        points = check.points(points)
        face_ptr, face_points = check.faces(face_ptr, face_points, len(points))
        owner, neighbour = check.cells(owner, neighbour, len(face_ptr) - 1)
        patches = check.patches(patches, neighbour.size, owner.size, Patch)
        backwards = owner[:neighbour.size] > neighbour
        if backwards.any():
            face_points = reverse_faces(face_ptr, face_points, np.flatnonzero(backwards))
            first = owner[:neighbour.size]
            owner = np.concatenate([np.minimum(first, neighbour), owner[neighbour.size:]])
            neighbour = np.maximum(first, neighbour)
        mesh = cls(points, face_ptr, face_points, owner, neighbour, patches)
        check.no_face_twice(mesh)
        check.shapes(mesh)
        check_pairs(mesh)
        return mesh

    ranks = None                                 # a PartMesh has its Communicator here

    def agreed(self):
        """Return a context in which an error on one rank is raised on all ranks of a PartMesh."""
        return nullcontext()

    def with_ghosts(self, values):
        """Return cell data as they are; a PartMesh appends the values of other ranks' cells."""
        return values

    def of_ranks(self, value) -> list:
        """Return the list of ``value`` on each rank that has a part of the mesh; [value] of a whole mesh."""
        return [value]

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_faces(self) -> int:
        """Number of faces, internal and boundary."""
        return self.owner.size

    @property
    def n_internal(self) -> int:
        """Number of faces between two cells."""
        return self.neighbour.size

    @functools.cached_property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(max(self.owner.max(initial=-1), self.neighbour.max(initial=-1))) + 1

    @functools.cached_property
    def parts(self) -> np.ndarray:
        """The connected component of each cell, shape (n,), counted from 0; most meshes have one component."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        first, second = self.links
        links = sp.coo_matrix((np.ones(first.size, np.int8), (first, second)), shape=(self.n_cells,) * 2)
        return connected_components(links, directed=False)[1]

    @functools.cached_property
    def pairs(self) -> np.ndarray:
        """The two faces of each cyclic pair between two different cells, shape (2, pairs)."""
        return pairs(self)

    @functools.cached_property
    def coupled(self) -> CoupledMesh:
        """A CoupledMesh of this mesh, in which each cyclic pair is one face."""
        return CoupledMesh.of(self)

    @property
    def links(self) -> tuple:
        """(first cells, second cells) of the internal faces, then of the cyclic pairs."""
        first, second = self.owner[self.pairs]
        return np.concatenate([self.owner[:self.n_internal], first]), np.concatenate([self.neighbour, second])

    @functools.cached_property
    def geometry(self) -> Geometry:
        """Areas, volumes and centres, computed on first use."""
        return geometry(self)

    @property
    def face_areas(self) -> np.ndarray:
        """Area vectors, shape (f, 3); they point from owner to neighbour, or outwards."""
        return self.geometry.face_areas

    @property
    def face_centres(self) -> np.ndarray:
        """Centroids of the faces, shape (f, 3)."""
        return self.geometry.face_centres

    @property
    def volumes(self) -> np.ndarray:
        """Volumes of the cells, shape (n,)."""
        return self.geometry.volumes

    @property
    def centres(self) -> np.ndarray:
        """Centroids of the cells, shape (n, 3)."""
        return self.geometry.centres

    def patch(self, name: str) -> Patch:
        """Return the patch of the given name.

        Raises
        ------
        InputError
            If no patch has that name; the message suggests the nearest one.
        """
        names = [patch.name for patch in self.patches]
        if name in names:
            return self.patches[names.index(name)]
        raise InputError(f"the mesh has no patch {name!r}: {meant(name, names)}There are: {', '.join(names) or 'none'}")

    def facts(self) -> dict:
        """Statistics in plain types: sizes, patches, components, volumes, angles (degrees), aspect ratios."""
        angles, aspects = non_orthogonality(self), aspect_ratios(self)
        return {
            "cells": self.n_cells, "faces": self.n_faces, "internal_faces": self.n_internal, "points": self.n_points,
            "patches": [{"name": p.name, "faces": p.size, "kind": p.kind,
                         "area": float(np.linalg.norm(self.face_areas[p.faces], axis=1).sum()),
                         **({"neighbour": p.neighbour} if p.neighbour else {})} for p in self.patches],
            "parts": int(self.parts.max()) + 1, "volume": float(self.volumes.sum()),
            "cell_volume": {"min": float(self.volumes.min()), "max": float(self.volumes.max())},
            "non_orthogonality": {"max": float(angles.max(initial=0.0)),
                                  "mean": float(angles.mean()) if angles.size else 0.0},
            "aspect_ratio": {"max": float(aspects.max()), "mean": float(aspects.mean())},
        }

    def __repr__(self):
        return (f"Mesh({self.n_cells} cells, {self.n_faces} faces, {self.n_points} points; patches "
                f"{', '.join(patch.name for patch in self.patches)})")


def reverse_faces(face_ptr, face_points, faces):
    """Return a copy of face_points (see ``Mesh``) in which the points of the given faces run the other way; each face
    keeps its first point."""
    points = face_points.copy()
    lengths = np.diff(face_ptr)[faces]
    starts = np.repeat(face_ptr[faces], lengths)
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    points[starts + place] = face_points[starts + (-place) % np.repeat(lengths, lengths)]
    return points
