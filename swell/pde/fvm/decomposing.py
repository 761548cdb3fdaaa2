"""Decomposition of a mesh into parts: a folder processor<k> for each, as OpenFOAM's decomposePar writes them.

One process decomposes the mesh once. Each rank then reads its own part, and no rank has the whole mesh (`part_mesh`).
Where two parts meet, each has a patch of type processor, with the same faces in the same order; processorCyclic if they
meet through cyclic patches. Faces keep their direction in the part of their owner and are reversed in the other. Each
folder also has the lists that reconstructPar needs: the whole mesh's numbers of its cells, faces, points and patches.
"""
from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.distributed.partition import divided
from swell.io.files import as_path
from swell.pde.fvm.foam_writer import write_polymesh
from swell.pde.fvm.mesh import Mesh, Patch, reverse_faces
from swell.pde.fvm.part_mesh import count_parts
from swell.pde.fvm.periodic import CYCLIC


def decompose(mesh, parts, case) -> list:
    """Write a mesh in parts, one for each rank.

    Parameters
    ----------
    mesh : Mesh
    parts : int, or int array of shape (n_cells,)
        The number of parts, by a partition of the graph of cells (needs pymetis); or the part of each cell.
    case : str or path-like
        The folder for processor0, processor1, ...; created if missing. It may be the mesh's own case, but must not
        have parts yet.

    Returns
    -------
    list of int arrays
        The cells of each part, in the part's order.

    Raises
    ------
    InputError
        For parts without cells, or a folder that has parts already or cannot be written.
    MissingDependency
        If ``parts`` is a number and pymetis is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from swell.pde import fvm
    >>> cells = fvm.decompose(fvm.box((4, 4, 4)), [0] * 32 + [1] * 32, tempfile.mkdtemp())
    >>> [len(own) for own in cells]
    [32, 32]
    """
    part, case = _part_of_cells(mesh, parts), as_path(case)
    sizes = np.bincount(part, minlength=parts if np.ndim(parts) == 0 else 0)
    if not sizes.all():
        raise InputError(f"part {int(np.argmin(sizes))} of {sizes.size} has no cell: ask for fewer parts, or number "
                         "them without gaps")
    if there := count_parts(case):
        raise InputError(f"{case} is divided into {there} parts already: remove its folders processor0 to "
                         f"processor{there - 1}, or name another folder")
    names = [patch.name for patch in mesh.patches]
    return [_write(Piece.of(mesh, part, rank), rank, case / f"processor{rank}", names) for rank in range(sizes.size)]


def _part_of_cells(mesh, parts):
    """Return the part of each cell as an integer array; ``parts``: their number, or already such an array, which is
    checked."""
    if isinstance(parts, numbers.Integral) and not isinstance(parts, bool):
        if parts < 1:
            raise InputError(f"parts={parts}: expected 1 or more, one for each rank")
        return divided(mesh.n_cells, parts, *mesh.links)
    part = np.asarray(parts)
    if part.shape != (mesh.n_cells,) or part.dtype.kind not in "iu":
        raise InputError(f"parts: {part.dtype} of shape {part.shape} came, expected a number of parts, or an integer "
                         f"for each of the {mesh.n_cells} cells")
    if part.min() < 0:
        raise InputError(f"parts: cell {int(np.argmin(part))} is in part {part.min()}: they are numbered from 0")
    return part.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Piece:
    """One part of a mesh, as a mesh of its own.

    Attributes
    ----------
    mesh : Mesh
        Its patches of kind "processor" lead to other parts.
    part_beyond : dict
        Name of such a patch → the part that it leads to.
    cells, faces, points : int arrays
        The whole mesh's numbers of this part's cells, faces and points.
    backwards : bool array, shape (faces,)
        True for faces whose owner in the whole mesh is in another part: here they are reversed.
    """

    mesh: Mesh
    part_beyond: dict
    cells: np.ndarray
    faces: np.ndarray
    points: np.ndarray
    backwards: np.ndarray

    @classmethod
    def of(cls, mesh, part, rank) -> "Piece":
        """Return part ``rank`` of a mesh; ``part``: the part of each cell."""
        groups, kinds, beyond = _faces(mesh, part, rank)
        ends = np.cumsum([faces.size for faces in groups]).tolist()
        patches = tuple(Patch(name, start, stop - start, *kind)
                        for (name, *kind), start, stop in zip(kinds, ends[:-1], ends[1:], strict=True))
        faces, cells = np.concatenate(groups), np.flatnonzero(part == rank)
        number = np.full(mesh.n_cells, -1, np.int32)
        number[cells] = np.arange(cells.size)
        backwards = part[mesh.owner[faces]] != rank
        ptr, points = points_of(mesh, faces)
        used, points = np.unique(reverse_faces(ptr, points, np.flatnonzero(backwards)), return_inverse=True)
        points, owner = points.astype(np.int32), mesh.owner[faces]
        owner[backwards] = mesh.neighbour[faces[backwards]]
        there = Mesh(mesh.points[used], ptr, points, number[owner], number[mesh.neighbour[groups[0]]], patches)
        return cls(there, beyond, cells, faces, used, backwards)


