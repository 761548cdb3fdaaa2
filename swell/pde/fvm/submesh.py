"""A part of a mesh: some cells, with layers of neighbours around them, as a mesh of their own."""
from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from swell.pde.fvm.boundary import Neumann
from swell.pde.fvm.mesh import Mesh, Patch, turned_round

CUT = "cut by the partition"


@dataclass(frozen=True, eq=False)
class SubMesh:
    """A part of a mesh.

    Attributes
    ----------
    mesh : Mesh
        Of ``cells`` in ascending order. Its patches are those of the whole mesh, with the faces that are here, and one
        more where it was cut.
    cells, faces : int arrays
        Their numbers in the whole mesh.
    turned : array of bool, shape (faces,)
        Faces whose owner, there, is not here: their neighbour owns them, turned round.
    own : int array
        Places among ``cells`` of those without the layers.
    """

    mesh: Mesh
    cells: np.ndarray
    faces: np.ndarray
    turned: np.ndarray
    own: np.ndarray

    @classmethod
    def around(cls, mesh, wanted, layers) -> "SubMesh":
        """The wanted cells (ascending), and so many layers of cells that share a face with them."""
        inside = np.zeros(mesh.n_cells, bool)
        inside[wanted] = True
        first, second = mesh.owner[:mesh.n_internal], mesh.neighbour
        for _ in range(layers):
            beside = inside[first] | inside[second]
            inside[first[beside]] = inside[second[beside]] = True
        cells = np.flatnonzero(inside)
        number = np.full(mesh.n_cells, -1, np.int64)
        number[cells] = np.arange(cells.size)
        outer = np.flatnonzero(inside[mesh.owner[mesh.n_internal:]]) + mesh.n_internal
        internal = np.flatnonzero(inside[first] & inside[second])
        cut = np.flatnonzero(inside[first] ^ inside[second])
        faces = np.concatenate([internal, outer, cut])
        turned = np.zeros(faces.size, bool)
        turned[internal.size + outer.size:] = ~inside[first[cut]]
        owner = np.where(turned, mesh.neighbour[np.minimum(faces, mesh.n_internal - 1)], mesh.owner[faces])
        patches, start = [], internal.size
        for patch in mesh.patches:
            size = int(np.count_nonzero((outer >= patch.start) & (outer < patch.start + patch.size)))
            patches.append(Patch(patch.name, start, size, patch.kind))
            start += size
        patches.append(Patch(CUT, start, cut.size))
        ptr, points = _points(mesh, faces)
        if turned.any():
            points = turned_round(ptr, points, np.flatnonzero(turned))
        part = Mesh(mesh.points, ptr, points, number[owner].astype(np.int32), number[second[internal]].astype(np.int32),
                    tuple(patches))
        return cls(part, cells, faces, turned, number[wanted])

    def conditions(self, whole, mesh) -> dict:
        """The conditions of the whole mesh here. What holds at the cut does not matter for the cells asked for."""
        here = {name: _restricted(condition, self._among(mesh.patch(name)) if name in _names(mesh) else None)
                for name, condition in whole.items()}
        return {**here, CUT: Neumann(0.0)}

    def of_cells(self, value, mesh):
        """Data of the cells or of the faces of the whole mesh here; numbers and functions stay as they are."""
        if callable(value) or np.ndim(value) == 0:
            return value
        value = np.asarray(value)
        if value.shape[0] == mesh.n_cells:
            return value[self.cells]
        return value[self.faces] if value.shape[0] == mesh.n_faces else value

    def _among(self, patch):
        """Which faces of a patch are here, by their places in it."""
        here = self.faces[(self.faces >= patch.start) & (self.faces < patch.start + patch.size)]
        return here - patch.start


def _names(mesh):
    return [patch.name for patch in mesh.patches]


def _points(mesh, faces):
    """(face_ptr, face_points) of some faces."""
    lengths = np.diff(mesh.face_ptr)[faces]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], lengths)
    return ptr, mesh.face_points[np.repeat(mesh.face_ptr[faces], lengths) + place]


def _restricted(condition, kept):
    """A condition with one value a face, for the faces kept."""
    if kept is None or not is_dataclass(condition):
        return condition
    arrays = {f.name: np.asarray(getattr(condition, f.name)) for f in fields(condition)
              if not callable(getattr(condition, f.name))}
    return replace(condition, **{name: value[kept] for name, value in arrays.items() if value.ndim})
