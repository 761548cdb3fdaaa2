"""Periodic patches: a mesh as the discretisation sees it, each pair of cyclic faces one face between two cells.

OpenFOAM's type cyclic: face i of a patch and face i of its neighbourPatch are one face, seen from its two sides. The
mesh keeps both, for its cells are closed by them; here the first stands for the pair, among the internal faces, and

    d = (x_first − x_owner) + (x_neighbour − x_second)

joins the two centres through it. Assembly, gradients, corrections and fluxes then follow by themselves. A pair that
belongs to one cell twice, as across one layer of cells, moves nothing: its faces stay at the boundary, as those of kind
"empty" do. Only translations couple: a rotation would turn gradients and velocities.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import InputError

CYCLIC = "cyclic"
MATCH = 1e-3            # distance over the size of a face, and angle, up to which two faces match


@dataclass(frozen=True, eq=False)
class CoupledMesh:
    """What the discretisation takes of a mesh. Faces: the internal ones, the pairs, those of the boundary.

    Attributes
    ----------
    whole : Mesh
    faces : int array, shape (f,), or slice
        Each face's number in the mesh; of a pair, its first.
    twins : int array, shape (pairs,)
        The second faces of the pairs.
    owner, neighbour : int arrays, shapes (f,) and (fi,)
    patches : tuple of Patch
        With the faces that are left at the boundary.
    face_areas, face_centres : arrays, shape (f, 3)
        Of a pair, its first face's.
    far_centres : array, shape (fi, 3)
        Centres of the internal faces where the neighbour has them.
    """

    whole: object
    faces: object
    twins: np.ndarray
    owner: np.ndarray
    neighbour: np.ndarray
    patches: tuple
    face_areas: np.ndarray
    face_centres: np.ndarray
    far_centres: np.ndarray

    @classmethod
    def of(cls, mesh) -> "CoupledMesh":
        """A mesh with its pairs joined."""
        inside, (first, second) = slice(0, mesh.n_internal), mesh.pairs
        if not first.size:
            return cls(mesh, slice(None), second, mesh.owner, mesh.neighbour, mesh.patches, mesh.face_areas,
                       mesh.face_centres, mesh.face_centres[inside])
        outer = np.ones(mesh.n_faces, bool)
        outer[inside] = outer[first] = outer[second] = False
        left = np.cumsum(np.concatenate([[0], outer]))           # faces of the boundary before each face
        before = mesh.n_internal + first.size
        patches = tuple(replace(p, start=int(before + left[p.start]), size=int(left[p.start + p.size] - left[p.start]))
                        for p in mesh.patches)
        faces = np.concatenate([np.arange(mesh.n_internal), first, np.flatnonzero(outer)])
        return cls(mesh, faces, second, mesh.owner[faces], np.concatenate([mesh.neighbour, mesh.owner[second]]),
                   patches, mesh.face_areas[faces], mesh.face_centres[faces],
                   np.concatenate([mesh.face_centres[inside], mesh.face_centres[second]]))

    @property
    def n_cells(self) -> int:
        """Cells."""
        return self.whole.n_cells

    @property
    def volumes(self) -> np.ndarray:
        """Volumes of the cells, shape (n,)."""
        return self.whole.volumes

    @property
    def centres(self) -> np.ndarray:
        """Centroids of the cells, shape (n, 3)."""
        return self.whole.centres

    def on_mesh(self, fluxes) -> np.ndarray:
        """Fluxes of the faces here for all faces of the mesh; the second face of a pair has the first's, reversed."""
        if not self.twins.size:
            return fluxes
        whole = np.empty(self.whole.n_faces, fluxes.dtype)
        whole[self.faces] = fluxes
        whole[self.twins] = -fluxes[self.neighbour.size - self.twins.size:self.neighbour.size]
        return whole


def pairs(mesh) -> np.ndarray:
    """The two faces of each pair that joins two cells, shape (2, pairs)."""
    found = [np.empty((2, 0), np.int64)]
    for patch in mesh.patches:
        if patch.kind == CYCLIC and patch.size:
            other = mesh.patch(patch.neighbour)
            if patch.start < other.start:
                found.append(np.stack([np.arange(patch.start, patch.start + patch.size),
                                       np.arange(other.start, other.start + other.size)]))
    first, second = np.concatenate(found, axis=1)
    return np.stack([first, second])[:, mesh.owner[first] != mesh.owner[second]]


def check_pairs(mesh):
    """Cyclic patches come in twos whose faces match.

    Raises
    ------
    InputError
        The message names the patch, and the face.
    """
    names = {patch.name: patch for patch in mesh.patches}
    for patch in (p for p in mesh.patches if p.kind == CYCLIC):
        if not patch.neighbour:
            raise InputError(f"patch {patch.name!r} is cyclic and names no neighbourPatch: expected the patch that its "
                             "faces are coupled with; meshes before OpenFOAM 2.0 are converted by foamUpgradeCyclics")
        where = f"patch {patch.name!r} is cyclic with {patch.neighbour!r}"
        if patch.neighbour not in names:
            raise InputError(f"{where}, and there is no such patch: the mesh has {', '.join(names)}; correct the file "
                             "boundary")
        other = names[patch.neighbour]
        if other is patch:
            raise InputError(f"patch {patch.name!r} is cyclic with itself: expected another patch; correct the file "
                             "boundary")
        if other.kind != CYCLIC or other.neighbour != patch.name:
            back = f"cyclic with {other.neighbour!r}" if other.kind == CYCLIC else f"of kind {other.kind!r}"
            raise InputError(f"{where}, which is {back}: expected that each names the other; correct the file boundary")
        _require_match(mesh, patch, other)


def _require_match(mesh, patch, other):
    """The faces of two patches are the same, but for one translation."""
    if patch.size != other.size:
        raise InputError(f"patch {patch.name!r} has {patch.size} faces and patch {other.name!r} {other.size}: cyclic "
                         "patches match face by face; for other meshes OpenFOAM has cyclicAMI, which is not supported")
    if not patch.size:
        return
    size = np.linalg.norm(mesh.face_areas[patch.faces], axis=1)
    turned = np.linalg.norm(mesh.face_areas[patch.faces] + mesh.face_areas[other.faces], axis=1) > MATCH * size
    apart = mesh.face_centres[other.faces] - mesh.face_centres[patch.faces]
    moved = np.linalg.norm(apart - np.median(apart, axis=0), axis=1) > MATCH * np.sqrt(size)
    for wrong, what in ((turned, "has another area or is not parallel to it: rotational periodicity"),
                        (moved, "is not where a translation of the patch puts it: another order of faces")):
        if wrong.any():
            face = int(np.argmax(wrong))
            raise InputError(f"face {face} of patch {patch.name!r} is cyclic with face {face} of {other.name!r}, which "
                             f"{what} is not supported; {int(np.count_nonzero(wrong))} of {patch.size} faces are so. "
                             "Write the mesh again with matched faces, or give both patches the type patch and a "
                             "condition")
