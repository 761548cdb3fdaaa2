"""Extraction of some cells of a mesh, with layers of neighbours around them, as a smaller mesh."""
from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from swell.pde.fvm.mesh import CUT, Mesh, Patch, reverse_faces


@dataclass(frozen=True, eq=False)
class Faces:
    """A table of some faces of a larger mesh; cells, faces and patches have the larger mesh's numbers.

    Attributes
    ----------
    number : int array, shape (f,)
        The faces' numbers.
    owner, neighbour : int arrays, shape (f,)
        The cells on both sides; neighbour is −1 at the boundary.
    patch : int array, shape (f,)
        The index of the patch; −1 between two cells.
    points, face_ptr, face_points : arrays
        See `Mesh`.
    """

    number: np.ndarray
    owner: np.ndarray
    neighbour: np.ndarray
    patch: np.ndarray
    points: np.ndarray
    face_ptr: np.ndarray
    face_points: np.ndarray

    @classmethod
    def of(cls, mesh, faces) -> "Faces":
        """Return a table of the faces with the given numbers of a Mesh."""
        neighbour, patch = np.full(faces.size, -1, np.int64), np.full(faces.size, -1, np.int64)
        internal = faces < mesh.n_internal
        neighbour[internal] = mesh.neighbour[faces[internal]]
        patch[~internal] = np.searchsorted([p.start for p in mesh.patches], faces[~internal], side="right") - 1
        return cls(faces, mesh.owner[faces].astype(np.int64), neighbour, patch, mesh.points, *points_of(mesh, faces))

    def touching(self, cells) -> "Faces":
        """Return a table of the faces of the given cells (ascending), with only the points that they use."""
        wanted = np.flatnonzero((places(cells, self.owner) >= 0) | (places(cells, self.neighbour) >= 0))
        ptr, points = points_of(self, wanted)
        used, points = np.unique(points, return_inverse=True)
        return Faces(self.number[wanted], self.owner[wanted], self.neighbour[wanted], self.patch[wanted],
                     self.points[used], ptr, points)

    def with_others(self, others) -> "Faces":
        """Return this table merged with ``others``, a list of Faces of the same mesh; duplicates are dropped."""
        tables = [self, *others]
        ends = np.cumsum([0] + [table.face_points.size for table in tables])
        shifts = np.cumsum([0] + [len(table.points) for table in tables])
        number = np.concatenate([table.number for table in tables])
        _, kept = np.unique(number, return_index=True)
        whole = Faces(*(np.concatenate([getattr(table, name) for table in tables])
                        for name in ("number", "owner", "neighbour", "patch", "points")),
                      np.concatenate([[0], *(table.face_ptr[1:] + end for table, end in zip(tables, ends))]),
                      np.concatenate([table.face_points + shift for table, shift in zip(tables, shifts)]))
        return Faces(number[kept], whole.owner[kept], whole.neighbour[kept], whole.patch[kept], whole.points,
                     *points_of(whole, kept))


