"""Periodic patches: the discretisation treats each pair of cyclic faces as one face between two cells.

OpenFOAM's type cyclic: face i of a patch and face i of its neighbourPatch are one face, seen from its two sides. The
mesh keeps both, because its cells are closed by them. In a CoupledMesh the first face stands for the pair, among the
internal faces. The vector

    d = (x_first − x_owner) + (x_neighbour − x_second)

joins the two cells' centres through it. Assembly, gradients, corrections and fluxes then need no special case. If both
faces of a pair belong to one cell (one layer of cells), nothing flows: the faces stay at the boundary, like faces of
kind "empty". Only translations are supported: a rotation would turn gradients and velocities.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError

if TYPE_CHECKING:
    from swell.pde.fvm.mesh import Mesh

CYCLIC = "cyclic"
MATCH = 1e-3            # relative difference of positions and of area vectors up to which two faces match


@dataclass(frozen=True, eq=False)
class CoupledMesh:
    """A mesh with each cyclic pair joined, and a rank's part with its ghost cells, which other ranks own.

    Its faces: internal faces, then pairs, then faces towards ghosts, then boundary faces. Ghosts are the last cells.

    Attributes
    ----------
    whole : Mesh
        The original mesh.
    faces : int array, shape (f,), or slice
        Each face's number in the original mesh; for a pair, its first face.
    reversed : bool array, shape (f,), or False
        True for faces whose owner is a ghost: the original mesh has them the other way round.
    partners : int array, shape (pairs,)
        The second faces of the pairs.
    owner, neighbour : int arrays, shapes (f,) and (fi,)
    patches : tuple of Patch
        The patches with the remaining boundary faces.
    face_areas, face_centres : arrays, shape (f, 3)
        For a pair, its first face's.
    far_centres : array, shape (fi, 3)
        Centres of the internal faces and pairs on the neighbour's side; for a pair, its second face's.
    volumes, centres : arrays, shapes (n,) and (n, 3)
    """

    whole: Mesh
    faces: np.ndarray | slice
    reversed: np.ndarray | bool
    partners: np.ndarray
    owner: np.ndarray
    neighbour: np.ndarray
    patches: tuple
    face_areas: np.ndarray
    face_centres: np.ndarray
    far_centres: np.ndarray
    volumes: np.ndarray
    centres: np.ndarray

    @classmethod
    def of(cls, mesh, border=None) -> "CoupledMesh":
        """Return the CoupledMesh of a Mesh, or of a PartMesh with its Border: the faces of its cyclic pairs are
        joined."""
        inside, (first, second) = slice(0, mesh.n_internal), mesh.pairs
        if border is None and not first.size:
            return cls(mesh, slice(None), False, second, mesh.owner, mesh.neighbour, mesh.patches, mesh.face_areas,
                       mesh.face_centres, mesh.face_centres[inside], mesh.volumes, mesh.centres)
        cut = np.empty(0, np.int64) if border is None else border.faces
        outer = np.ones(mesh.n_faces, bool)
        outer[inside] = outer[first] = outer[second] = outer[cut] = False
        pos = np.cumsum(np.concatenate([[0], outer]))            # number of boundary faces before each face
        before = mesh.n_internal + first.size + cut.size
        patches = tuple(replace(p, start=int(before + pos[p.start]), size=int(pos[p.start + p.size] - pos[p.start]))
                        for p in mesh.patches)
        faces = np.concatenate([np.arange(mesh.n_internal), first, cut, np.flatnonzero(outer)])
        owner, areas, centres = mesh.owner[faces], mesh.face_areas[faces], mesh.face_centres[faces]
        neighbour = np.concatenate([mesh.neighbour, mesh.owner[second]])
        far = np.concatenate([mesh.face_centres[inside], mesh.face_centres[second]])
        if border is None:
            return cls(mesh, faces, False, second, owner, neighbour, patches, areas, centres, far, mesh.volumes,
                       mesh.centres)
        at, here, there = slice(neighbour.size, before), mesh.owner[cut], mesh.n_cells + border.beyond
        reversed_ = np.zeros(faces.size, bool)
        reversed_[at] = border.reversed
        owner[at] = np.where(border.reversed, there, here)
        areas[at], centres[at] = border.areas, border.centres
        neighbour = np.concatenate([neighbour, np.where(border.reversed, here, there).astype(neighbour.dtype)])
        return cls(mesh, faces, reversed_, second, owner, neighbour, patches, areas, centres,
                   np.concatenate([far, border.far_centres]), np.concatenate([mesh.volumes, border.volumes]),
                   np.concatenate([mesh.centres, border.cells]))

    @property
    def n_cells(self) -> int:
        """Number of cells, with ghosts."""
        return len(self.volumes)

    def on_mesh(self, fluxes) -> np.ndarray:
        """Return fluxes for the original mesh's faces, from ``fluxes`` on this mesh's faces; the second face of a pair
        gets the first's flux, negated."""
        if isinstance(self.faces, slice):
            return fluxes
        whole = np.empty(self.whole.n_faces, fluxes.dtype)
        whole[self.faces] = np.where(self.reversed, -fluxes, fluxes)
        first = self.whole.n_internal
        whole[self.partners] = -fluxes[first:first + self.partners.size]
        return whole


def pairs(mesh) -> np.ndarray:
    """Return the two faces of each cyclic pair between two different cells, shape (2, pairs)."""
    per_patch = [np.empty((2, 0), np.int64)]
    for patch in mesh.patches:
        if patch.kind == CYCLIC and patch.size:
            other = mesh.patch(patch.neighbour)
            if patch.start < other.start:
                per_patch.append(np.stack([np.arange(patch.start, patch.start + patch.size),
                                           np.arange(other.start, other.start + other.size)]))
    first, second = np.concatenate(per_patch, axis=1)
    return np.stack([first, second])[:, mesh.owner[first] != mesh.owner[second]]


def check_pairs(mesh):
    """Check that cyclic patches come in pairs whose faces match.

    Raises
    ------
    InputError
        The message names the patch and the face.
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
    """Raise InputError unless one translation maps the faces of ``patch`` onto the faces of ``other``, in order."""
    if patch.size != other.size:
        raise InputError(f"patch {patch.name!r} has {patch.size} faces and patch {other.name!r} {other.size}: cyclic "
                         "patches match face by face; for other meshes OpenFOAM has cyclicAMI, which is not supported")
    if not patch.size:
        return
    size = np.linalg.norm(mesh.face_areas[patch.faces], axis=1)
    rotated = np.linalg.norm(mesh.face_areas[patch.faces] + mesh.face_areas[other.faces], axis=1) > MATCH * size
    apart = mesh.face_centres[other.faces] - mesh.face_centres[patch.faces]
    moved = np.linalg.norm(apart - np.median(apart, axis=0), axis=1) > MATCH * np.sqrt(size)
    for wrong, what in ((rotated, "has another area or is not parallel to it: rotational periodicity"),
                        (moved, "is not where a translation of the patch puts it: another order of faces")):
        if wrong.any():
            face = int(np.argmax(wrong))
            raise InputError(f"face {face} of patch {patch.name!r} is cyclic with face {face} of {other.name!r}, which "
                             f"{what} is not supported; {int(np.count_nonzero(wrong))} of {patch.size} faces differ. "
                             "Write the mesh again with matched faces, or give both patches the type patch and a "
                             "condition")