def _faces(mesh, part, rank):
    """Return (groups, patches, part beyond). ``groups``: lists of the faces of part ``rank``: faces inside it, its
    faces on each patch, its faces towards other parts, also through cyclic patches. ``patches``: (name, kind,
    neighbour) for each group but the first. ``part beyond``: name of a patch towards another part → this part."""
    first, second = part[mesh.owner], np.full(mesh.n_faces, -1)
    second[:mesh.n_internal] = part[mesh.neighbour]
    for one, other in (mesh.pairs, mesh.pairs[::-1]):
        second[one] = first[other]
    across = np.where(first == rank, second, np.where(second == rank, first, -1))
    across[mesh.n_internal:][first[mesh.n_internal:] != rank] = -1                 # the other face of a cyclic pair
    across[across == rank] = -1
    inside, beyond = slice(0, mesh.n_internal), {}
    groups = [np.flatnonzero((first[inside] == rank) & (second[inside] == rank)),
              *(patch.start + np.flatnonzero((first[patch.faces] == rank) & (across[patch.faces] < 0))
                for patch in mesh.patches)]
    patches = [(patch.name, patch.kind, patch.neighbour) for patch in mesh.patches]
    through = [("", "", inside), *((f"through{p.name}", p.name, p.faces) for p in mesh.patches if p.kind == CYCLIC)]
    for words, name, faces in through:
        for other in np.unique(across[faces][across[faces] >= 0]).tolist():
            groups.append((faces.start or 0) + np.flatnonzero(across[faces] == other))
            patches.append((f"procBoundary{rank}to{other}{words}", "processor", name))
            beyond[patches[-1][0]] = other
    return groups, patches, beyond


def points_of(mesh, faces):
    """Return (face_ptr, face_points) of only the given faces of a Mesh."""
    lengths = np.diff(mesh.face_ptr)[faces]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], lengths)
    return ptr, mesh.face_points[np.repeat(mesh.face_ptr[faces], lengths) + place]


def _write(piece, rank, folder, names):
    """Write a Piece, part ``rank``, to ``folder``; ``names``: the whole mesh's patches. Return its cells."""
    entries = {}
    for patch in piece.mesh.patches:
        if patch.name in piece.part_beyond:
            through = {"type": "processorCyclic", "referPatch": patch.neighbour} if patch.neighbour else {}
            entries[patch.name] = {**through, "matchTolerance": "0.0001", "transform": "unknown", "myProcNo": rank,
                                   "neighbProcNo": piece.part_beyond[patch.name]}
    before = np.array([names.index(p.name) if p.name in names else -1 for p in piece.mesh.patches])
    write_polymesh(piece.mesh, folder, entries, {
        "cellProcAddressing": piece.cells, "pointProcAddressing": piece.points,
        "faceProcAddressing": np.where(piece.backwards, -1, 1) * (piece.faces + 1), "boundaryProcAddressing": before})
    return piece.cells