@dataclass(frozen=True, eq=False)
class SubMesh:
    """A part of a mesh.

    Attributes
    ----------
    mesh : Mesh
        The cells in ascending order. It has the whole mesh's patches, restricted to the faces that are here, and one
        more for the cut faces. Nothing flows through a cut; the layers keep its effect away from the wanted cells.
    cells, faces : int arrays
        The numbers of this mesh's cells and faces in the whole mesh.
    reversed : array of bool, shape (faces,)
        True for faces whose owner in the whole mesh is not here. Here their neighbour owns them, and they are reversed.
    own : int array
        The positions in ``cells`` of the wanted cells, without the layers.
    """

    mesh: Mesh
    cells: np.ndarray
    faces: np.ndarray
    reversed: np.ndarray
    own: np.ndarray

    @classmethod
    def around(cls, mesh, wanted, layers) -> "SubMesh":
        """Return a SubMesh with the cells ``wanted`` of a mesh (ascending) and ``layers`` layers of neighbour cells,
        across faces."""
        inside = np.zeros(mesh.n_cells, bool)
        inside[wanted] = True
        first, second = mesh.links
        for _ in range(layers):
            touched = inside[first] | inside[second]
            inside[first[touched]] = inside[second[touched]] = True
        here = inside[mesh.owner]
        here[:mesh.n_internal] |= inside[mesh.neighbour]
        faces = Faces.of(mesh, np.flatnonzero(here))
        cut = mesh.pairs[:, inside[mesh.owner[mesh.pairs]].sum(axis=0) == 1]          # pairs with one cell here
        faces.patch[np.isin(faces.number, cut)] = -1
        return cls.of(faces, np.flatnonzero(inside), wanted, mesh.patches)

    @classmethod
    def of(cls, faces, cells, wanted, patches) -> "SubMesh":
        """Return the SubMesh of ``cells`` (ascending), made from a table of their faces. ``wanted``: the cells without
        the layers, ``patches``: those of the whole mesh."""
        first, second = places(cells, faces.owner), places(cells, faces.neighbour)
        internal = np.flatnonzero((first >= 0) & (second >= 0))
        outer = np.flatnonzero(faces.patch >= 0)
        outer = outer[np.argsort(faces.patch[outer], kind="stable")]
        cut = np.flatnonzero((faces.patch < 0) & ((first < 0) != (second < 0)))
        chosen = np.concatenate([internal, outer, cut])
        backwards = np.zeros(chosen.size, bool)
        backwards[internal.size + outer.size:] = first[cut] < 0
        owner = np.where(backwards, second[chosen], first[chosen])
        sizes = np.bincount(faces.patch[outer], minlength=len(patches))
        starts = internal.size + np.concatenate([[0], np.cumsum(sizes)])
        here = [replace(patch, start=int(start), size=int(size)) for patch, start, size in zip(patches, starts, sizes)]
        here.append(Patch("cut by the partition", int(starts[-1]), cut.size, CUT))
        ptr, points = points_of(faces, chosen)
        if backwards.any():
            points = reverse_faces(ptr, points, np.flatnonzero(backwards))
        part = Mesh(faces.points, ptr, points.astype(np.int32), owner.astype(np.int32),
                    second[internal].astype(np.int32), tuple(here))
        return cls(part, cells, faces.number[chosen], backwards, places(cells, wanted))

    def conditions(self, whole, mesh) -> dict:
        """Return the conditions (patch name → condition) with per-face arrays restricted to this part's faces.
        ``whole``: the conditions on ``mesh``, the whole mesh."""
        return {name: _restricted(condition, self._among(mesh.patch(name)) if name in _names(mesh) else None)
                for name, condition in whole.items()}

    def of_cells(self, value, mesh):
        """Return ``value``, cell or face data of ``mesh`` (the whole mesh), restricted to this part; numbers and
        functions are returned unchanged."""
        if callable(value) or np.ndim(value) == 0:
            return value
        value = np.asarray(value)
        if value.shape[0] == mesh.n_cells:
            return value[self.cells]
        return value[self.faces] if value.shape[0] == mesh.n_faces else value

    def _among(self, patch):
        """Return the faces of a whole-mesh patch that are in this part, as positions within the patch."""
        here = self.faces[(self.faces >= patch.start) & (self.faces < patch.start + patch.size)]
        return here - patch.start


def places(cells, values):
    """Return the position of each of ``values`` in ``cells``, which ascends; −1 for values not found."""
    place = np.searchsorted(cells, values)
    found = place < cells.size
    found[found] = cells[place[found]] == values[found]
    return np.where(found, place, -1)


def points_of(mesh, faces):
    """Return (face_ptr, face_points) of only the given faces of a Mesh or of a Faces table."""
    lengths = np.diff(mesh.face_ptr)[faces]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], lengths)
    return ptr, mesh.face_points[np.repeat(mesh.face_ptr[faces], lengths) + place]


def _names(mesh):
    return [patch.name for patch in mesh.patches]


def _restricted(condition, kept):
    """Return a condition with its per-face arrays restricted to the faces ``kept`` (positions within the patch); None:
    return it unchanged."""
    if kept is None or not is_dataclass(condition):
        return condition
    arrays = {f.name: np.asarray(getattr(condition, f.name)) for f in fields(condition)
              if not callable(getattr(condition, f.name))}
    return replace(condition, **{name: value[kept] for name, value in arrays.items() if value.ndim})
