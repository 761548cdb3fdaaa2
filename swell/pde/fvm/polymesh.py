"""Reader of OpenFOAM meshes: the folder polyMesh with points, faces, owner, neighbour and boundary.

Each file may be text, binary (32 or 64 bits) or gzip. Patches of type "empty" need no condition. Patches of type
"cyclic" are joined (``periodic.py``). Patches of type "processor" and "processorCyclic" lead to another part of a
decomposed case; ``neighbour`` names the cyclic patch through which the latter lead (``part_mesh.py``). Types that
couple patches in other ways ("cyclicAMI", ...) are refused by name. Other types ("wall", "symmetry", ...) keep their
names.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.foam_file import MOST_DIGITS, FoamFile
from swell.pde.fvm.mesh import Mesh, Patch
from swell.pde.fvm.periodic import CYCLIC

PROCESSOR = "processor", "processorCyclic"


def read_polymesh(folder) -> Mesh:
    """Read an OpenFOAM mesh.

    Parameters
    ----------
    folder : str or path-like
        A case with the folder constant/polyMesh, or a folder polyMesh.

    Returns
    -------
    Mesh

    Raises
    ------
    InputError
        If a file is missing, truncated, damaged or does not match the others, or for an error of `Mesh.from_faces`.
    """
    folder = _polymesh(as_path(folder))
    points = FoamFile(folder, "points").points()
    face_ptr, face_points = FoamFile(folder, "faces").faces()
    owner = FoamFile(folder, "owner").labels()
    neighbour = FoamFile(folder, "neighbour").labels()
    boundary = FoamFile(folder, "boundary")
    if owner.size != face_ptr.size - 1:
        raise InputError(f"{folder}: the file owner has {owner.size} faces and the file faces {face_ptr.size - 1}; "
                         "they belong to two meshes, or one is truncated: write the mesh again")
    if neighbour.size == owner.size and (outside := neighbour < 0).any():        # old: -1 for the faces of the boundary
        neighbour = neighbour[:np.argmax(outside)]
    patches = [_patch(boundary.path, name, entries) for name, entries in boundary.patches()]
    try:
        return Mesh.from_faces(points, face_ptr, face_points, owner, neighbour, patches)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error


def neighbour_of(folder) -> dict:
    """Return a dict from the name of each patch of type processor or processorCyclic to the number of the part beyond
    it; ``folder``: a part of a decomposed case."""
    boundary = FoamFile(_polymesh(as_path(folder)), "boundary")
    coupled = {name: entries for name, entries in boundary.patches() if entries.get("type") in PROCESSOR}
    for name, entries in coupled.items():
        if not _is_count(entries.get("neighbProcNo", "")):
            raise InputError(f"{boundary.path}: patch {name!r} has neighbProcNo = "
                             f"{entries.get('neighbProcNo', 'nothing')[:60]}, expected a number; decompose the case "
                             "again")
    return {name: int(entries["neighbProcNo"]) for name, entries in coupled.items()}


def _polymesh(folder) -> Path:
    """Return the polyMesh folder in ``folder``, a case or the polyMesh folder; raise InputError with advice if there is
    none."""
    inside = folder / "constant" / "polyMesh"
    if inside.is_dir():
        return inside
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name an OpenFOAM case, or its constant/polyMesh")
    if any((folder / name).exists() for name in ("faces", "faces.gz", "owner", "owner.gz", "points", "points.gz")):
        return folder
    regions = sorted(path.parent.name for path in folder.glob("constant/*/polyMesh"))
    if regions:
        raise InputError(f"{folder} has a mesh for each of the regions {', '.join(regions)}; name one, such as "
                         f"{folder / 'constant' / regions[0] / 'polyMesh'}")
    remedy = "make the mesh first, with blockMesh for instance, or name its folder"
    reconstruct = "put the mesh together first with reconstructParMesh -constant"
    if (folder / "processor0").is_dir():
        remedy = f"start as many ranks as it has parts, or {reconstruct}"
    elif any(folder.glob("processors[0-9]*")):
        remedy = f"decompose it with -fileHandler uncollated, into a folder for each part, or {reconstruct}"
    raise InputError(f"{folder} is no OpenFOAM case with a mesh (there is no constant/polyMesh); {remedy}")


def _is_count(word) -> bool:
    """True if ``word`` is a number that can count something."""
    return word.isdecimal() and len(word) <= MOST_DIGITS


def _patch(path, name, entries) -> Patch:
    """Return a Patch made from its dict of entries in the boundary file ``path``."""
    numbers = {}
    for key in ("nFaces", "startFace"):
        if not _is_count(entries.get(key, "")):
            raise InputError(f"{path}: patch {name!r} has {key} = {entries.get(key, 'nothing')[:60]}, expected a "
                             "number; write the mesh again")
        numbers[key] = int(entries[key])
    kind = entries.get("type", "patch")
    key = {CYCLIC: "neighbourPatch", "processorCyclic": "referPatch"}.get(kind)
    return Patch(name, numbers["startFace"], numbers["nFaces"], "processor" if kind in PROCESSOR else kind,
                 entries.get(key, "").strip('"'))
