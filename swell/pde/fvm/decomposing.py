"""Decomposition of a mesh into parts: a folder processor<k> for each, as OpenFOAM's decomposePar writes them.

One process decomposes the mesh once. Each rank then reads its own part, and no rank has the whole mesh (`part_mesh`).
Where two parts meet, each has a patch of type processor, with the same faces in the same order. Faces keep their
direction in the part of their owner and are reversed in the other. Each folder also has the lists that reconstructPar
needs: the whole mesh's numbers of its cells, faces, points and patches.
"""
from __future__ import annotations

import numbers

import numpy as np

from swell.core.errors import InputError
from swell.distributed.partition import divided
from swell.io.files import as_path
from swell.pde.fvm.foam_writer import write_polymesh
from swell.pde.fvm.mesh import Mesh, Patch, reverse_faces
from swell.pde.fvm.part_mesh import count_parts, whole_instead
from swell.pde.fvm.submesh import points_of


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
        For parts without cells, cyclic patches, or a folder that has parts already or cannot be written.
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
    whole_instead("written in parts", mesh.patches)
    part, case = _part_of_cells(mesh, parts), as_path(case)
    sizes = np.bincount(part, minlength=parts if np.ndim(parts) == 0 else 0)
    if not sizes.all():
        raise InputError(f"part {int(np.argmin(sizes))} of {sizes.size} has no cell: ask for fewer parts, or number "
                         "them without gaps")
    if there := count_parts(case):
        raise InputError(f"{case} is divided into {there} parts already: remove its folders processor0 to "
                         f"processor{there - 1}, or name another folder")
    return [_write(mesh, part, rank, case / f"processor{rank}") for rank in range(sizes.size)]


def _part_of_cells(mesh, parts):
    """Return the part of each cell as an integer array; ``parts``: their number, or already such an array, which is
    checked."""
    if isinstance(parts, numbers.Integral) and not isinstance(parts, bool):
        if parts < 1:
            raise InputError(f"parts={parts}: expected 1 or more, one for each rank")
        return divided(mesh.n_cells, parts, mesh.owner[:mesh.n_internal], mesh.neighbour)
    part = np.asarray(parts)
    if part.shape != (mesh.n_cells,) or part.dtype.kind not in "iu":
        raise InputError(f"parts: {part.dtype} of shape {part.shape} came, expected a number of parts, or an integer "
                         f"for each of the {mesh.n_cells} cells")
    if part.min() < 0:
        raise InputError(f"parts: cell {int(np.argmin(part))} is in part {part.min()}: they are numbered from 0")
    return part.astype(np.int64)


def _faces(mesh, part, rank):
    """Return (groups, adjacent). ``groups``: lists of the faces of part ``rank``: faces inside it, its faces on each
    patch, its faces towards each adjacent part. ``adjacent``: the numbers of these parts."""
    first, second = part[mesh.owner], np.full(mesh.n_faces, -1)
    second[:mesh.n_internal] = part[mesh.neighbour]
    inside = (first == rank) & (second == rank)
    other = np.where(first == rank, second, np.where(second == rank, first, -1))
    other[inside] = -1
    adjacent = np.unique(other[other >= 0])
    return [np.flatnonzero(inside),
            *(patch.start + np.flatnonzero(first[patch.faces] == rank) for patch in mesh.patches),
            *(np.flatnonzero(other == neighbour) for neighbour in adjacent)], adjacent


def _write(mesh, part, rank, folder):
    """Write part ``rank`` of the mesh to ``folder``; ``part``: the part of each cell. Return the cells of this part."""
    groups, adjacent = _faces(mesh, part, rank)
    names = {f"procBoundary{rank}to{other}": {"matchTolerance": "0.0001", "transform": "unknown", "myProcNo": rank,
                                              "neighbProcNo": other} for other in adjacent}
    ends = np.cumsum([faces.size for faces in groups]).tolist()
    kinds = [*((patch.name, patch.kind) for patch in mesh.patches), *((name, "processor") for name in names)]
    patches = tuple(Patch(name, start, stop - start, kind)
                    for (name, kind), start, stop in zip(kinds, ends[:-1], ends[1:], strict=True))

    faces, own = np.concatenate(groups), np.flatnonzero(part == rank)
    number = np.full(mesh.n_cells, -1)
    number[own] = np.arange(own.size)
    backwards = part[mesh.owner[faces]] != rank
    ptr, points = points_of(mesh, faces)
    used, points = np.unique(reverse_faces(ptr, points, np.flatnonzero(backwards)), return_inverse=True)
    owner = mesh.owner[faces]
    owner[backwards] = mesh.neighbour[faces[backwards]]
    there = Mesh(mesh.points[used], ptr, points, number[owner], number[mesh.neighbour[groups[0]]], patches)
    patch_before = np.concatenate([np.arange(len(mesh.patches)), np.full(adjacent.size, -1)])
    write_polymesh(there, folder, names, {"cellProcAddressing": own, "pointProcAddressing": used,
                                          "faceProcAddressing": np.where(backwards, -1, 1) * (faces + 1),
                                          "boundaryProcAddressing": patch_before})
    return own
